"""What each answer to an order proves; the closed lists of codes, route by route."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.clock import SteppedClock
from agent.domain import money
from agent.domain.market.tenure import Tenure
from agent.markets import market_errors
from agent.markets.port import Terms
from agent.markets.vast.market import VastMarket
from tests.markets.scene import ASK, BID, LABEL, OFFER, vast_at, vast_saying
from tests.markets.wire import Says, serving

Order = Callable[[VastMarket], Awaitable[Any]]

ORDERS: dict[str, Order] = {
    "rent": lambda vast: vast.rent(OFFER, BID, LABEL),
    "rebid": lambda vast: vast.rebid("52000001", money.per_hour("0.3")),
    "resume": lambda vast: vast.resume("52000001"),
    "pause": lambda vast: vast.pause("52000001"),
    "release": lambda vast: vast.release("52000001"),
}
every_order = pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)


def refused(code: str | None, status: int, **fields: Any) -> Says:
    return Says({"success": False, "error": code, "msg": f"error {status}/3603: in words"} | fields, status)


async def test_the_body_of_a_bid_is_the_one_the_vendors_program_sends(clock: SteppedClock) -> None:
    terms = Terms(Tenure.INTERRUPTIBLE, money.per_hour("0.20001"), 16.0, "ubuntu:22.04", "", "echo hi", (("A", "b"),))
    async with vast_saying(Says({"success": True, "new_contract": 5}), clock) as (vast, wire):
        await vast.rent(OFFER, terms, LABEL)
    assert (wire.seen[0].method, wire.seen[0].path) == ("PUT", "/api/v0/asks/31000001/")
    assert wire.seen[0].json == {
        "client_id": "me",
        "image": "ubuntu:22.04",
        "env": {"A": "b"},
        "price": 0.2001,
        "disk": 16.0,
        "label": LABEL,
        "extra": None,
        "onstart": "echo hi",
        "image_login": None,
        "python_utf8": False,
        "lang_utf8": False,
        "use_jupyter_lab": False,
        "jupyter_dir": None,
        "force": False,
        "cancel_unavail": False,
        "template_hash_id": None,
        "user": None,
        "runtype": "ssh",
    }


async def test_only_an_on_demand_order_has_no_price(clock: SteppedClock) -> None:
    async with vast_saying(Says({"success": True, "new_contract": 5}), clock) as (vast, wire):
        await vast.rent(OFFER, ASK, LABEL)
    assert (wire.seen[0].json["price"], wire.seen[0].json["cancel_unavail"]) == (None, True)


async def test_a_command_is_sent_as_words(clock: SteppedClock) -> None:
    terms = Terms(Tenure.ON_DEMAND, None, 16.0, "x", "python -c 'print(1)'")
    async with vast_saying(Says({"success": True, "new_contract": 5}), clock) as (vast, wire):
        await vast.rent(OFFER, terms, LABEL)
    assert (wire.seen[0].json["runtype"], wire.seen[0].json["args"]) == ("args", ["python", "-c", "print(1)"])


@pytest.mark.parametrize(
    ("terms", "label", "reason"),
    [
        (Terms(Tenure.INTERRUPTIBLE, None, 16.0, "x"), LABEL, "invalid_price"),
        (Terms(Tenure.ON_DEMAND, money.per_hour(1), 16.0, "x"), LABEL, "invalid_price"),
        (Terms(Tenure.RESERVED, None, 16.0, "x"), LABEL, "invalid_price"),
        (Terms(Tenure.INTERRUPTIBLE, money.per_hour(0), 16.0, "x"), LABEL, "invalid_price"),
        (Terms(Tenure.INTERRUPTIBLE, money.per_hour("128.00001"), 16.0, "x"), LABEL, "invalid_price"),
        (Terms(Tenure.ON_DEMAND, None, 7.0, "x"), LABEL, "invalid_args"),
        (Terms(Tenure.ON_DEMAND, None, 16.0, "x", "unbalanced '"), LABEL, "invalid_args"),
        (Terms(Tenure.ON_DEMAND, None, 16.0, "x", onstart="#" * 4049), LABEL, "invalid_args"),
        (Terms(Tenure.ON_DEMAND, None, 16.0, "x", onstart="#" * 4000, ssh_keys=("ssh-rsa a",)), LABEL, "invalid_args"),
        (ASK, "", "invalid_args"),
        (ASK, "x" * 257, "invalid_args"),
    ],
)
async def test_what_would_be_misread_is_not_sent(clock: SteppedClock, terms: Terms, label: str, reason: str) -> None:
    async with vast_saying(Says({"success": True, "new_contract": 5}), clock) as (vast, wire):
        with pytest.raises(market_errors.Rejected) as caught:
            await vast.rent(OFFER, terms, label)
    assert (caught.value.reason, wire.seen) == (reason, [])


@pytest.mark.parametrize("contract", [45756039, "45756039"], ids=["number", "digits"])
async def test_a_rent_returns_the_instance(clock: SteppedClock, contract: object) -> None:
    says = Says({"success": True, "new_contract": contract, "error": None, "msg": None, "instance_api_key": "secret"})
    async with vast_saying(says, clock) as (vast, _):
        assert await vast.rent(OFFER, BID, LABEL) == "45756039"


@pytest.mark.parametrize("contract", [None, True, 0, -5, 1.5, "", "5x", "-5", [5], "²", "1" * 30], ids=repr)
async def test_a_rent_that_names_no_instance_is_in_doubt(clock: SteppedClock, contract: object) -> None:
    async with vast_saying(Says({"success": True, "new_contract": contract}), clock) as (vast, _):
        with pytest.raises(market_errors.Ambiguous):
            await vast.rent(OFFER, BID, LABEL)


async def test_a_bid_under_the_floor_leaves_a_stopped_instance(clock: SteppedClock) -> None:
    says = Says({"success": False, "new_contract": 45756033, "error": None, "msg": None})
    async with vast_saying(says, clock) as (vast, _):
        with pytest.raises(market_errors.Rejected) as caught:
            await vast.rent(OFFER, BID, LABEL)
    assert (caught.value.reason, caught.value.leftover_id) == ("bid_too_low", "45756033")
    assert "45756033" in str(caught.value)


PROOFS = [
    ("rent", 400, "invalid_args", market_errors.Rejected),
    ("rent", 403, "invalid_args", market_errors.Rejected),
    ("rent", 400, "invalid_price", market_errors.Rejected),
    ("rent", 400, "no_ssh_key_for_vm", market_errors.Rejected),
    ("rent", 400, "no_such_ask", market_errors.Rejected),
    ("rent", 404, "no_such_ask", market_errors.Rejected),
    ("rent", 410, "no_such_ask", market_errors.Rejected),
    ("rent", 404, "invalid_args", market_errors.Rejected),
    ("rent", 200, "no_such_ask", market_errors.Rejected),
    ("rent", 400, "spend_rate_limit", market_errors.Rejected),
    ("rent", 400, "insufficient_credit", market_errors.OutOfFunds),
    ("rent", 200, "insufficient_credit", market_errors.OutOfFunds),
    ("rent", 403, "auth_error", market_errors.Unauthorized),
    ("rent", 404, "auth_error", market_errors.Unauthorized),
    ("rent", 401, "auth_error", market_errors.Unauthorized),
    ("rebid", 400, "invalid_args", market_errors.Rejected),
    ("rebid", 200, "invalid_args", market_errors.Rejected),
    ("rebid", 404, "no_such_instance", market_errors.NotFound),
    ("rebid", 404, "auth_error", market_errors.Unauthorized),
    ("resume", 400, "missing_billing", market_errors.Rejected),
    ("resume", 400, "insufficient_credit", market_errors.OutOfFunds),
    ("resume", 400, "no_such_instance", market_errors.NotFound),
    ("resume", 404, "no_such_instance", market_errors.NotFound),
    ("resume", 401, "auth_error", market_errors.Unauthorized),
    ("pause", 404, "no_such_instance", market_errors.NotFound),
    ("pause", 403, "auth_error", market_errors.Unauthorized),
    ("release", 404, "auth_error", market_errors.Unauthorized),
    ("release", 403, "auth_error", market_errors.Unauthorized),
]


@pytest.mark.parametrize(("order", "status", "code", "proof"), PROOFS)
async def test_a_known_code_is_proof(
    clock: SteppedClock, order: str, status: int, code: str, proof: type[market_errors.MarketError]
) -> None:
    async with vast_saying(refused(code, status), clock) as (vast, wire):
        with pytest.raises(market_errors.MarketError) as caught:
            await ORDERS[order](vast)
    assert type(caught.value) is proof
    assert len(wire.seen) == 1
    if isinstance(caught.value, market_errors.Rejected):
        assert (caught.value.reason, caught.value.leftover_id) == (code, "")


@pytest.mark.parametrize("status", [400, 404, 410])
async def test_an_offer_that_is_gone_may_be_called_a_bad_argument(clock: SteppedClock, status: int) -> None:
    said = f"error {status}/3603: no_such_ask Instance type by id 31000001 is not available."
    async with vast_saying(refused("invalid_args", status, msg=said, ask_id=31000001), clock) as (vast, _):
        with pytest.raises(market_errors.Rejected) as caught:
            await vast.rent(OFFER, BID, LABEL)
    assert caught.value.reason == "no_such_ask"


ENDED = {
    "404 session expired": Says({"success": False, "msg": "Session expired. Please log in again."}, 404),
    "404 session expired, no success": Says({"msg": "Session expired. Please log in again."}, 404),
    "404 invalid user key": Says({"msg": "Invalid user key"}, 404),
    "404 not_found that is a session": Says({"success": False, "error": "not_found", "msg": "Session expired."}, 404),
    "401 without a code": Says({"success": False, "msg": "no"}, 401),
    "401 empty": Says(b"", 401),
    "401 page": Says(b"<html>login</html>", 401),
}


@every_order
@pytest.mark.parametrize("says", ENDED.values(), ids=ENDED)
async def test_an_ended_session_refuses_the_key(clock: SteppedClock, order: Order, says: Says) -> None:
    async with vast_saying(says, clock) as (vast, wire):
        with pytest.raises(market_errors.Unauthorized):
            await order(vast)
    assert len(wire.seen) == 1


@pytest.mark.parametrize("said", [{"success": True, "new_contract": 5}, {"success": False, "new_contract": 5}])
async def test_a_401_that_names_an_instance_proves_nothing(clock: SteppedClock, said: dict[str, Any]) -> None:
    async with vast_saying(Says(said, 401), clock) as (vast, _):
        with pytest.raises(market_errors.Ambiguous):
            await vast.rent(OFFER, BID, LABEL)


@pytest.mark.parametrize(("code", "status"), [("no_such_instance", 404), ("not_found", 404), ("no_such_instance", 400)])
async def test_a_release_of_what_the_market_calls_gone_is_done(clock: SteppedClock, code: str, status: int) -> None:
    async with vast_saying(refused(code, status), clock) as (vast, wire):
        await vast.release("52000001")
    assert [(seen.method, seen.path, seen.json) for seen in wire.seen] == [
        ("DELETE", "/api/v0/instances/52000001/", {})
    ]


DOUBTS = {
    "bare 404": Says(b"", 404),
    "404 page": Says(b"<html>not found</html>", 404),
    "404 without a code": Says({"success": False, "msg": "Not found"}, 404),
    "403 page": Says(b"<html>403 Forbidden nginx</html>", 403),
    "403 without a code": Says({"success": False}, 403),
    "500 with a known code": refused("invalid_args", 500),
    "503": Says(b"<html>busy</html>", 503),
    "502 with no_such_instance": refused("no_such_instance", 502),
    "504 auth_error": refused("auth_error", 504),
    "200 without success": Says({"new_contract": 5}),
    "200 success null": Says({"success": None, "error": "invalid_args"}),
    "200 success in words": Says({"success": "true", "new_contract": 5}),
    "200 refused without a code": Says({"success": False, "error": None, "msg": None}),
    "200 refused with an unknown code": refused("moon_phase", 200),
    "400 with an unknown code": refused("moon_phase", 400),
    "418 with a known code": refused("invalid_args", 418),
    "200 list": Says(b"[]"),
    "200 page": Says(b"<html>welcome</html>"),
    "200 truncated": Says({"success": True, "new_contract": 5}, cut=9),
    "200 half a body": Says(b'{"success":true,"new_con'),
    "204": Says(b"", 204),
    "302": Says(b"", 302, {"Location": "/login"}),
    "dropped": Says(drop=True),
}


@every_order
@pytest.mark.parametrize("says", DOUBTS.values(), ids=DOUBTS)
async def test_anything_else_is_in_doubt_and_sent_once(clock: SteppedClock, order: Order, says: Says) -> None:
    async with vast_saying(says, clock) as (vast, wire):
        with pytest.raises(market_errors.Ambiguous):
            await order(vast)
    assert len(wire.seen) == 1


@every_order
async def test_a_code_of_another_route_proves_nothing(clock: SteppedClock, order: Order) -> None:
    foreign = {"rent": "no_such_instance", "rebid": "no_such_ask", "resume": "not_found", "pause": "not_found"}
    name = next(name for name, known in ORDERS.items() if known is order)
    async with vast_saying(refused(foreign.get(name, "no_such_ask"), 404), clock) as (vast, _):
        with pytest.raises(market_errors.Ambiguous):
            await order(vast)


TOO_OFTEN = {
    "text": (Says(b"API requests too frequent", 429), None),
    "text with a threshold": (Says(b"API requests too frequent: endpoint threshold=4.5", 429), None),
    "detail": (Says({"detail": "API requests too frequent endpoint threshold=4.5"}, 429), None),
    "code": (Says({"success": False, "error": "rate_limit_exceeded", "msg": "slow down"}, 429), None),
    "header": (Says(b"too frequent", 429, {"Retry-After": "30"}), 30.0),
    "body": (Says({"detail": "too frequent", "retry_after": 45.5}, 429), 45.5),
    "header and body": (Says({"retry_after": 3}, 429, {"Retry-After": "20"}), 20.0),
    "date": (Says(b"", 429, {"Retry-After": "Thu, 05 Nov 2026 22:01:00 GMT"}), 60.0),
    "reset": (
        Says(b"", 429, {"X-RateLimit-Reset": str(int(datetime(2026, 11, 5, 22, 2, tzinfo=UTC).timestamp()))}),
        60.0,
    ),
    "absurd": (Says({"retry_after": -5}, 429, {"Retry-After": "soon", "X-RateLimit-Reset": "later"}), None),
    "endless": (Says({"retry_after": 1e300}, 429), 60.0),
}


@every_order
@pytest.mark.parametrize(("says", "seconds"), TOO_OFTEN.values(), ids=TOO_OFTEN)
async def test_called_too_often_proves_that_nothing_was_done(
    clock: SteppedClock, order: Order, says: Says, seconds: float | None
) -> None:
    began = clock.now()
    async with vast_saying(says, clock) as (vast, wire):
        with pytest.raises(market_errors.Throttled) as caught:
            await order(vast)
        assert caught.value.until is not None
        assert caught.value.until > began
        if seconds is not None:
            assert caught.value.until == began + timedelta(seconds=seconds)
            # The lane stays closed: the next order does not even leave.
            with pytest.raises(market_errors.Throttled):
                await order(vast)
    assert len(wire.seen) == 1


async def test_a_create_refused_for_haste_stays_away_for_its_penalty(clock: SteppedClock) -> None:
    began = clock.now()
    async with vast_saying(Says(b"API requests too frequent", 429), clock) as (vast, _):
        with pytest.raises(market_errors.Throttled) as caught:
            await vast.rent(OFFER, BID, LABEL)
    assert caught.value.until == began + timedelta(seconds=12)


async def test_a_new_bid_is_rounded_up_to_what_the_market_keeps(clock: SteppedClock) -> None:
    async with vast_saying(Says({"success": True}), clock) as (vast, wire):
        await vast.rebid("52000001", money.UsdPerHour(9_334))
    assert (wire.seen[0].method, wire.seen[0].path) == ("PUT", "/api/v0/instances/bid_price/52000001/")
    assert wire.seen[0].json == {"client_id": "me", "price": 0.0094}


async def test_starts_and_stops_are_asked_by_state(clock: SteppedClock) -> None:
    async with vast_saying(Says({"success": True}), clock) as (vast, wire):
        assert await vast.resume("52000001") is True
        await vast.pause("52000001")
    assert [(seen.method, seen.path, seen.json) for seen in wire.seen] == [
        ("PUT", "/api/v0/instances/52000001/", {"state": "running"}),
        ("PUT", "/api/v0/instances/52000001/", {"state": "stopped"}),
    ]


QUEUED = Says(
    {
        "success": False,
        "error": "resources_unavailable",
        "msg": "Required resources are currently unavailable, state change queued.",
    }
)


async def test_a_start_whose_gpu_is_taken_is_queued(clock: SteppedClock) -> None:
    async with vast_saying(QUEUED, clock) as (vast, _):
        assert await vast.resume("52000001") is False


async def test_a_queued_answer_to_a_stop_is_in_doubt(clock: SteppedClock) -> None:
    async with vast_saying(QUEUED, clock) as (vast, _):
        with pytest.raises(market_errors.Ambiguous):
            await vast.pause("52000001")


async def test_a_release_that_found_no_connection_is_in_doubt(clock: SteppedClock) -> None:
    """The port promises a release nothing else, and it is sent again anyway."""
    async with serving(Says()) as wire:
        url = wire.url
    async with vast_at(url, clock) as vast:
        with pytest.raises(market_errors.Ambiguous):
            await vast.release("52000001")
        with pytest.raises(market_errors.Unreachable):
            await vast.pause("52000001")


async def test_what_the_market_says_is_shown_short_and_printable(clock: SteppedClock) -> None:
    async with vast_saying(refused("invalid_args", 400, msg="\x1b[31m" + "x" * 5000), clock) as (vast, _):
        with pytest.raises(market_errors.Rejected) as caught:
            await vast.rent(OFFER, BID, LABEL)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


async def test_an_id_cannot_leave_its_place_in_the_path(clock: SteppedClock) -> None:
    async with vast_saying(Says({"success": True}), clock) as (vast, wire):
        await vast.release("5/../6?x=1")
    assert wire.seen[0].target == "/api/v0/instances/5%2F..%2F6%3Fx%3D1/"
