"""Checklist 9 to 15 over HTTP: create, money, eviction, resume, one face for many causes, pulls, the record's shape."""

import dataclasses
from typing import Any

import pytest

from agent.simulator.climate import Climate
from tests.support.market import START, STILL, Market, running_market, states

DISPLACED = ("exited", "stopped", "stopped", "stopped")
RUNNING = ("running", "running", "running", "running")


async def single(market: Market, **filters: Any) -> dict[str, Any]:
    """Give the cheapest host that is one offer of one GPU."""
    return await market.cheapest(gpu_frac={"eq": 1.0}, num_gpus={"eq": 1}, **filters)


def raised(floor: float, factor: float) -> float:
    return round(floor * factor + 0.00005, 4)


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
    assert (unknown.status, unknown.body["error"]) == (404, "no_such_ask")
    await market.rented(offer["id"], None)
    again = await market.rent(offer["id"], 100.0)
    assert (again.status, again.body["error"], again.body["ask_id"]) == (410, "no_such_ask", offer["id"])
    high = await market.rent(offer["id"], 128.5)
    assert (high.status, high.body["error"]) == (400, "invalid_price")
    low = await market.rent(offer["id"], 0.0001)
    assert (low.status, low.body["error"]) == (400, "invalid_price")


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


async def evicted(market: Market, *, on_demand: bool) -> tuple[dict[str, Any], dict[str, Any], float, int]:
    """Rent, run, and let a rival take the GPUs; give the record, the notice, the bid and the rival."""
    offer = await single(market)
    bid = raised(offer["min_bid"], 1.2)
    made = await market.rented(offer["id"], bid)
    await market.running(made)
    rival: dict[str, Any] = {"machine_id": offer["machine_id"]}
    rival |= {"on_demand": True} if on_demand else {"gpus": 1, "bid": round(bid * 2, 2)}
    number = (await market.control("POST", "/rivals", rival)).body["id"]
    await market.advance(120.0)
    notices = (await market.call("GET", "/notifications/inbox/")).body["notifications"]
    (notice,) = [row for row in notices if row["notif_type"] == "outbid"]
    return await market.instance(made), notice, bid, number


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


async def test_a_changed_bid_is_the_new_price(market: Market) -> None:
    offer = await single(market)
    made = await market.rented(offer["id"], raised(offer["min_bid"], 1.3))
    await market.running(made)
    path = f"/instances/bid_price/{made}/"
    lower = raised(offer["min_bid"], 1.1)
    assert (await market.call("PUT", path, {"client_id": "me", "price": lower})).body == {"success": True}
    record = await market.instance(made)
    assert record["dph_base"] == pytest.approx(lower)
    assert states(record) == RUNNING
    assert (await market.call("PUT", path, {"price": 0.0001})).body["msg"] == "Please set a bid price >= 0.001."
    assert (await market.call("PUT", path, {"price": 33.0})).status == 400
    assert (await market.call("PUT", path, {"client_id": "me", "price": None})).body == {"success": True}
    parked = await market.call("PUT", path, {"client_id": "me", "price": 0.001})
    assert parked.body == {"success": True}
    await market.advance(60.0)
    assert states(await market.instance(made)) == DISPLACED


async def test_a_bid_on_an_on_demand_contract_is_refused_softly(market: Market) -> None:
    offer = await single(market)
    made = await market.rented(offer["id"], None)
    answer = await market.call("PUT", f"/instances/bid_price/{made}/", {"price": 0.5})
    assert (answer.status, answer.body["success"]) == (200, False)


async def test_the_list_comes_in_pages_of_25_at_most() -> None:
    async with running_market(hosts=120, credit=1_000.0) as market:
        rows = [row for row in await market.offers() if row["gpu_frac"] == 1.0][:30]
        for number, row in enumerate(rows):
            await market.rented(row["id"], row["min_bid"] * 1.2, label=f"group-{number % 2}" if number else None)
        path, token, seen = "/api/v1/instances/", None, []
        for _ in range(10):
            query: dict[str, Any] = {"order_by": [{"col": "id", "dir": "asc"}], "limit": 100}
            if token:
                query["after_token"] = token
            page = (await market.call("GET", path, **query)).body
            assert page["total_instances"] == 30
            assert page["instances_found"] == len(page["instances"]) <= 25
            seen += [row["id"] for row in page["instances"]]
            if (token := page["next_token"]) is None:
                break
        assert seen == sorted(seen)
        assert len(set(seen)) == 30
        assert page["label_counts"] == {"": 1, "group-0": 14, "group-1": 15}
        assert len((await market.call("GET", path, limit=0)).body["instances"]) == 5
        down = (await market.call("GET", path, order_by=[{"col": "gpu_name", "dir": "desc"}])).body
        names = [row["gpu_name"] for row in down["instances"]]
        assert names == sorted(names, reverse=True)
        rest = (
            await market.call(
                "GET", path, order_by=[{"col": "gpu_name", "dir": "desc"}], after_token=down["next_token"]
            )
        ).body
        assert not {row["id"] for row in rest["instances"]} & {row["id"] for row in down["instances"]}
        narrow = (await market.call("GET", path, select_filters={"label": {"in": ["group-0"]}})).body
        assert narrow["total_instances"] == 14
        unlabelled = (await market.call("GET", path, select_filters={"label": {"in": [None]}})).body
        assert unlabelled["total_instances"] == 1
        columns = (await market.call("GET", path, select_cols=["id", "nothing"])).body["instances"][0]
        assert columns.keys() == {"id", "nothing"}
        assert columns["nothing"] is None


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"select_filters": {"dph_total": {"lt": 1}}}, "invalid_request"),
        ({"select_filters": {"num_gpus": {"eq": 1}}}, "invalid_request"),
        ({"select_filters": {"id": {"like": 1}}}, "invalid_request"),
        ({"order_by": [{"col": "dph_total"}]}, "invalid_request"),
        ({"select_filters": "{"}, "invalid_request"),
        ({"after_token": "nonsense"}, "invalid_token"),
    ],
)
async def test_a_bad_question_to_the_list_is_a_400(market: Market, query: dict[str, Any], code: str) -> None:
    offer = await single(market)
    await market.rented(offer["id"], 5.0)
    answer = await market.call("GET", "/api/v1/instances/", **query)
    assert (answer.status, answer.body["error"]) == (400, code)


async def test_labels(market: Market) -> None:
    offer = await single(market)
    made = await market.rented(offer["id"], 5.0, label="first")
    assert (await market.call("PUT", f"/instances/{made}/", {"label": "second"})).body == {"success": True}
    assert (await market.instance(made))["label"] == "second"
    long = await market.call("PUT", f"/instances/{made}/", {"label": "x" * 1_025})
    assert (long.status, long.body["error"]) == (400, "label_too_long")
    assert (await market.rent(offer["id"], 5.0, label="x" * 257)).status == 400


async def test_charges_come_by_contract_with_items_by_day_and_need_both_ends(market: Market) -> None:
    offer = await single(market)
    made = await market.rented(offer["id"], raised(offer["min_bid"], 1.1), label="job")
    await market.running(made)
    await market.advance(30 * 3_600.0)
    span = {"day": {"gte": START, "lte": START + 5 * 86_400}}
    answer = (await market.call("GET", "/charges/", select_filters=span, latest_first=False, limit=20)).body
    (row,) = answer["results"]
    assert (answer["count"], answer["total"], answer["next_token"]) == (1, 1, None)
    assert row["source"] == f"instance-{made}"
    assert row["metadata"] == {"label": "job"}
    assert {item["type"] for item in row["items"]} >= {"gpu", "disk"}
    assert all(" at $" in item["description"] for item in row["items"])
    total = sum(item["amount"] for item in row["items"])
    assert row["amount"] == round(total, 3)
    assert total == pytest.approx((await market.truth())["charged_total"], abs=1e-4)
    days = {item["start"] // 86_400 for item in row["items"]}
    assert len(days) == 2
    refused = await market.call("GET", "/charges/", select_filters={"day": {"gte": 1}})
    assert (refused.status, refused.body["msg"]) == (
        400,
        "Must provide both 'day' gte and lte filters for instance charges",
    )


async def test_invoices_show_what_was_paid_in(market: Market) -> None:
    span = {"when": {"gte": START - 60, "lte": START + 60}}
    answer = (await market.call("GET", "/api/v1/invoices/", select_filters=span)).body
    assert [row["amount"] for row in answer["results"]] == [-market.world.credit]
    bad = await market.call("GET", "/api/v1/invoices/", select_filters={})
    assert (bad.status, bad.body["success"], bad.body["results"]) == (200, False, [])


async def test_the_inbox_marks_what_was_seen(market: Market) -> None:
    await evicted(market, on_demand=False)
    inbox = (await market.call("GET", "/notifications/inbox/")).body
    times = [row["created_at"] for row in inbox["notifications"]]
    assert times == sorted(times, reverse=True)
    assert inbox["unread_count"] == len(times)
    assert {row["notif_type"] for row in inbox["notifications"]} == {"instance_started", "outbid"}
    assert len({row["event_id"] for row in inbox["notifications"]}) == len(times)
    await market.call("PUT", "/notifications/inbox/", {"seen_through_at": times[0]})
    assert (await market.call("GET", "/notifications/inbox/")).body["unread_count"] == 0


async def test_webhooks_are_stored_and_only_public_ones(market: Market) -> None:
    hook = {"name": "x", "webhook_url": "https://example.com/hook", "event_types": ["client:outbid"]}
    made = (await market.call("POST", "/webhooks/", hook)).body["webhook"]
    assert made["webhook_secret"]
    (shown,) = (await market.call("GET", "/webhooks/")).body["webhooks"]
    assert "webhook_secret" not in shown
    for url in ("http://example.com/", "https://localhost/x", "https://127.0.0.1/x", "https://10.0.0.8/"):
        assert (await market.call("POST", "/webhooks/", {**hook, "webhook_url": url})).status == 400
    for _ in range(3):
        assert (await market.call("POST", "/webhooks/", hook)).status == 200
    assert (await market.call("POST", "/webhooks/", hook)).status == 400
    assert (await market.call("DELETE", f"/webhooks/{made['id']}/", {})).body == {"success": True}
    assert (await market.call("DELETE", f"/webhooks/{made['id']}/", {})).status == 404


async def test_the_calibrated_market_serves_a_day() -> None:
    async with running_market(Climate(), hosts=50) as market:
        offer = await market.cheapest()
        made = await market.rented(offer["id"], raised(offer["min_bid"], 1.2))
        for _ in range(96):
            await market.advance(900.0)
            assert (await market.instance(made))["id"] == made
        truth = await market.truth()
        assert truth["charged_total"] > 0
        assert len([call for call in truth["calls"] if call["status"] == 200]) >= 98
