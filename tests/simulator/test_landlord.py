"""Deliberate acts of hosts: rises, maintenance, announced ends, deposits with a discount; and volumes."""

import asyncio
import json
import pathlib

import pytest

from tests.support.contracts import single
from tests.support.market import Market
from tests.support.vendor import Vendor

RISES = "/instances/pending-price-increases/"
ACCEPT, REJECT = "/instances/accept-price-increase/", "/instances/reject-price-increase/"


async def held_on_demand(market: Market) -> int:
    """Rent the cheapest single GPU on demand and let it run; give its id."""
    offer = await single(market)
    made = await market.rented(offer["id"], None)
    await market.running(made)
    return made


async def charged(market: Market, instance_id: int) -> dict[str, float]:
    (row,) = [row for row in (await market.truth())["contracts"] if row["id"] == instance_id]
    return dict(row["charged"])


async def test_a_rise_is_pending_and_changes_nothing_until_it_is_accepted(market: Market) -> None:
    made = await held_on_demand(market)
    before = await market.instance(made)
    await market.control("POST", "/rises", {"machine_id": before["machine_id"], "factor": 1.5})
    envelope = (await market.call("GET", RISES)).body
    (row,) = envelope["pending_price_increases"]
    assert (envelope["count"], envelope["truncated"], row["contract_id"]) == (1, False, made)
    assert row["old_gpu_costpersec"] * 3600 == pytest.approx(before["dph_base"])
    assert row["new_gpu_costpersec"] * 3600 == pytest.approx(before["dph_base"] * 1.5)
    assert row["ask_end_date"] > row["contract_end_date"] == before["end_date"]
    pending = await market.instance(made)
    assert (pending["dph_base"], pending["end_date"]) == (before["dph_base"], before["end_date"])
    number = {"pending_price_increase_id": row["pending_price_increase_id"]}
    assert (await market.call("PUT", ACCEPT, {**number, "snapshot": 1})).status == 400
    answer = await market.call("PUT", ACCEPT, number)
    assert answer.body == {"success": True, **number, "contract_id": made}
    after = await market.instance(made)
    assert after["dph_base"] == pytest.approx(before["dph_base"] * 1.5)
    assert after["end_date"] == row["ask_end_date"]
    again = await market.call("PUT", ACCEPT, number)
    assert (again.status, again.body["error"]) == (404, "no_pending_price_increase")


async def test_a_rejected_rise_is_gone_and_the_contract_ends_at_its_old_date(market: Market) -> None:
    offer = await single(market)
    market.world.hosts[offer["machine_id"]].end_time = market.world.now + 7200.0
    made = await market.rented(offer["id"], None)
    await market.control("POST", "/rises", {"machine_id": offer["machine_id"], "factor": 2.0})
    (row,) = (await market.call("GET", RISES)).body["pending_price_increases"]
    number = {"pending_price_increase_id": row["pending_price_increase_id"]}
    assert (await market.call("PUT", REJECT, number)).status == 200
    assert (await market.call("GET", RISES)).body["pending_price_increases"] == []
    await market.advance(7300.0)
    assert (await market.instance(made))["cur_state"] == "stopped"


async def test_a_bid_is_asked_nothing_and_the_hosts_price_is_the_higher_one(market: Market) -> None:
    offer = await single(market)
    made = await market.rented(offer["id"], round(offer["min_bid"] * 1.1 + 0.0001, 4))
    asked = (await market.control("POST", "/rises", {"machine_id": offer["machine_id"], "factor": 1.5})).body
    assert asked == {"ids": []}
    assert (await market.call("GET", RISES)).body["pending_price_increases"] == []
    await market.call("DELETE", f"/instances/{made}/", {})
    (row,) = await market.offers("on-demand", machine_id={"eq": offer["machine_id"]}, gpu_frac={"eq": 1.0})
    assert row["dph_base"] > offer["min_bid"]


async def test_the_vendors_own_program_lists_and_accepts_a_rise(market: Market, tmp_path: pathlib.Path) -> None:
    vendor = Vendor(market.simulator.vast_url, tmp_path)
    made = await held_on_demand(market)
    machine = (await market.instance(made))["machine_id"]
    await market.control("POST", "/rises", {"machine_id": machine, "factor": 1.25})
    shown = await vendor.cli("show", "pending-price-increases", "--raw")
    (row,) = json.loads(shown.out)["pending_price_increases"]
    assert row["contract_id"] == made
    table = await vendor.cli("show", "pending-price-increases")
    assert str(made) in table.out


async def test_maintenance_is_told_twice_and_the_host_is_silent_and_free_meanwhile(market: Market) -> None:
    made = await held_on_demand(market)
    machine = (await market.instance(made))["machine_id"]
    await market.control("POST", "/maintenance", {"machine_id": machine, "after": 7200, "seconds": 1800})
    await market.advance(7200.0 - 60.0)
    kinds = [notice.kind.value for notice in market.world.inbox]
    assert kinds.count("maintenance") == kinds.count("upcoming_downtime") == 1
    shown = (await market.call("GET", "/notifications/inbox/")).body["notifications"]
    assert {row["notif_type"] for row in shown} == {"instance_started"}, "by default these go out by mail alone"
    await market.advance(120.0)
    assert (await market.instance(made))["actual_status"] == "offline"
    before = await charged(market, made)
    await market.advance(1500.0)
    assert await charged(market, made) == pytest.approx(before)
    await market.advance(600.0)
    assert (await market.instance(made))["actual_status"] == "running"


async def test_a_contract_near_its_end_is_told_a_day_before(market: Market) -> None:
    offer = await single(market)
    market.world.hosts[offer["machine_id"]].end_time = market.world.now + 90_000.0
    made = await market.rented(offer["id"], None)
    await market.advance(3000.0)
    assert "near_end" not in {notice.kind.value for notice in market.world.inbox}
    await market.advance(1000.0)
    (told,) = [notice for notice in market.world.inbox if notice.kind.value == "near_end"]
    assert told.contract_id == made


async def test_a_deposit_buys_a_discount_leaves_the_credit_at_once_and_comes_back(market: Market) -> None:
    made = await held_on_demand(market)
    host = market.world.contract(made).host
    host.credit_discount = 0.4
    listed = await market.instance(made)
    credit = (await market.call("GET", "/users/current")).body["credit"]
    month = listed["dph_base"] * 720
    deposit = min(50.0, month)
    answer = (await market.call("PUT", f"/instances/prepay/{made}/", {"amount": deposit})).body
    assert answer["success"] is True
    assert answer["timescale"] == pytest.approx(deposit / month)
    assert answer["discount_rate"] == pytest.approx(0.4 * deposit / month / 6)
    after = (await market.call("GET", "/users/current")).body["credit"]
    assert after == pytest.approx(credit - deposit)
    record = await market.instance(made)
    assert record["dph_base"] == pytest.approx(listed["dph_base"])
    saved = listed["dph_base"] * answer["discount_rate"]
    assert record["search"]["discountTotalHour"] == pytest.approx(saved)
    before = (await charged(market, made))["gpu"]
    await market.advance(3600.0)
    paid = (await charged(market, made))["gpu"] - before
    assert paid == pytest.approx(listed["dph_base"] - saved)
    assert (await market.call("GET", "/users/current")).body["credit"] == pytest.approx(after)
    balance = (await market.call("GET", f"/instances/balance/{made}/", owner="me")).body
    assert 0 < balance["refundable_deposit"] < deposit
    await market.call("DELETE", f"/instances/{made}/", {})
    truth = await market.truth()
    assert truth["credit"] == pytest.approx(100.0 - truth["charged_total"])


async def test_a_discount_ends_with_its_deposit(market: Market) -> None:
    made = await held_on_demand(market)
    market.world.contract(made).host.credit_discount = 0.4
    listed = (await market.instance(made))["dph_base"]
    await market.call("PUT", f"/instances/prepay/{made}/", {"amount": listed})
    await market.advance(7200.0)
    record = await market.instance(made)
    assert (record["search"]["discountTotalHour"], record["credit_balance"]) == (0, None)
    truth = await market.truth()
    assert truth["credit"] == pytest.approx(100.0 - truth["charged_total"])


async def test_what_cannot_be_prepaid_is_refused(market: Market) -> None:
    made = await held_on_demand(market)
    machine = (await market.instance(made))["machine_id"]
    offer = await single(market, machine_id={"neq": machine})
    bid = await market.rented(offer["id"], round(offer["min_bid"] * 1.1 + 0.0001, 4))
    assert (await market.call("PUT", f"/instances/prepay/{bid}/", {"amount": 5})).status == 400
    assert (await market.call("PUT", "/instances/prepay/1/", {"amount": 5})).status == 404
    much = await market.call("PUT", f"/instances/prepay/{made}/", {"amount": 5000})
    assert much.body["error"] == "insufficient_credit"


async def test_a_volume_bills_until_it_is_deleted_and_is_no_instance(market: Market, tmp_path: pathlib.Path) -> None:
    vendor = Vendor(market.simulator.vast_url, tmp_path)
    offers = (await market.call("POST", "/volumes/search/", {"disk_space": {"gte": 20}, "limit": 5})).body["offers"]
    assert [row["storage_cost"] for row in offers] == sorted(row["storage_cost"] for row in offers)
    made = await vendor.cli("create", "volume", str(offers[0]["id"]), "--size", "20", "--name", "data")
    assert made.code == 0, made.err
    (volume,) = (await market.call("GET", "/volumes", owner="me", type="all_volume")).body["volumes"]
    assert (volume["label"], volume["disk_space"]) == ("data", 20)
    table = await vendor.cli("show", "volumes")
    assert str(volume["id"]) in table.out
    await market.advance(36_000.0)
    truth = await market.truth()
    cost = offers[0]["storage_cost"] * 20 / 720 * 10
    assert truth["charged_total"] == pytest.approx(cost)
    assert truth["credit"] == pytest.approx(100.0 - cost)
    assert await market.instances() == []
    day = market.world.now
    filters = {"day": {"gte": int(day - 86_400), "lte": int(day)}}
    (line,) = (await market.call("GET", "/charges/", select_filters=filters)).body["results"]
    assert (line["type"], line["source"]) == ("volume", f"volume-{volume['id']}")
    only = (await market.call("GET", "/charges/", select_filters={**filters, "type": {"in": ["instance"]}})).body
    assert only["results"] == []
    removed = await vendor.cli("delete", "volume", str(volume["id"]))
    assert removed.code == 0, removed.err
    await market.advance(36_000.0)
    assert (await market.truth())["charged_total"] == pytest.approx(cost, rel=0.01)
    assert (await market.call("DELETE", "/volumes/", {"id": volume["id"]})).status == 404


async def test_volumes_that_cannot_be_had(market: Market) -> None:
    (offer,) = (await market.call("POST", "/volumes/search/", {"limit": 1})).body["offers"]
    answers = await asyncio.gather(
        market.call("PUT", "/volumes/", {"id": 5, "size": 10}),
        market.call("PUT", "/volumes/", {"id": offer["id"], "size": 10_000_000}),
        market.call("PUT", "/volumes/", {"size": 10}),
        market.call("DELETE", "/volumes/", {}),
    )
    assert [answer.status for answer in answers] == [404, 400, 400, 400]
