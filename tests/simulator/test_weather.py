"""Checklist 3: every fault by name, over real connections."""

import asyncio
import dataclasses
import json
from typing import Any

import aiohttp
import pytest

from agent.simulator import faults
from tests.support.market import START, STILL, Market, running_market, states

SEARCH = {"type": "bid", "limit": 5}


async def rented(market: Market, count: int = 1) -> list[int]:
    rows = [row for row in await market.offers() if row["gpu_frac"] == 1.0][:count]
    return [await market.rented(row["id"], row["min_bid"] * 1.2) for row in rows]


async def test_3_throttled_in_plain_text(market: Market) -> None:
    await market.weather("throttle_text")
    answer = await market.call("GET", "/users/current")
    assert (answer.status, answer.content_type, answer.raw) == (429, "text/plain", b"API requests too frequent")
    assert "Retry-After" not in answer.headers


async def test_3_throttled_in_json_with_and_without_a_hint(market: Market) -> None:
    bare = await market.weather("throttle_json")
    answer = await market.call("GET", "/users/current")
    assert (answer.status, answer.content_type) == (429, "application/json")
    assert answer.body == {"detail": "API requests too frequent endpoint threshold=1.0"}
    await market.control("DELETE", f"/weather/{bare}")
    await market.weather("throttle_json", retry_after=7)
    assert (await market.call("GET", "/users/current")).body["retry_after"] == 7


async def test_3_throttled_with_a_header(market: Market) -> None:
    await market.weather("throttle_retry_after", retry_after=12)
    answer = await market.call("GET", "/users/current")
    assert (answer.status, answer.headers["Retry-After"]) == (429, "12")
    assert answer.body["error"] == "rate_limit_exceeded"


async def test_3_the_search_quota_strikes_searches_only(market: Market) -> None:
    await market.weather("search_quota")
    answer = await market.call("POST", "/bundles/", SEARCH)
    assert (answer.status, answer.body["error"]) == (429, "search_quota_exceeded")
    assert int(answer.headers["X-RateLimit-Reset"]) % 86_400 == 0
    assert (await market.call("GET", "/users/current")).status == 200


async def test_3_a_proxys_403(market: Market) -> None:
    await market.weather("html_403")
    answer = await market.call("POST", "/bundles/", SEARCH)
    assert (answer.status, answer.content_type) == (403, "text/html")
    assert answer.raw.startswith(b"<html>")


@pytest.mark.parametrize(
    ("method", "path", "field", "empty"),
    [
        ("POST", "/bundles/", "offers", []),
        ("GET", "/instances/1/", "instances", None),
        ("GET", "/charges/", "results", []),
        ("PUT", "/instances/1/", "error", None),
    ],
)
async def test_3_a_soft_refusal_has_status_200_and_shows_nothing(
    market: Market, method: str, path: str, field: str, empty: Any
) -> None:
    await market.weather("soft_refusal")
    answer = await market.call(method, path, {} if method != "GET" else None)
    assert (answer.status, answer.body["success"], answer.body[field]) == (200, False, empty)


async def test_3_a_soft_refusal_rents_nothing(market: Market) -> None:
    offer = await market.cheapest()
    await market.weather("soft_refusal", route="PUT /asks")
    answer = await market.rent(offer["id"], 5.0)
    assert (answer.status, answer.body["success"]) == (200, False)
    assert (await market.truth())["contracts"] == []


async def test_3_a_server_error_before_changes_nothing(market: Market) -> None:
    offer = await market.cheapest()
    await market.weather("server_error_before", route="PUT /asks", status=502)
    assert (await market.rent(offer["id"], 5.0)).status == 502
    assert (await market.truth())["contracts"] == []


async def test_3_a_server_error_after_has_rented(market: Market) -> None:
    offer = await market.cheapest()
    await market.weather("server_error_after", route="PUT /asks")
    assert (await market.rent(offer["id"], 5.0)).status == 503
    assert len((await market.truth())["contracts"]) == 1


async def test_3_slow_answers_wait_on_the_simulated_clock(market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, waiting = market.simulator.clock, asyncio.Event()
    sleep = clock.sleep

    async def noticed(seconds: float) -> None:
        waiting.set()
        await sleep(seconds)

    monkeypatch.setattr(clock, "sleep", noticed)
    await market.weather("slow", delay=20)
    asked = asyncio.ensure_future(market.call("GET", "/users/current"))
    await waiting.wait()
    await market.advance(19.0)
    assert not asked.done()
    await market.advance(1.0)
    assert (await asked).status == 200
    assert (await market.truth())["calls"][0]["time"] == START + 20


async def test_3_a_truncated_body(market: Market) -> None:
    await market.weather("truncated")
    with pytest.raises(aiohttp.ClientPayloadError):
        await market.call("POST", "/bundles/", SEARCH)


async def test_3_a_malformed_body(market: Market) -> None:
    await market.weather("malformed")
    answer = await market.call("POST", "/bundles/", SEARCH)
    assert (answer.status, answer.content_type) == (200, "application/json")
    with pytest.raises(json.JSONDecodeError):
        _ = answer.body


@pytest.mark.parametrize(("when", "contracts"), [("before", 0), ("after", 1)])
async def test_3_a_dropped_connection(market: Market, when: str, contracts: int) -> None:
    offer = await market.cheapest()
    await market.weather("reset", when=when, route="POST /asks/bulk")
    with pytest.raises(aiohttp.ClientError):
        # POST: aiohttp sends it once. A PUT it would send twice.
        await market.call("POST", "/asks/bulk/", {"image": "u", "price": 5.0, "ids": [offer["id"]]})
    truth = await market.truth()
    assert len(truth["contracts"]) == contracts
    assert truth["calls"][-1]["status"] == 0


async def test_3_an_empty_list_looks_complete(market: Market) -> None:
    (made,) = await rented(market)
    await market.weather("empty_list", route="GET /instances")
    page = (await market.call("GET", "/api/v1/instances/")).body
    assert (page["instances"], page["total_instances"], page["next_token"]) == ([], 0, None)
    assert (await market.instance(made))["id"] == made


async def test_3_a_partial_list_looks_complete(market: Market) -> None:
    made = await rented(market, 4)
    await market.weather("partial_list", keep=0.5)
    page = (await market.call("GET", "/api/v1/instances/")).body
    assert [row["id"] for row in page["instances"]] == made[:2]
    assert (page["total_instances"], page["next_token"]) == (2, None)


async def test_3_lists_of_offers_may_lie_too(market: Market) -> None:
    fault = await market.weather("empty_list", route="POST /bundles")
    assert await market.offers() == []
    await market.control("DELETE", f"/weather/{fault}")
    whole = len(await market.offers())
    await market.weather("partial_list", route="POST /bundles", keep=0.5)
    assert len(await market.offers()) <= whole // 2 + 1


async def test_3_a_stale_list_shows_the_past(market: Market) -> None:
    (old,) = await rented(market)
    await market.weather("stale_list")
    await market.advance(60.0)
    await market.call("DELETE", f"/instances/{old}/", {})
    (new,) = await rented(market)
    assert [row["id"] for row in await market.instances()] == [old]
    await market.control("DELETE", "/weather")
    assert [row["id"] for row in await market.instances()] == [new]


async def test_3_an_unknown_status(market: Market) -> None:
    (made,) = await rented(market)
    fault = await market.weather("unknown_status")
    assert (await market.instance(made))["actual_status"] == "unknown"
    await market.control("DELETE", f"/weather/{fault}")
    await market.weather("unknown_status", status="levitating")
    assert (await market.instances())[0]["actual_status"] == "levitating"
    assert (await market.instances())[0]["cur_state"] == "running"


async def test_3_hanging_pulls_go_on_when_the_weather_clears(market: Market) -> None:
    await market.weather("stuck_loading", seconds=7_200)
    (made,) = await rented(market)
    await market.advance(7_100.0)
    assert states(await market.instance(made)) == ("loading", "running", "running", "running")
    await market.advance(200.0)
    await market.running(made)


async def test_3_a_fault_of_hosts_waits_for_a_host_of_ours(market: Market) -> None:
    await market.weather("host_offline", seconds=600)
    await market.advance(3_600.0)
    (made,) = await rented(market)
    await market.advance(1.0)
    assert (await market.instance(made))["actual_status"] == "offline"
    await market.advance(600.0)
    assert (await market.instance(made))["actual_status"] != "offline"


async def test_3_credit_comes_back(market: Market) -> None:
    before = market.world.credit
    await market.weather("no_credit", seconds=60)
    assert (await market.call("GET", "/users/current")).body["credit"] == 0
    await market.advance(60.0)
    assert (await market.call("GET", "/users/current")).body["credit"] == before


async def test_3_a_key_of_another_account(market: Market) -> None:
    (made,) = await rented(market)
    offer = await market.cheapest()
    own = (await market.call("GET", "/users/current")).body["id"]
    await market.weather("wrong_account")
    assert (await market.call("GET", "/users/current")).body["id"] != own
    assert await market.instances() == []
    assert (await market.call("GET", f"/instances/{made}/")).body == {"instances": None}
    assert (await market.call("DELETE", f"/instances/{made}/", {})).body["error"] == "no_such_instance"
    assert (await market.rent(offer["id"], 5.0)).body["error"] == "insufficient_credit"
    assert (await market.truth())["billing_now"] == [made]


async def test_3_a_revoked_key_is_answered_as_one_that_never_was(market: Market) -> None:
    (made,) = await rented(market)
    await market.weather("revoked_key")
    assert (await market.call("GET", "/users/current")).status == 401
    assert (await market.call("DELETE", f"/instances/{made}/", {})).body["error"] == "auth_error"
    assert (await market.truth())["billing_now"] == [made]


async def test_3_a_skewed_date(market: Market) -> None:
    await market.weather("clock_skew", skew=90)
    assert (await market.call("GET", "/users/current")).headers["Date"] == "Thu, 05 Nov 2026 00:01:30 GMT"


async def test_3_every_name_of_the_table_is_served(market: Market) -> None:
    needed = {"field_lie": {"field": "price", "how": "nan"}}
    for name in faults.PARAMETERS:
        await market.weather(name, seconds=1, **needed.get(name, {}))
        await market.control("DELETE", "/weather")
    assert (await market.call("GET", "/users/current")).status == 200


async def test_a_route_is_a_prefix(market: Market) -> None:
    for route, struck in [
        ("GET /users", ["user"]),
        ("/users/current", ["user"]),
        ("GET", ["user", "list"]),
        ("*", ["user", "list", "search"]),
        ("POST /bundles", ["search"]),
        ("GET /api/v1/instances", ["list"]),
    ]:
        fault = await market.weather("html_403", route=route)
        seen = {
            "user": await market.call("GET", "/users/current/"),
            "list": await market.call("GET", "/api/v1/instances/"),
            "search": await market.call("POST", "/bundles/", SEARCH),
        }
        assert [name for name, answer in seen.items() if answer.status == 403] == struck, route
        await market.control("DELETE", f"/weather/{fault}")


async def test_a_probability_is_drawn_alike_in_every_run() -> None:
    runs = []
    for _ in range(2):
        async with running_market() as market:
            await market.weather("throttle_text", probability=0.4)
            runs.append([(await market.call("GET", "/users/current")).status for _ in range(60)])
    assert runs[0] == runs[1]
    assert 10 < runs[0].count(429) < 40


async def test_a_climate_schedules_its_weather() -> None:
    outage: dict[str, Any] = {"at_seconds": 600, "fault": "server_error_before", "route": "*", "seconds": 300}
    async with running_market(dataclasses.replace(STILL, weather=(outage,))) as market:
        seen = []
        for _ in range(4):
            seen.append((await market.call("GET", "/users/current")).status)
            await market.advance(299.0 if len(seen) == 2 else 301.0)
        assert seen == [200, 200, 503, 200]


async def test_a_long_step_passes_every_edge_in_order() -> None:
    """A fault that begins and ends within one step has done its work in between."""
    broke: dict[str, Any] = {"at_seconds": 600, "fault": "no_credit", "seconds": 900}
    async with running_market(dataclasses.replace(STILL, weather=(broke,))) as market:
        (made,) = await rented(market)
        await market.advance(86_400.0)
        assert (await market.instance(made))["cur_state"] == "stopped"
        assert market.world.credit > 0
