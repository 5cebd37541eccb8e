"""The recordings of the real market, where they are at hand (GPUBID_RECORDED names their folder).

They are not part of the project; without them these tests are skipped and say so.
"""

import json
import os
import pathlib
from typing import Any

import pytest

from tests.support.market import Market, running_market

_FOLDER = os.environ.get("GPUBID_RECORDED", "")
recorded = pytest.mark.skipif(
    not _FOLDER, reason="GPUBID_RECORDED does not name the folder of recordings: the comparison with them did not run"
)


def read(name: str) -> Any:
    return json.loads((pathlib.Path(_FOLDER) / "vast" / name).read_text(encoding="utf-8"))


def lines() -> list[dict[str, Any]]:
    path = pathlib.Path(_FOLDER) / "vast" / "cli_1.9.1_recorded_requests.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def kinds(row: dict[str, Any]) -> dict[str, str]:
    """Name the JSON type of every value that is not null."""
    words = {bool: "boolean", int: "number", float: "number", str: "string", list: "list", dict: "object"}
    return {key: words[type(value)] for key, value in row.items() if value is not None}


@recorded
async def test_2_every_recorded_request_finds_its_route() -> None:
    async with running_market() as market:
        offers = await market.offers()
        numbers = {55: offers[0]["id"], 56: offers[1]["id"]}
        made = [await market.rented(row["id"], row["min_bid"] * 1.2) for row in offers if row["gpu_frac"] == 1.0][:2]
        numbers |= {101: made[0], 102: made[1]}
        requests = lines()
        assert len(requests) > 100
        for request in requests:
            if request["path"].startswith("/s3/"):
                continue  # the stub's own address for results, not the vendor's
            path = "/".join(str(numbers.get(int(part), part)) if part.isdigit() else part
                            for part in request["path"].split("/"))  # fmt: skip
            query = {name: values[0] for name, values in request["q"].items()}
            answer = await market.call(request["m"], path, request["body"], **query)
            assert answer.status < 500, (request["m"], path, answer.raw)
            assert answer.content_type == "application/json", path
            refusal = answer.body if answer.status == 404 else {}
            assert not str(refusal.get("msg", "")).startswith("There is no"), (request["m"], path)


@recorded
async def test_15_an_instance_record_has_every_recorded_key(market: Market) -> None:
    offer = await market.cheapest()
    record = await market.instance(await market.rented(offer["id"], offer["min_bid"] * 1.2))
    for rung in read("bid_instances_ladder_2026-07-25.json")["rungs"]:
        real = rung["full_record"]
        assert real.keys() - record.keys() == set()
        assert record.keys() - real.keys() <= {"gpu_max_power"}
        shared = kinds(real).keys() & kinds(record).keys()
        assert {key: kinds(record)[key] for key in shared} == {key: kinds(real)[key] for key in shared}


@recorded
@pytest.mark.parametrize("kind", ["bid", "on-demand", "reserved"])
async def test_5_an_offer_row_has_every_recorded_key(market: Market, kind: str) -> None:
    row = (await market.offers(kind))[0]
    (full,) = read("offer_full_2024-07-30.json")["offers"]
    shorter = read("market_offers_2026-07-27.json")["offers"]
    for real in (full, *(offer for offers in shorter.values() for offer in offers)):
        assert real.keys() - row.keys() == set()
        shared = kinds(real).keys() & kinds(row).keys()
        assert {key: kinds(row)[key] for key in shared} == {key: kinds(real)[key] for key in shared}
        assert real["search"].keys() <= row["search"].keys()


@recorded
async def test_5_a_disk_row_has_every_recorded_key(market: Market) -> None:
    rows = (await market.call("POST", "/bundles/", {"type": "on-demand", "limit": 512})).body["offers"]
    disk = next(row for row in rows if row["resource_type"] == "disk")
    for real in read("disk_offers_2026-08-24.json")["offers"]:
        assert real.keys() - disk.keys() == set()
        nulls = {key for key, value in real.items() if value is None}
        assert {key for key in nulls if disk[key] is not None} == set()


@recorded
async def test_11_a_notice_has_every_recorded_key(market: Market) -> None:
    offer = await market.cheapest(gpu_frac={"eq": 1.0})
    made = await market.rented(offer["id"], offer["min_bid"] * 1.2)
    await market.running(made)
    await market.control("POST", "/rivals", {"machine_id": offer["machine_id"], "bid": offer["min_bid"] * 4})
    await market.advance(60.0)
    inbox = (await market.call("GET", "/notifications/inbox/")).body
    real = read("notifications_inbox_2026-08-16.json")
    assert {key for key in real if not key.startswith("_")} <= inbox.keys()
    ours = {row["notif_type"]: row for row in inbox["notifications"]}
    for row in real["notifications"]:
        if (own := ours.get(row["notif_type"])) is not None:
            assert row.keys() == own.keys()
            assert row["associated_id"].keys() == own["associated_id"].keys()
    assert {"outbid", "instance_started"} <= ours.keys() & {row["notif_type"] for row in real["notifications"]}
    types = (await market.call("GET", "/notification-types")).body["notification_types"]
    known = {row["slug"] for row in read("notification_types_2026-08-16.json")["notification_types"]}
    assert {row["slug"] for row in types} <= known
