"""Checklist 1, 2 and 4 of the vendor's protocol, and who may call."""

import json
import ssl
from typing import Any

import aiohttp
import pytest

from agent.simulator.climate import Climate
from agent.simulator.vast.http import call_gate
from tests.support.market import START, Market, running_market, states

BID_SEARCH = {"rentable": {"eq": True}, "type": "bid", "num_gpus": {"gte": "1"}}


async def test_1_every_answer_is_a_json_object_with_the_bare_content_type(market: Market) -> None:
    offer = await market.cheapest()
    made = await market.rented(offer["id"], offer["min_bid"])
    calls: list[tuple[str, str, Any]] = [
        ("POST", "/bundles/", BID_SEARCH),
        ("PUT", "/search/asks/", {"select_cols": ["*"], "q": BID_SEARCH}),
        ("GET", "/api/v1/instances/", None),
        ("GET", f"/instances/{made}/", None),
        ("GET", "/users/current", None),
        ("GET", "/notifications/inbox/", None),
        ("PUT", f"/instances/{made}/", {"state": "stopped"}),
        ("DELETE", f"/instances/{made}/", {}),
    ]
    for method, path, body in calls:
        answer = await market.call(method, path, body)
        assert answer.status == 200, path
        assert answer.content_type == "application/json", path
        assert isinstance(answer.body, dict), path


async def test_1_numbers_as_strings_and_unknown_keys_are_understood(market: Market) -> None:
    question = {**BID_SEARCH, "dph_total": {"lt": "0.5"}, "frobnication": {"gt": 3}, "limit": "512"}
    rows = (await market.call("POST", "/bundles/", question)).body["offers"]
    assert rows
    assert all(row["dph_total"] < 0.5 for row in rows)


@pytest.mark.parametrize("spelling", ["on-demand", "ondemand"])
async def test_1_both_spellings_of_on_demand(market: Market, spelling: str) -> None:
    (row,) = await market.offers(spelling, ask_contract_id={"eq": (await market.cheapest())["id"]})
    (bid_row,) = await market.offers("bid", ask_contract_id={"eq": row["id"]})
    assert bid_row["dph_base"] == bid_row["min_bid"] == row["min_bid"]
    assert row["dph_base"] != row["min_bid"]


async def test_1_paths_with_and_without_the_final_slash(market: Market) -> None:
    for path in ("/users/current", "/users/current/"):
        assert (await market.call("GET", path)).body["id"] == market.world.account_id
    for path in ("/volumes", "/volumes/"):
        assert (await market.call("GET", path, owner="me", type="all_volume")).body["volumes"] == []


async def test_2_the_routes_around_renting_answer(market: Market) -> None:
    offer = await market.cheapest()
    made = await market.rented(offer["id"], offer["min_bid"])
    for method, path, body in [
        ("GET", "/gpu_names/unique/", None),
        ("GET", "/instances/filters/", None),
        ("GET", f"/instances/balance/{made}/", None),
        ("GET", "/instances/pending-price-increases/", None),
        ("GET", "/notification-types", None),
        ("GET", "/webhooks/", None),
        ("PUT", f"/instances/reboot/{made}/", {}),
        ("PUT", f"/instances/recycle/{made}/", {}),
        ("PUT", f"/instances/update_template/{made}/", {"id": made, "template_hash_id": "abc"}),
        ("POST", f"/instances/take_snapshot/{made}/", {}),
        ("PUT", "/commands/copy_direct/", {"src_id": "1", "dst_id": "2"}),
        ("POST", "/ssh/", {"ssh_key": "ssh-ed25519 AAAA"}),
        ("GET", "/ssh/", None),
        ("PUT", "/instances/", {"state": "stopped", "ids": [made]}),
        ("DELETE", "/instances/", {"instance_ids": [made]}),
    ]:
        answer = await market.call(method, path, body)
        assert (answer.status, answer.body["success"]) == (200, True), (path, answer.raw)
    assert (await market.call("GET", f"/instances/{made}/")).body == {"instances": None}


async def test_2_names_and_filters_list_what_is_there(market: Market) -> None:
    names = (await market.call("GET", "/gpu_names/unique/", key=None)).body["gpu_names"]
    assert "RTX 4090" in names
    offer = await market.cheapest()
    await market.rented(offer["id"], offer["min_bid"])
    (known,) = (await market.call("GET", "/instances/filters/")).body["filters"]
    assert known["gpu_name"] == offer["gpu_name"]


async def test_2_result_files_need_no_key(market: Market) -> None:
    offer = await market.cheapest()
    made = await market.rented(offer["id"], offer["min_bid"])
    await market.running(made)
    for path, body in [("request_logs", {"tail": "20"}), ("command", {"command": "ls -l"})]:
        answer = (await market.call("PUT", f"/instances/{path}/{made}/", body)).body
        assert answer["success"] is True
        async with market.session.get(answer["result_url"]) as response:
            assert response.status == 200
            assert await response.text()


async def test_2_the_root_certificate_can_be_loaded(market: Market) -> None:
    answer = await market.call("GET", "/static/jvastai_root.cer", key=None)
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.load_verify_locations(cadata=answer.raw.decode())
    assert len(trusting.get_ca_certs()) == 1


async def test_2_an_unknown_route_is_a_json_404(market: Market) -> None:
    for path in ("/nowhere/", "/api/v2/instances/", "/api/v1/users/current", "/api/v0/invoices/"):
        answer = await market.call("GET", path)
        assert (answer.status, answer.body["error"]) == (404, "not_found")


async def test_4_thresholds_are_kept_when_asked_for() -> None:
    async with running_market(doors=call_gate.published()) as market:
        first = await market.call("GET", "/api/v1/instances/")
        second = await market.call("GET", "/api/v1/instances/")
        assert (first.status, second.status) == (200, 429)
        assert second.body["detail"] == "API requests too frequent endpoint threshold=1.0"
        await market.advance(1.0)
        assert (await market.call("GET", "/api/v1/instances/")).status == 200
        # Each endpoint has a pace of its own.
        assert (await market.call("GET", "/users/current")).status == 200


async def test_4_a_create_sent_too_soon_costs_a_penalty() -> None:
    async with running_market(doors=call_gate.published()) as market:
        statuses = [(await market.rent(1, 0.1)).status]
        for wait in (0.0, 4.5, 7.5):
            await market.advance(wait)
            statuses.append((await market.rent(1, 0.1)).status)
        assert statuses == [404, 429, 429, 404]


async def test_4_ten_searches_a_minute() -> None:
    async with running_market(doors=call_gate.published()) as market:
        statuses = [(await market.call("POST", "/bundles/", BID_SEARCH)).status for _ in range(11)]
        assert statuses == [200] * 10 + [429]
        await market.advance(60.0)
        assert (await market.call("POST", "/bundles/", BID_SEARCH)).status == 200


async def test_4_by_default_nobody_waits(market: Market) -> None:
    assert {(await market.call("GET", "/api/v1/instances/")).status for _ in range(30)} == {200}


async def test_the_daily_quota_of_rows_says_when_it_ends() -> None:
    async with running_market(doors=call_gate.Gate(search_rows_per_day=100)) as market:
        rows = [len((await market.call("POST", "/bundles/", {"limit": 64})).body["offers"]) for _ in range(2)]
        assert sum(rows) >= 100
        refused = await market.call("POST", "/bundles/", {"limit": 64})
        assert (refused.status, refused.body["error"]) == (429, "search_quota_exceeded")
        assert int(refused.headers["X-RateLimit-Reset"]) == START + 86_400
        assert int(refused.headers["Retry-After"]) == 86_400
        assert (await market.truth())["search_rows"] == sum(rows)
        await market.advance(86_400.0)
        assert (await market.call("POST", "/bundles/", {"limit": 64})).status == 200


async def test_a_missing_key_may_search_and_nothing_else(market: Market) -> None:
    assert (await market.call("POST", "/bundles/", BID_SEARCH, key=None)).body["offers"]
    for method, path in [("GET", "/users/current"), ("GET", "/api/v1/instances/"), ("PUT", "/asks/5/")]:
        answer = await market.call(method, path, {} if method == "PUT" else None, key=None)
        assert (answer.status, answer.body["error"]) == (403, "auth_error")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/bundles/", 404),
        ("GET", "/charges/", 404),
        ("GET", "/api/v1/invoices/", 404),
        ("GET", "/instances/5/", 401),
        ("DELETE", "/instances/5/", 401),
    ],
)
async def test_an_unknown_key_is_never_proof_that_something_is_gone(
    market: Market, method: str, path: str, status: int
) -> None:
    answer = await market.call(method, path, {} if method != "GET" else None, key="stolen")
    assert (answer.status, answer.body["error"], answer.body["msg"]) == (status, "auth_error", "Invalid user key")


async def test_the_key_may_come_in_the_query(market: Market) -> None:
    assert (await market.call("GET", "/users/current", key=None, api_key=call_gate.DEFAULT_KEY)).status == 200


async def test_a_container_may_end_itself_and_nobody_else(market: Market) -> None:
    first, second = [row for row in await market.offers() if row["gpu_frac"] == 1.0][:2]
    answer = (await market.rent(first["id"], first["min_bid"])).body
    other = await market.rented(second["id"], second["min_bid"])
    own_key = answer["instance_api_key"]
    assert (await market.call("DELETE", f"/instances/{other}/", {}, key=own_key)).status == 401
    assert (await market.call("DELETE", f"/instances/{answer['new_contract']}/", {}, key=own_key)).status == 200


async def test_a_stop_by_the_containers_own_key_looks_like_one_by_hand(market: Market) -> None:
    offers = [row for row in await market.offers() if row["gpu_frac"] == 1.0][:2]
    own, other = [await market.rented(row["id"], row["min_bid"] * 1.1) for row in offers]
    for made in (own, other):
        await market.running(made)
    keys = {own: market.simulator.gate.instance_key(own), other: call_gate.DEFAULT_KEY}
    for made, key in keys.items():
        answer = await market.call("PUT", f"/instances/{made}/", {"state": "stopped"}, key=key)
        assert (answer.status, answer.body["success"]) == (200, True)
    records = [await market.instance(made) for made in (own, other)]
    assert states(records[0]) == states(records[1]) == ("exited", "stopped", "stopped", "stopped")
    said = [record["status_msg"] for record in records]
    assert said[0] == said[1]


async def test_the_date_is_the_simulated_one(market: Market) -> None:
    assert (await market.call("GET", "/users/current")).headers["Date"] == "Thu, 05 Nov 2026 00:00:00 GMT"
    await market.advance(3_661.0)
    assert (await market.call("GET", "/users/current")).headers["Date"] == "Thu, 05 Nov 2026 01:01:01 GMT"


async def test_the_old_list_is_gone(market: Market) -> None:
    answer = await market.call("GET", "/api/v0/instances/", owner="me")
    assert (answer.status, answer.body["error"]) == (410, "deprecated_endpoint")


async def test_errors_carry_the_vendors_words(market: Market) -> None:
    cases: list[tuple[str, str, Any, int, str | None]] = [
        ("POST", "/bundles/", b"{nonsense", 400, "invalid_request"),
        ("PUT", "/asks/5/", b"{nonsense", 400, "invalid_args"),
        ("PUT", "/asks/5/", {"image": "x", "disk": 2}, 400, "invalid_args"),
        ("PUT", "/instances/5/", {"state": "running"}, 400, "no_such_instance"),
        ("PUT", "/instances/bid_price/5/", {"price": 0.2}, 404, "no_such_instance"),
        ("DELETE", "/instances/5/", {}, 404, "no_such_instance"),
        ("PUT", "/instances/request_logs/5/", {}, 404, "invalid_id"),
        ("PUT", "/instances/command/5/", {"command": ""}, 400, "invalid_args"),
        ("PUT", "/instances/command/5/", {"command": "ls"}, 400, "invalid_container_id"),
        ("GET", "/ssh/", None, 404, "not_found"),
    ]
    for method, path, body, status, code in cases:
        answer = await market.call(method, path, body)
        assert (answer.status, answer.body["error"], answer.body["success"]) == (status, code, False), path
        assert answer.body["msg"]


async def test_nonsense_never_ends_in_a_crash(market: Market) -> None:
    offer = await market.cheapest()
    made = await market.rented(offer["id"], offer["min_bid"])
    bodies: list[Any] = [[], 5, "text", {"price": "nan"}, {"price": []}, {"price": 1e999}, {"ids": "all"}, {"label": 5}]
    for body in bodies:
        sent = json.dumps(body).encode()
        for method, path in [
            ("PUT", f"/asks/{offer['id']}/"),
            ("PUT", f"/instances/{made}/"),
            ("PUT", f"/instances/bid_price/{made}/"),
            ("PUT", "/instances/"),
            ("POST", "/bundles/"),
            ("POST", "/asks/bulk/"),
            ("PUT", "/launch_instance/"),
            ("POST", "/webhooks/"),
        ]:
            assert (await market.call(method, path, sent)).status < 500, (path, body)
    for query in ("[]", "{", '{"id": 5}', '{"id": {"like": 1}}', '{"nothing": {"eq": 1}}'):
        assert (await market.call("GET", "/api/v1/instances/", select_filters=query)).status in (200, 400)


async def test_a_dropped_create_is_seen_as_often_as_it_was_sent(market: Market) -> None:
    """The simulator must show a client's real requests: aiohttp's own client repeats a PUT once."""
    await market.weather("reset", route="PUT /asks")
    with pytest.raises(aiohttp.ClientError):
        await market.rent(5, 0.2)
    assert [call["status"] for call in (await market.truth())["calls"]] == [0, 0]


async def a_day(seed: int) -> list[bytes]:
    """Live a day with a fixed script and give every answer."""
    async with running_market(Climate(), seed=seed, hosts=40) as market:
        said = []
        await market.weather("throttle_json", route="GET /users", probability=0.5)
        for hour in range(24):
            rows = (await market.call("POST", "/bundles/", {**BID_SEARCH, "limit": 20})).body["offers"]
            offer = rows[hour % len(rows)]
            said.append((await market.rent(offer["id"], round(offer["min_bid"] * 1.3, 4), label=f"hour-{hour}")).raw)
            said.append((await market.call("GET", "/api/v1/instances/")).raw)
            said.append((await market.call("GET", "/notifications/inbox/")).raw)
            said.append((await market.call("GET", "/users/current")).raw)
            await market.advance(3_600.0)
        return said


async def test_the_same_seed_start_and_calls_give_the_same_answers() -> None:
    first, second, other = [await a_day(seed) for seed in (11, 11, 12)]
    assert first == second
    assert first != other
