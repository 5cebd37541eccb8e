"""Checklist 5 to 8 over HTTP: slices, prices, samples, the echo of a held slice, rivals."""

import collections
import re
from typing import Any

import msgspec
import pytest

from agent.simulator.vast.world import World
from tests.support import whole_market
from tests.support.market import START, STILL, Market, running_market


async def everything(market: Market, kind: str = "bid") -> list[dict[str, Any]]:
    return list(msgspec.json.decode(whole_market.encoded(market.world, kind))["offers"])


async def test_5_one_host_has_overlapping_slices_with_lasting_ids(market: Market) -> None:
    rows = await market.offers("on-demand", rentable=None)
    by_host = collections.defaultdict(list)
    for row in rows:
        by_host[row["machine_id"]].append(row)
    crowded = max(by_host.values(), key=len)
    assert len({row["num_gpus"] for row in crowded}) > 1
    largest = max(crowded, key=lambda row: row["num_gpus"])
    assert all(set(row["gpu_ids"]) <= set(largest["gpu_ids"]) for row in crowded if largest["gpu_frac"] == 1.0)
    assert len({round(row["dph_base"] / row["num_gpus"], 9) for row in crowded}) == 1
    for row in crowded:
        assert row["num_gpus"] / row["gpu_frac"] == pytest.approx(largest["num_gpus"] / largest["gpu_frac"])
    await market.advance(3_600.0)
    assert {row["id"] for row in await market.offers("on-demand", rentable=None)} == {row["id"] for row in rows}


async def test_5_prices_add_up(market: Market) -> None:
    for kind in ("bid", "ondemand"):
        for row in await everything(market, kind):
            assert row["dph_total"] == row["dph_base"] + row["storage_total_cost"]
            assert row["storage_total_cost"] == row["storage_cost"] * 8.0 / 720.0
            assert row["id"] == row["ask_contract_id"]
            if row["num_gpus"]:
                assert row["dlperf_per_dphtotal"] == pytest.approx(row["dlperf"] / row["dph_total"])


async def test_5_some_floors_stand_above_the_ask() -> None:
    async with running_market(hosts=400) as market:
        rows = [row for row in await everything(market, "ondemand") if row["min_bid"] is not None and row["num_gpus"]]
        above = [row for row in rows if row["min_bid"] >= row["dph_base"]]
        assert 0 < len(above) < len(rows) / 2


async def test_5_some_rows_cannot_be_rented_and_some_are_only_disk(market: Market) -> None:
    rows = (await market.call("POST", "/bundles/", {"type": "on-demand", "limit": 512})).body["offers"]
    assert {row["rentable"] for row in rows} == {True, False}
    disks = [row for row in rows if row["resource_type"] == "disk"]
    assert disks
    for row in disks:
        assert (row["num_gpus"], row["gpu_name"], row["min_bid"], row["cpu_ram"]) == (0, "N/A", None, 0)
    assert not [row for row in await market.offers("on-demand") if row["resource_type"] == "disk"]


async def test_6_without_a_limit_64_rows_and_never_more_than_512() -> None:
    async with running_market(hosts=500) as market:
        for limit, most in ((None, 64), (20, 20), (512, 512), (100_000, 512)):
            answer = await market.call("POST", "/bundles/", {"type": "on-demand", "limit": limit})
            assert len(answer.body["offers"]) == most


async def test_6_a_sample_is_sorted_only_after_it_was_drawn() -> None:
    async with running_market(hosts=500) as market:
        cheapest = min(row["dph_total"] for row in await everything(market, "ondemand") if row["num_gpus"])
        question = {"type": "on-demand", "num_gpus": {"gte": 1}, "order": [["dph_total", "asc"]]}
        seen = []
        for _ in range(6):
            prices = [row["dph_total"] for row in (await market.call("POST", "/bundles/", question)).body["offers"]]
            assert prices == sorted(prices)
            seen.append(prices)
        assert len({prices[0] for prices in seen}) > 1
        assert any(prices[0] > cheapest for prices in seen)


async def test_6_the_same_calls_draw_the_same_samples() -> None:
    drawn = []
    for _ in range(2):
        async with running_market(hosts=200) as market:
            answers = [(await market.call("POST", "/bundles/", {"type": "bid"})).raw for _ in range(4)]
        drawn.append(answers)
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) == 4


async def test_6_now_and_then_an_offer_stands_twice() -> None:
    async with running_market(hosts=60) as market:
        doubled = 0
        for _ in range(120):
            rows = (await market.call("POST", "/bundles/", {"type": "on-demand"})).body["offers"]
            assert len(rows) <= 64
            counts = collections.Counter(row["id"] for row in rows)
            for twin in (number for number, count in counts.items() if count > 1):
                doubled += 1
                assert len({row["score"] for row in rows if row["id"] == twin}) == 2
        assert 0 < doubled < 60


async def test_filters_of_every_kind(market: Market) -> None:
    rows = await market.offers("on-demand", rentable=None)
    some = rows[len(rows) // 2]

    async def found(**filters: Any) -> set[int]:
        return {row["id"] for row in await market.offers("on-demand", **{"rentable": None, **filters})}

    def expected(test: Any) -> set[int]:
        return {row["id"] for row in rows if test(row)}

    country = some["geolocation"].rsplit(", ", 1)[-1]
    assert await found(gpu_name={"eq": some["gpu_name"]}) == expected(lambda row: row["gpu_name"] == some["gpu_name"])
    assert await found(gpu_name={"neq": some["gpu_name"]}) == expected(lambda row: row["gpu_name"] != some["gpu_name"])
    assert await found(num_gpus={"in": ["2", 4]}) == expected(lambda row: row["num_gpus"] in (2, 4))
    assert await found(num_gpus={"notin": [1], "gte": 1}) == expected(lambda row: row["num_gpus"] != 1)
    assert await found(dph_total={"gt": 0.2, "lte": "1"}) == expected(lambda row: 0.2 < row["dph_total"] <= 1)
    assert await found(verified={"eq": True}) == expected(lambda row: row["verification"] == "verified")
    assert await found(verified={"eq": False}) == expected(lambda row: row["verification"] != "verified")
    assert await found(datacenter={"eq": True}) == expected(lambda row: row["hosting_type"] == 1)
    assert await found(geolocation={"in": [country]}) == expected(lambda row: row["geolocation"].endswith(country))
    assert await found(geolocation={"notin": [country]}) == expected(
        lambda row: not row["geolocation"].endswith(country)
    )
    assert await found(reliability2={"gte": "0.99"}) == expected(lambda row: row["reliability"] >= 0.99)
    assert await found(duration={"gt": 86_400 * 30}) == expected(lambda row: row["duration"] > 86_400 * 30)
    assert await found(driver_version={"gte": "550.0.0"}) == expected(lambda row: row["driver_vers"] >= 550_000_000)
    assert await found(static_ip={"eq": "true"}) == expected(lambda row: row["static_ip"] is True)
    assert await found(external={"eq": False}) == {row["id"] for row in rows}
    assert await found(ask_contract_id={"eq": some["id"]}) == {some["id"]}


async def test_the_id_filter_and_underscores_match_nothing(market: Market) -> None:
    (name, _), *_ = collections.Counter(row["gpu_name"] for row in await market.offers()).most_common()
    assert re.search(r"\s", name)
    assert not await market.offers(gpu_name={"eq": name.replace(" ", "_")})
    assert not await market.offers(id={"eq": (await market.cheapest())["id"]})


async def test_storage_is_8_gb_unless_asked_for(market: Market) -> None:
    offer = await market.cheapest()
    (row,) = await market.offers(ask_contract_id={"eq": offer["id"]}, allocated_storage=30.0)
    assert offer["storage_total_cost"] == offer["storage_cost"] * 8.0 / 720.0
    assert row["storage_total_cost"] == row["storage_cost"] * 30.0 / 720.0
    huge = await market.offers(allocated_storage=1_500.0)
    assert all(row["disk_space"] >= 1_500.0 for row in huge)


async def test_every_way_to_ask(market: Market) -> None:
    question = {"type": "bid", "num_gpus": {"eq": 1}, "rentable": {"eq": True}, "limit": 512}
    ids = {row["id"] for row in await market.offers(num_gpus={"eq": 1})}
    wrapped = {"select_cols": ["id", "min_bid", "nothing"], "q": question}
    narrow = (await market.call("PUT", "/search/asks/", wrapped)).body["offers"]
    assert {row["id"] for row in narrow} == ids
    assert narrow[0].keys() == {"id", "min_bid", "nothing"}
    for path in ("/bundles/", "/search/asks/"):
        assert {row["id"] for row in (await market.call("GET", path, q=question)).body["offers"]} == ids


async def test_7_the_floor_of_a_held_slice_becomes_the_holders_bid_late(market: Market) -> None:
    offer = await market.cheapest(gpu_frac={"eq": 1.0}, num_gpus={"eq": 1})
    bid = round(offer["min_bid"] * 1.3 + 0.0004, 4)
    await market.rented(offer["id"], bid)

    async def floor() -> float | None:
        rows = await market.offers(rentable=None, ask_contract_id={"eq": offer["id"]})
        return rows[0]["min_bid"] if rows else None

    assert await floor() == pytest.approx(offer["min_bid"])
    await market.advance(45 * 60.0)
    assert await floor() == pytest.approx(round(bid, 3))


async def test_7_nothing_is_listed_while_an_on_demand_renter_holds_it(market: Market) -> None:
    offer = await market.cheapest()
    rival = await market.control("POST", "/rivals", {"machine_id": offer["machine_id"], "on_demand": True})
    assert rival.status == 200
    await market.advance(60.0)
    assert not await market.offers(machine_id={"eq": offer["machine_id"]})
    await market.control("DELETE", f"/rivals/{rival.body['id']}")
    await market.advance(3_600.0)
    assert await market.offers(machine_id={"eq": offer["machine_id"]})


async def test_8_rivals_of_the_climate_take_and_leave_by_themselves() -> None:
    from agent.simulator.climate import Climate

    async with running_market(Climate(), hosts=50) as market:
        before = {row["id"] for row in await market.offers()}
        await market.advance(6 * 3_600.0)
        after = {row["id"] for row in await market.offers()}
        assert before - after
        assert after - before


async def test_the_whole_market_can_be_encoded() -> None:
    world = World(STILL, seed=3, start=START, hosts=300)
    raw = whole_market.encoded(world, "bid")
    rows = msgspec.json.decode(raw)["offers"]
    assert len(rows) > 300
    assert 1_500 < len(raw) / len(rows) < 3_500
