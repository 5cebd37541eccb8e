"""Faults and field lies of the simulated Mithril over real connections: the answer changes, the truth never does."""

from typing import Any

import aiohttp
import pytest

from tests.support.auctions import Auctions

BIDS = "/v2/spot/bids"


@pytest.mark.parametrize(
    ("fault", "fields", "status", "headers"),
    [
        ("throttle_text", {}, 429, {}),
        ("throttle_json", {}, 429, {}),
        ("throttle_retry_after", {"retry_after": 7}, 429, {"Retry-After": "7"}),
        ("html_403", {}, 403, {"Content-Type": "text/html"}),
        ("server_error_before", {"status": 502}, 502, {}),
        ("session_expired", {}, 401, {}),
        ("revoked_key", {}, 401, {}),
        ("invalid_request", {}, 422, {}),
    ],
)
async def test_a_fault_answers_before_anything_is_placed(
    auctions: Auctions, fault: str, fields: dict[str, Any], status: int, headers: dict[str, str]
) -> None:
    await auctions.weather(fault, route=f"POST {BIDS}", count=1, **fields)
    answer = await auctions.place()
    assert answer.status == status
    assert {name: answer.headers[name] for name in headers} == headers
    assert (await auctions.get(BIDS))["data"] == []
    assert (await auctions.place()).status == 201


@pytest.mark.parametrize("fault", ["server_error_after", "reset", "truncated", "malformed"])
async def test_a_bid_whose_answer_is_lost_is_placed_and_found_by_its_name(auctions: Auctions, fault: str) -> None:
    await auctions.weather(fault, route=f"POST {BIDS}", count=1)
    try:
        answer = await auctions.place(name="lost")
        assert answer.status == 503 or not answer.raw.endswith(b"}")
    except aiohttp.ClientError:
        pass
    (row,) = (await auctions.get(BIDS, name="lost"))["data"]
    assert (await auctions.truth())["contracts"][0]["id"] == row["fid"]
    assert (await auctions.place(name="lost")).status == 400


async def test_lists_are_empty_partial_stale_or_in_pages(auctions: Auctions) -> None:
    fids = [await auctions.placed(name=f"bid-{number}") for number in range(4)]
    expected = {"empty_list": 0, "partial_list": 2, "stale_list": 4, "paged_list": 2}
    for fault, rows in expected.items():
        number = await auctions.weather(fault, route=f"GET {BIDS}")
        if fault == "stale_list":
            await auctions.call("DELETE", f"{BIDS}/{fids[0]}")
        page = await auctions.get(BIDS, status="Open")
        assert len(page["data"]) == rows, fault
        assert (page["next_cursor"] is not None) == (fault == "paged_list")
        await auctions.control("DELETE", f"/weather/{number}")
    # The page after the first is lost: the list ends as if it were whole.
    await auctions.weather("paged_list", rows=1)
    await auctions.weather("field_lie", field="next_cursor", how="null", count=1)
    assert (await auctions.get(BIDS, status="Open"))["next_cursor"] is None


async def test_another_account_sees_nothing_of_ours(auctions: Auctions) -> None:
    fid, me = await auctions.placed(), await auctions.get("/v2/me")
    await auctions.weather("wrong_account")
    assert (await auctions.get("/v2/me"))["fid"] != me["fid"]
    assert (await auctions.get(BIDS))["data"] == []
    assert (await auctions.call("GET", f"{BIDS}/{fid}")).status == 404
    assert (await auctions.call("DELETE", f"{BIDS}/{fid}")).status == 404


async def test_fields_of_bids_prices_and_bills_are_lied_about(auctions: Auctions) -> None:
    fid = await auctions.placed()
    await auctions.advance(120)
    true = await auctions.show(fid)
    for field, key, value in (
        ("id", "fid", "bid_other"),
        ("label", "name", "a neighbour's"),
        ("price", "limit_price", "$99.00"),
        ("state", "status", "Levitating"),
        ("host", "region", "moon-1"),
    ):
        await auctions.weather("field_lie", field=field, value=value, route=f"GET {BIDS}", instance=fid, count=2)
        assert await auctions.show(fid) == {**true, key: value}
        assert (await auctions.get(BIDS))["data"] == [{**true, key: value}]
    await auctions.weather("field_lie", field="price", how="times", value=10, count=1)
    bill = await auctions.get("/v2/instances/pricing/history", project=auctions.world.project)
    assert bill["instances"][0]["events"][0]["price_cents"] == 1000
    await auctions.weather("field_lie", field="rows", how="twice", count=1)
    assert len((await auctions.get(BIDS))["data"]) == 2
    assert await auctions.show(fid) == true
    assert (await auctions.truth())["contracts"][0]["price"] == 1.0


async def test_prices_go_missing_and_a_create_is_refused(auctions: Auctions) -> None:
    await auctions.weather("no_price", count=1)
    assert (await auctions.call("GET", "/v2/pricing/current", instance_type="it_RrgkIZz6c9BZu5gi")).status == 404
    assert (await auctions.prices())["spot_price_cents"] == 100
    await auctions.weather("sold_out", count=1)
    assert (await auctions.place()).status == 400
    fid = await auctions.placed()
    await auctions.weather("unknown_status", status="Relocating", count=1)
    assert (await auctions.get(f"{BIDS}/{fid}/status"))["status"] == "Relocating"


async def test_machines_fall_silent_or_fail_and_a_label_is_edited(auctions: Auctions) -> None:
    script = "docker run --detach ubuntu:22.04"
    fid = await auctions.placed(launch_specification={"volumes": [], "ssh_keys": [], "startup_script": script})
    await auctions.weather("stuck_loading")
    await auctions.advance(900)
    assert (await auctions.truth())["contracts"][0]["container"] == "loading"
    await auctions.control("DELETE", "/weather")
    await auctions.advance(300)
    assert (await auctions.truth())["contracts"][0]["container"] == "running"
    await auctions.weather("host_offline", seconds=60)
    assert auctions.world.bids[fid].is_offline
    assert (await auctions.instances())[0]["status"] == "STATUS_RUNNING"
    await auctions.advance(61)
    assert not auctions.world.bids[fid].is_offline
    await auctions.weather("host_gone")
    assert [row["status"] for row in await auctions.instances()] == ["STATUS_ERROR"]
    assert (await auctions.show(fid))["status"] == "Open"
    await auctions.advance(600)
    assert (await auctions.show(fid))["status"] == "Allocated"
    await auctions.weather("label_edit", label="mine", seconds=10)
    assert (await auctions.show(fid))["name"] == "mine"
    await auctions.advance(11)
    assert (await auctions.show(fid))["name"] == "fleet-slot-1"
