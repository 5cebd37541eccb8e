"""The control API: time, rivals, weather, truth, and sentences for bad input."""

from typing import Any

import pytest

from tests.support.market import START, Market


async def test_time_moves_only_when_told(market: Market) -> None:
    assert (await market.truth())["now"] == START
    answer = await market.control("POST", "/advance", {"seconds": 90})
    assert answer.body == {"now": START + 90}
    assert answer.content_type == "application/json"


async def test_a_bidding_rival_outbids_and_leaves(market: Market) -> None:
    offer = await market.cheapest(gpu_frac={"eq": 1.0})
    made = await market.rented(offer["id"], offer["min_bid"] * 1.2)
    await market.running(made)
    rival = {"machine_id": offer["machine_id"], "gpus": offer["num_gpus"], "bid": offer["min_bid"] * 3}
    number = (await market.control("POST", "/rivals", rival)).body["id"]
    await market.advance(60.0)
    assert (await market.truth())["contracts"][0]["status"] == "stopped"
    assert (await market.control("DELETE", f"/rivals/{number}")).body == {"id": number}
    assert (await market.control("DELETE", f"/rivals/{number}")).status == 404


async def test_truth_tells_everything(market: Market) -> None:
    offer = await market.cheapest()
    bid = round(offer["min_bid"] * 1.3, 4)
    made = await market.rented(offer["id"], bid, label="job")
    await market.advance(3_600.0)
    truth = await market.truth()
    (contract,) = truth["contracts"]
    assert contract["id"] == made
    assert contract["label"] == "job"
    assert contract["machine_id"] == offer["machine_id"]
    assert contract["num_gpus"] == offer["num_gpus"]
    assert contract["is_bid"] is True
    assert contract["bid"] == pytest.approx(bid)
    assert contract["created"] == START
    assert contract["ended"] is None
    assert contract["charged"].keys() == {"gpu", "disk", "bandwidth"}
    assert truth["billing_now"] == [made]
    assert truth["charged_total"] == pytest.approx(sum(contract["charged"].values()))
    assert truth["credit"] == pytest.approx(market.world.climate.credit - truth["charged_total"])
    assert truth["calls"][-1] == {"time": START, "method": "PUT", "path": f"/api/v0/asks/{offer['id']}/", "status": 200}
    assert truth["search_rows"] > 0


async def test_turns_tell_when_each_rate_began_and_add_up_to_the_charges(market: Market) -> None:
    offer = await market.cheapest()
    made = await market.rented(offer["id"], round(offer["min_bid"] * 1.3, 4))
    await market.running(made)
    await market.advance(600.0)
    await market.call("PUT", f"/instances/{made}/", {"state": "stopped"})
    await market.advance(300.0)
    turns = (await market.control("GET", "/turns")).body["turns"]
    assert {each["contract_id"] for each in turns} == {made}
    assert turns[-1]["gpu"] == 0.0
    spans = zip(turns, [*(each["at"] for each in turns[1:]), START + 10_000.0], strict=True)
    dollars = sum(each["gpu"] * (end - each["at"]) / 3600.0 for each, end in spans)
    assert dollars > 0.0
    assert dollars == pytest.approx((await market.truth())["contracts"][0]["charged"]["gpu"])
    assert (await market.control("GET", "/turns", {"since": 5})).status == 400


async def test_weather_comes_goes_and_is_told(market: Market) -> None:
    first = await market.weather("html_403", route="GET /users")
    second = await market.weather("throttle_text", route="PUT", seconds=60)
    assert (await market.truth())["weather"] == [
        {"id": first, "fault": "html_403"},
        {"id": second, "fault": "throttle_text"},
    ]
    await market.advance(60.0)
    assert (await market.truth())["weather"] == [{"id": first, "fault": "html_403"}]
    assert (await market.control("DELETE", f"/weather/{first}")).body == {"id": first}
    assert (await market.control("DELETE", f"/weather/{first}")).status == 404
    await market.weather("malformed")
    await market.weather("truncated")
    assert (await market.control("DELETE", "/weather")).body == {"cleared": 2}
    assert (await market.call("GET", "/users/current")).status == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "word"),
    [
        ("POST", "/advance", {}, "seconds"),
        ("POST", "/advance", {"seconds": -1}, "seconds"),
        ("POST", "/advance", {"seconds": "soon"}, "seconds"),
        ("POST", "/advance", {"seconds": True}, "seconds"),
        ("POST", "/advance", {"seconds": 1, "minutes": 1}, "minutes"),
        ("POST", "/advance", b"{", "JSON"),
        ("POST", "/advance", [1], "object"),
        ("POST", "/rivals", {"bid": 0.5}, "machine_id"),
        ("POST", "/rivals", {"machine_id": 5}, "bid"),
        ("POST", "/rivals", {"machine_id": 5, "bid": 0.5, "on_demand": True}, "bid"),
        ("POST", "/rivals", {"machine_id": 5, "gpus": 0, "bid": 0.5}, "gpus"),
        ("POST", "/rivals", {"machine_id": 5, "on_demand": "yes"}, "on_demand"),
        ("POST", "/rivals", {"machine_id": -5, "bid": 0.5}, "machine_id"),
        ("POST", "/rivals", {"machine_id": 5, "bid": 0.5}, "host"),
        ("POST", "/weather", {}, "fault"),
        ("POST", "/weather", {"fault": "frogs"}, "frogs"),
        ("POST", "/weather", {"fault": ["frogs"]}, "frogs"),
        ("POST", "/weather", {"fault": "slow", "route": "GET /a /b"}, "route"),
        ("POST", "/weather", {"fault": "slow", "route": "FETCH /a"}, "route"),
        ("POST", "/weather", {"fault": "slow", "route": 5}, "route"),
        ("POST", "/weather", {"fault": "slow", "probability": 1.5}, "probability"),
        ("POST", "/weather", {"fault": "slow", "seconds": -1}, "seconds"),
        ("POST", "/weather", {"fault": "slow", "speed": 1}, "speed"),
        ("POST", "/weather", {"fault": "slow", "delay": "long"}, "delay"),
        ("POST", "/weather", {"fault": "slow", "at_seconds": 5}, "at_seconds"),
        ("POST", "/weather", {"fault": "reset", "when": "never"}, "when"),
        ("POST", "/weather", {"fault": "host_offline", "machine_id": 5}, "host"),
        ("POST", "/weather", {"fault": "slow", "count": 0}, "count"),
        ("POST", "/weather", {"fault": "slow", "count": 1.5}, "count"),
        ("POST", "/weather", {"fault": "no_credit", "count": 1}, "count"),
        ("POST", "/weather", {"fault": "throttle_retry_after", "retry_after": [5]}, "retry_after"),
        ("POST", "/weather", {"fault": "throttle_retry_after", "retry_after": "5\r\n"}, "retry_after"),
        ("POST", "/weather", {"fault": "label_edit", "label": 5}, "label"),
        ("POST", "/weather", {"fault": "paged_list", "rows": 0}, "rows"),
        ("POST", "/weather", {"fault": "field_lie"}, "field"),
        ("POST", "/weather", {"fault": "field_lie", "field": 5}, "field"),
        ("POST", "/weather", {"fault": "field_lie", "field": "price", "how": "boldly"}, "how"),
        ("POST", "/weather", {"fault": "field_lie", "field": "date", "how": "nan"}, "how"),
        ("POST", "/weather", {"fault": "field_lie", "field": "rows", "how": "set", "value": 1}, "how"),
        ("POST", "/weather", {"fault": "field_lie", "field": "price"}, "value"),
        ("POST", "/weather", {"fault": "field_lie", "field": "price", "value": [1]}, "value"),
        ("POST", "/weather", {"fault": "field_lie", "field": "price", "how": "nan", "value": 1}, "value"),
        ("POST", "/weather", {"fault": "field_lie", "field": "price", "how": "times", "value": "2"}, "value"),
        ("POST", "/weather", {"fault": "field_lie", "field": "date", "value": "now\r\nX: y"}, "value"),
        ("POST", "/weather", {"fault": "field_lie", "field": "price", "how": "nan", "instance": True}, "instance"),
    ],
)
async def test_bad_input_is_a_400_with_a_sentence(market: Market, method: str, path: str, body: Any, word: str) -> None:
    answer = await market.control(method, path, body)
    assert answer.status == 400
    assert word in answer.body["error"]
    assert (await market.truth())["now"] == START
    assert (await market.truth())["weather"] == []


async def test_an_unknown_route_is_a_404(market: Market) -> None:
    for method, path in [("GET", "/advance"), ("POST", "/truth"), ("DELETE", "/rivals"), ("GET", "/")]:
        answer = await market.control(method, path)
        assert answer.status == 404
        assert answer.body["error"]
