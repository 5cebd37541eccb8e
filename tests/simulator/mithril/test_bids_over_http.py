"""The bids of the simulated Mithril over HTTP: what is refused, what the next auction does, what is shown."""

import json
import os
import pathlib
from typing import Any

import pytest

from agent.simulator.mithril import places
from tests.support.auctions import A100, B200, H100, Auctions

RECORDED = pathlib.Path(os.environ.get("GPUBID_RECORDED", "/nonexistent")) / "mithril"


async def test_a_key_is_asked_for(auctions: Auctions) -> None:
    assert (await auctions.call("GET", "/v2/me", key=None)).status == 401
    assert (await auctions.call("GET", "/v2/me", key="fkey_other")).status == 401
    me = await auctions.get("/v2/me")
    assert me["fid"].startswith("user_")
    assert [row["fid"] for row in await auctions.get("/v2/projects")] == [auctions.world.project]


async def test_the_recorded_pools_begin_with_their_recorded_prices(auctions: Auctions) -> None:
    recorded: dict[tuple[str, str], dict[str, Any]] = {}
    if RECORDED.exists():
        rows = json.loads((RECORDED / "pricing_current_recorded.json").read_text())["pricing_current"]
        recorded = {(row["instance_type"]["fid"], row["region"]): row["body"] for row in rows}
        assert recorded.keys() == {A100, H100, B200}
    for pool, figures in {A100: (100, 110, 3, 26), H100: (800, 2272, 0, 9), B200: (3, 345, 0, 32)}.items():
        shown = await auctions.prices(pool)
        told = shown["spot_price_cents"], shown["reserved_price_cents"]
        assert (*told, shown["available_capacity"], shown["total_capacity"]) == figures
        assert shown == recorded.get(pool, shown)
        assert shown["lowest_allocated_bid_cents"] is shown["dynamic_win_price_cents"] is None


async def test_every_pool_is_available_and_has_a_type(auctions: Auctions) -> None:
    rows, kinds = await auctions.get("/v2/spot/availability"), await auctions.get("/v2/instance-types")
    assert len(rows) == len(places.POOLS)
    assert {row["instance_type"] for row in rows} == {kind["fid"] for kind in kinds}
    first = next(row for row in rows if (row["instance_type"], row["region"]) == A100)
    assert (first["capacity"], first["last_instance_price"], first["lowest_allocated_price"]) == (3, "$1.00", None)


async def test_the_next_auction_allocates_at_the_price_and_not_at_the_limit(auctions: Auctions) -> None:
    fid = await auctions.placed("$25.60")
    assert (await auctions.show(fid))["status"] == "Open"
    assert await auctions.instances() == []
    await auctions.advance(120)
    shown = await auctions.show(fid)
    assert (shown["status"], shown["limit_price"]) == ("Allocated", "$25.60")
    await auctions.advance(600)
    (instance,) = await auctions.instances(bid_fid_in=fid)
    assert (instance["status"], instance["bid"], shown["instances"]) == ("STATUS_RUNNING", fid, [instance["fid"]])
    (bill,) = (await auctions.get("/v2/instances/pricing/history", project=auctions.world.project))["instances"]
    assert [event["price_cents"] for event in bill["events"]] == [100]


async def test_a_bid_below_the_price_waits_where_instances_are_free_and_starts_when_it_is_raised(
    auctions: Auctions,
) -> None:
    fid = await auctions.placed("$0.99")
    await auctions.advance(600)
    assert (await auctions.show(fid))["status"] == "Open"
    assert (await auctions.change(fid, limit_price="$1.00")).body["limit_price"] == "$1.00"
    await auctions.advance(120)
    assert (await auctions.show(fid))["status"] == "Allocated"


async def test_a_bid_over_the_price_of_a_full_pool_loses_and_is_the_new_price(auctions: Auctions) -> None:
    fid = await auctions.placed("$8.01", H100)
    await auctions.advance(120)
    assert (await auctions.show(fid))["status"] == "Open"
    assert (await auctions.prices(H100))["spot_price_cents"] == 801


async def test_pause_resume_and_end(auctions: Auctions) -> None:
    fid = await auctions.placed()
    await auctions.advance(600)
    assert (await auctions.change(fid, paused=True)).body["status"] == "Paused"
    await auctions.advance(60)
    (paused,) = await auctions.instances()
    assert (paused["status"], (await auctions.prices())["available_capacity"]) == ("STATUS_PAUSED", 3)
    assert (await auctions.change(fid, paused=False)).body["status"] == "Open"
    await auctions.advance(600)
    (back,) = await auctions.instances()
    assert (back["fid"], back["status"]) == (paused["fid"], "STATUS_RUNNING")
    assert (await auctions.call("DELETE", f"/v2/spot/bids/{fid}")).status == 204
    await auctions.advance(60)
    assert (await auctions.show(fid))["status"] == "Terminated"
    assert [row["status"] for row in await auctions.instances()] == ["STATUS_TERMINATED"]
    assert (await auctions.truth())["billing_now"] == []


async def test_a_live_name_is_taken_once(auctions: Auctions) -> None:
    first = await auctions.placed(name="one")
    refused = await auctions.place(name="one")
    assert (refused.status, refused.body) == (400, {"detail": "Name already used"})
    assert [row["fid"] for row in (await auctions.get("/v2/spot/bids", name="one"))["data"]] == [first]
    await auctions.call("DELETE", f"/v2/spot/bids/{first}")
    assert (await auctions.place(name="one")).status == 201


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"limit_price": "$0.00"}, ["body", "limit_price"]),
        ({"limit_price": "much"}, ["body", "limit_price"]),
        ({"limit_price": 5}, ["body", "limit_price"]),
        ({"instance_quantity": 0}, ["body", "instance_quantity"]),
        ({"name": None}, ["body", "name"]),
        ({"launch_specification": None}, ["body", "launch_specification"]),
        ({"launch_specification": {"ssh_keys": []}}, ["body", "launch_specification", "volumes"]),
    ],
)
async def test_a_wrong_field_answers_422_with_its_place(
    auctions: Auctions, fields: dict[str, Any], where: list[str]
) -> None:
    answer = await auctions.place(**fields)
    assert answer.status == 422
    (detail,) = answer.body["detail"]
    assert detail["loc"] == where
    assert detail.keys() == {"loc", "msg", "type"}
    assert await auctions.get("/v2/spot/bids") == {"data": [], "next_cursor": None}


async def test_a_start_script_has_10000_characters_at_most(auctions: Auctions) -> None:
    for length, status in ((10_001, 422), (10_000, 201)):
        specification = {"volumes": [], "ssh_keys": [], "startup_script": "#" * length}
        assert (await auctions.place(launch_specification=specification)).status == status


async def test_what_is_not_there_answers_404(auctions: Auctions) -> None:
    for path, query in (
        ("/v2/spot/bids/bid_none", {}),
        ("/v2/pricing/current", {"instance_type": "it_none"}),
        ("/v2/instances", {"project": "proj_none"}),
        ("/v2/nothing", {}),
    ):
        assert (await auctions.call("GET", path, **query)).status == 404, path
    assert (await auctions.call("GET", "/v2/instances")).body["detail"][0]["loc"] == ["query", "project"]
    assert (await auctions.call("PATCH", "/v2/instances", {})).status == 501
    assert (await auctions.call("PUT", "/v2/spot/bids", {})).status == 405


async def test_lists_come_in_pages(auctions: Auctions) -> None:
    fids = [await auctions.placed(name=f"bid-{number}") for number in range(5)]
    found: list[str] = []
    query: dict[str, str] = {"limit": "2"}
    while True:
        page = await auctions.get("/v2/spot/bids", **query)
        found += [row["fid"] for row in page["data"]]
        if page["next_cursor"] is None:
            break
        query["next_cursor"] = page["next_cursor"]
    assert found == fids[::-1]
    assert (await auctions.call("GET", "/v2/spot/bids", next_cursor="!")).status == 422
    assert (await auctions.call("GET", "/v2/spot/bids", limit="101")).status == 422
