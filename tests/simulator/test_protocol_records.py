"""The surface's answers about contracts: bids, pages of the list, labels, charges, invoices, inbox, webhooks."""

from typing import Any

import pytest

from agent.simulator.climate import Climate
from tests.support.contracts import DISPLACED, RUNNING, evicted, raised, single
from tests.support.market import START, Market, running_market, states


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


async def test_scheduled_jobs_are_a_bare_list_and_templates_are_counted(market: Market) -> None:
    jobs = await market.call("GET", "/commands/schedule_job/")
    assert (jobs.status, jobs.body, jobs.content_type) == (200, [], "application/json")
    templates = await market.call("GET", "/template/", select_cols=["*"], select_filters={})
    assert templates.body == {"success": True, "templates": [], "templates_found": 0}


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
