"""Checklist 9 to 15 over HTTP: create, money, eviction, resume, one face for many causes, pulls, the record's shape."""

import dataclasses

import pytest

from tests.support.contracts import DISPLACED, RUNNING, evicted, raised, single
from tests.support.market import START, STILL, Market, running_market, states


async def test_9_a_bid_below_the_floor_leaves_a_stopped_contract_that_bills(market: Market) -> None:
    offer = await single(market)
    answer = await market.rent(offer["id"], round(offer["min_bid"] * 0.9, 4))
    left = answer.body["new_contract"]
    assert answer.status == 200
    assert answer.body == {"success": False, "new_contract": left, "error": None, "msg": None}
    record = await market.instance(left)
    assert states(record) == (None, "stopped", "stopped", "stopped")
    await market.advance(3_600.0)
    truth = await market.truth()
    assert truth["billing_now"] == [left]
    (contract,) = truth["contracts"]
    assert contract["charged"]["disk"] > 0
    assert contract["charged"]["gpu"] == 0


async def test_9_the_answer_does_not_tell_bid_from_on_demand(market: Market) -> None:
    first, second = [row for row in await market.offers() if row["gpu_frac"] == 1.0 and row["num_gpus"] == 1][:2]
    bid = (await market.rent(first["id"], raised(first["min_bid"], 1.1))).body
    on_demand = (await market.rent(second["id"], None)).body
    assert bid.keys() == on_demand.keys() == {"success", "new_contract", "error", "msg", "instance_api_key"}
    assert (await market.instance(bid["new_contract"]))["is_bid"] is True
    assert (await market.instance(on_demand["new_contract"]))["is_bid"] is False


async def test_9_refusals_of_a_create(market: Market) -> None:
    offer = await single(market)
    unknown = await market.rent(1, 0.2)
    assert (unknown.status, unknown.body["error"]) == (404, "invalid_args")
    assert "no_such_ask" in unknown.body["msg"]
    await market.rented(offer["id"], None)
    again = await market.rent(offer["id"], 100.0)
    assert (again.status, again.body["error"], again.body["ask_id"]) == (410, "no_such_ask", offer["id"])
    high = await market.rent(offer["id"], 128.5)
    assert (high.status, high.body["error"]) == (400, "invalid_price")
    low = await market.rent(offer["id"], 0.0001)
    assert (low.status, low.body["error"]) == (400, "invalid_price")


async def test_9_a_start_script_has_4048_characters_at_most(market: Market) -> None:
    offer = await market.cheapest()
    long, short = [await market.rent(offer["id"], 5.0, onstart="#" * length) for length in (4049, 4048)]
    assert (long.status, long.body["error"], short.body["success"]) == (400, "invalid_args", True)


async def test_9_no_credit_refuses_a_create() -> None:
    async with running_market(credit=0.0) as market:
        offer = await single(market)
        answer = await market.rent(offer["id"], offer["min_bid"])
        assert (answer.status, answer.body["error"]) == (400, "insufficient_credit")
        assert answer.body["msg"] == "Your account lacks credit; see the billing page."


async def test_9_search_and_create_in_one_is_on_demand(market: Market) -> None:
    question = {"num_gpus": {"eq": "1"}, "rentable": {"eq": True}, "type": "on-demand"}
    answer = await market.call("PUT", "/launch_instance/", {"image": "u", "disk": 10, "q": question})
    assert answer.body["success"] is True
    assert (await market.instance(answer.body["new_contract"]))["is_bid"] is False


async def test_9_many_at_once(market: Market) -> None:
    rows = [row for row in await market.offers() if row["gpu_frac"] == 1.0][:2]
    body = {"image": "u", "disk": 10, "price": 50.0, "ids": [row["id"] for row in rows]}
    made = (await market.call("POST", "/asks/bulk/", body)).body["new_contracts"]
    assert {row["id"] for row in await market.instances()} == set(made)


async def test_10_a_bid_pays_itself_and_never_more_than_the_ask(market: Market) -> None:
    rows = [row for row in await market.offers("on-demand") if row["gpu_frac"] == 1.0 and row["num_gpus"] == 1]
    modest, lavish = [row for row in rows if row["min_bid"] and row["min_bid"] * 1.1 < row["dph_base"]][:2]
    paid = raised(modest["min_bid"], 1.05)
    first = await market.instance(await market.rented(modest["id"], paid))
    second = await market.instance(await market.rented(lavish["id"], round(lavish["dph_base"] * 3, 4)))
    assert first["dph_base"] == pytest.approx(paid)
    assert second["dph_base"] == pytest.approx(lavish["dph_base"])
    assert first["dph_total"] == first["dph_base"] + first["storage_total_cost"]
    assert first["min_bid"] == pytest.approx(modest["min_bid"])


async def test_10_the_cap_can_be_switched_off() -> None:
    async with running_market(dataclasses.replace(STILL, is_bid_capped=False)) as market:
        offer = await market.cheapest("on-demand", gpu_frac={"eq": 1.0})
        bid = round(offer["dph_base"] * 3, 4)
        assert (await market.instance(await market.rented(offer["id"], bid)))["dph_base"] == pytest.approx(bid)


async def test_10_gpu_is_charged_while_running_and_disk_always(market: Market) -> None:
    offer = await single(market)
    bid = raised(offer["min_bid"], 1.1)
    made = await market.rented(offer["id"], bid, disk=100.0)
    await market.running(made)
    (before,) = (await market.truth())["contracts"]
    credit = (await market.call("GET", "/users/current")).body["credit"]
    await market.advance(3_600.0)
    (after,) = (await market.truth())["contracts"]
    gpu = after["charged"]["gpu"] - before["charged"]["gpu"]
    disk = after["charged"]["disk"] - before["charged"]["disk"]
    assert gpu == pytest.approx(bid)
    assert disk == pytest.approx(offer["storage_cost"] * 100.0 / 720.0)
    assert credit - (await market.call("GET", "/users/current")).body["credit"] >= gpu + disk - 1e-9
    await market.call("PUT", f"/instances/{made}/", {"state": "stopped"})
    await market.advance(3_600.0)
    (stopped,) = (await market.truth())["contracts"]
    assert stopped["charged"]["gpu"] == pytest.approx(after["charged"]["gpu"])
    assert stopped["charged"]["disk"] == pytest.approx(after["charged"]["disk"] + disk)
    record = await market.instance(made)
    assert record["instance"]["gpuCostPerHour"] == 0
    assert record["search"]["gpuCostPerHour"] == pytest.approx(bid)


async def test_10_an_empty_account_stops_everything() -> None:
    async with running_market(credit=0.05) as market:
        offer = await single(market, min_bid={"gte": 0.05})
        made = await market.rented(offer["id"], None)
        await market.running(made)
        await market.advance(4 * 3_600.0)
        assert states(await market.instance(made)) == DISPLACED
        assert (await market.call("GET", "/users/current")).body["credit"] <= 0
        start = await market.call("PUT", f"/instances/{made}/", {"state": "running"})
        assert (start.status, start.body["error"]) == (400, "missing_billing")


async def test_11_outbid(market: Market) -> None:
    record, notice, bid, _ = await evicted(market, on_demand=False)
    assert states(record) == DISPLACED
    assert record["status_msg"].startswith("success, running docker.io/ubuntu_22.04/ssh")
    about = notice["associated_id"]
    assert about["instance_id"] == record["id"]
    assert about["your_bid"] == round(bid, 2)
    assert about["new_min_bid"] == round(bid * 2, 2)
    assert notice["user_context"] == "client"
    assert notice["created_at"] > START


async def test_11_an_on_demand_renter_looks_the_same(market: Market) -> None:
    record, notice, _, _ = await evicted(market, on_demand=True)
    assert states(record) == DISPLACED
    (row,) = await market.offers("on-demand", rentable=None, machine_id={"eq": record["machine_id"]})
    assert notice["associated_id"]["new_min_bid"] == pytest.approx(row["dph_base"], abs=0.011)


async def test_12_a_paused_contract_resumes_when_the_rival_leaves(market: Market) -> None:
    record, _, _, rival = await evicted(market, on_demand=False)
    await market.control("DELETE", f"/rivals/{rival}")
    again = await market.running(record["id"])
    assert states(again) == RUNNING
    kinds = [row["notif_type"] for row in (await market.call("GET", "/notifications/inbox/")).body["notifications"]]
    assert kinds[0] == "instance_resumed"
    assert kinds.count("instance_started") == 1


async def test_12_a_higher_bid_resumes_it(market: Market) -> None:
    record, _, bid, _ = await evicted(market, on_demand=False)
    answer = await market.call("PUT", f"/instances/bid_price/{record['id']}/", {"price": round(bid * 2.2, 4)})
    assert answer.body == {"success": True}
    await market.running(record["id"])


async def test_12_a_refused_start_is_queued_until_stop(market: Market) -> None:
    record, _, _, rival = await evicted(market, on_demand=True)
    path = f"/instances/{record['id']}/"
    start = await market.call("PUT", path, {"state": "running"})
    assert (start.status, start.body["success"], start.body["error"]) == (200, False, "resources_unavailable")
    assert states(await market.instance(record["id"])) == DISPLACED
    await market.call("PUT", path, {"state": "stopped"})
    await market.control("DELETE", f"/rivals/{rival}")
    await market.advance(6 * 3_600.0)
    assert states(await market.instance(record["id"])) == DISPLACED
    assert (await market.call("PUT", path, {"state": "running"})).body == {"success": True}
    await market.running(record["id"])


async def test_13_stop_credit_and_the_end_of_the_contract_look_like_outbid(market: Market) -> None:
    offer = await single(market, duration={"lt": 86_400.0 * 60})
    made = await market.rented(offer["id"], raised(offer["min_bid"], 1.1))
    await market.running(made)
    await market.call("PUT", f"/instances/{made}/", {"state": "stopped"})
    stopped = states(await market.instance(made))
    await market.call("PUT", f"/instances/{made}/", {"state": "running"})
    await market.running(made)
    fault = await market.weather("no_credit")
    await market.advance(300.0)
    broke = states(await market.instance(made))
    await market.control("DELETE", f"/weather/{fault}")
    await market.call("PUT", f"/instances/{made}/", {"state": "running"})
    record = await market.running(made)
    await market.advance(record["duration"] + 60.0)
    expired = await market.instance(made)
    assert stopped == broke == states(expired) == DISPLACED
    assert expired["duration"] < 0


async def test_13_an_offline_host_costs_nothing_and_comes_back(market: Market) -> None:
    offer = await single(market)
    made = await market.rented(offer["id"], raised(offer["min_bid"], 1.1))
    await market.running(made)
    await market.weather("host_offline", seconds=1_800)
    await market.advance(60.0)
    assert states(await market.instance(made)) == ("offline", "running", "running", "running")
    truth = await market.truth()
    assert truth["billing_now"] == []
    await market.advance(1_700.0)
    assert (await market.truth())["charged_total"] == truth["charged_total"]
    await market.advance(120.0)
    await market.running(made)


async def test_13_a_host_that_is_gone_takes_its_contracts_along(market: Market) -> None:
    offer = await single(market)
    made = await market.rented(offer["id"], raised(offer["min_bid"], 1.1))
    await market.weather("host_gone", machine_id=offer["machine_id"])
    assert (await market.call("GET", f"/instances/{made}/")).body == {"instances": None}
    assert await market.instances() == []
    stale = await market.rent(offer["id"], 1.0)
    assert (stale.status, stale.body["error"]) == (400, "no_such_ask")


async def test_14_the_image_is_pulled_before_it_runs(market: Market) -> None:
    offer = await single(market)
    made = await market.rented(offer["id"], raised(offer["min_bid"], 1.1))
    seen = [states(await market.instance(made))]
    while seen[-1] != RUNNING:
        assert (await market.truth())["contracts"][0]["charged"]["gpu"] == 0
        await market.advance(10.0)
        seen.append(states(await market.instance(made)))
    order = list(dict.fromkeys(status for status, *_ in seen))
    assert order == [None, "loading", "running"]


async def test_14_a_failed_pull_is_created_and_stopped_with_the_daemons_words(market: Market) -> None:
    await market.weather("pull_failure")
    offer = await single(market)
    made = await market.rented(offer["id"], raised(offer["min_bid"], 1.1))
    await market.advance(3 * 3_600.0)
    record = await market.instance(made)
    assert states(record) == ("created", "stopped", "stopped", "stopped")
    assert "error" in record["status_msg"].lower()


async def test_14_the_create_start_race() -> None:
    async with running_market(dataclasses.replace(STILL, race_probability=1.0)) as market:
        offer = min(await market.offers(gpu_frac={"eq": 1.0}), key=lambda row: row["inet_down"])
        made = await market.rented(offer["id"], offer["min_bid"] * 1.2, image="pytorch/pytorch:2.4.0")
        assert states(await market.instance(made))[1:] == ("running", "running", "running")
        await market.advance(3 * 3_600.0)
        assert states(await market.instance(made))[1:] == ("stopped", "stopped", "stopped")
        await market.call("PUT", f"/instances/{made}/", {"state": "running"})
        await market.running(made)


async def test_15_the_record_has_what_the_vendors_program_needs(market: Market) -> None:
    offer = await single(market)
    made = await market.rented(
        offer["id"], raised(offer["min_bid"], 1.1), env={"A": "b", "-p 8080:8080": "1"}, label="job", onstart="sleep 1"
    )
    early = await market.instance(made)
    assert early["start_date"] == START
    assert early["extra_env"] == [["A", "b"], ["-p 8080:8080", "1"]]
    assert (early["label"], early["onstart"], early["image_uuid"]) == ("job", "sleep 1", "ubuntu:22.04")
    assert early["duration"] == early["end_date"] - START
    assert early["uptime_mins"] is None
    assert "ports" not in early
    assert "ask_contract_id" not in early
    late = await market.running(made)
    assert late["ports"]
    assert late["ssh_host"]
    assert late["duration"] == late["end_date"] - market.world.now
    (listed,) = await market.instances()
    assert {**listed, "label": None} == {**(await market.instance(made)), "label": None}
