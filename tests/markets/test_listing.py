"""The listing is complete or an error; account, bill and inbox."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.clock import SteppedClock
from agent.domain import money
from agent.markets import market_errors
from agent.markets.port import Account, Capability
from agent.markets.vast import optional_route
from tests.markets.scene import KEY, vast_saying
from tests.markets.wire import PAYLOADS, Answers, Says, Seen, in_turn, payload

DAY = datetime(2026, 11, 5, tzinfo=UTC)


def box(number: int) -> dict[str, Any]:
    return payload("instances")["instances"][0] | {"id": number}


def pages(*ids: list[int], total: int | None = None, **changes: Any) -> Answers:
    """Serve so many pages; the token of a page is its number."""

    def answers(seen: Seen) -> Says:
        at = int(seen.query.get("after_token", "0"))
        body = {
            "success": True,
            "instances": [box(number) for number in ids[at]],
            "instances_found": len(ids[at]),
            "total_instances": sum(len(page) for page in ids) if total is None else total,
            "next_token": str(at + 1) if at + 1 < len(ids) else None,
        }
        return Says(body | changes)

    return answers


async def test_all_pages_are_read_in_order(clock: SteppedClock) -> None:
    async with vast_saying(pages([1, 2], [3, 4], [5]), clock) as (vast, wire):
        assert [one.instance_id for one in await vast.instances()] == ["1", "2", "3", "4", "5"]
    assert {seen.path for seen in wire.seen} == {"/api/v1/instances/"}
    assert wire.seen[0].query == {"select_filters": "{}", "order_by": '[{"col":"id","dir":"asc"}]', "limit": "25"}
    assert [seen.query.get("after_token") for seen in wire.seen] == [None, "1", "2"]
    # Pages keep the published rhythm of a second.
    assert clock.monotonic() == pytest.approx(2.0)


async def test_an_empty_listing_is_one(clock: SteppedClock) -> None:
    async with vast_saying(pages([]), clock) as (vast, _):
        assert list(await vast.instances()) == []


async def test_totals_may_be_missing(clock: SteppedClock) -> None:
    says = Says({"instances": [box(1)], "total_instances": None, "next_token": ""})
    async with vast_saying(says, clock) as (vast, _):
        assert len(await vast.instances()) == 1


PARTIAL = {
    "fewer than the total": pages([1, 2], total=3),
    "more than the total": pages([1, 2], total=1),
    "nothing of three": pages([], total=3),
    "twice on one page": pages([1, 1]),
    "twice on two pages": pages([1, 2], [2, 3]),
    "a token without end": lambda _: Says({"instances": [], "next_token": "again"}),
    "a token in circles": lambda seen: Says(
        {"instances": [box(len(seen.query))], "next_token": "again"}
        if "after_token" not in seen.query
        else {"instances": [box(99)], "next_token": "again"}
    ),
    "fewer found than shown": pages([1, 2], instances_found=1),
    "refused in words": Says({"success": False, "error": "invalid_token", "msg": "x"}),
    "a row without an id": Says({"instances": [box(1) | {"id": None}], "next_token": None}),
    "the second page broken": in_turn(Says({"instances": [box(1)], "next_token": "1"}), Says(b'{"instances":[')),
    "an old shape": Says([box(1)]),
}


@pytest.mark.parametrize("answers", PARTIAL.values(), ids=PARTIAL)
async def test_a_part_is_never_returned(clock: SteppedClock, answers: Answers | Says) -> None:
    async with vast_saying(answers, clock) as (vast, _):
        with pytest.raises(market_errors.Malformed):
            await vast.instances()


async def test_pages_that_never_end_are_given_up(clock: SteppedClock) -> None:
    def answers(seen: Seen) -> Says:
        at = int(seen.query.get("after_token", "0"))
        return Says({"instances": [box(at + 1)], "next_token": str(at + 1)})

    async with vast_saying(answers, clock) as (vast, wire):
        with pytest.raises(market_errors.Malformed, match="pages"):
            await vast.instances()
    assert len(wire.seen) == 400


@pytest.mark.parametrize("status", [500, 403, 410, 404])
async def test_a_failure_on_any_page_is_one_of_the_listing(clock: SteppedClock, status: int) -> None:
    async with vast_saying(in_turn(Says({"instances": [box(1)], "next_token": "1"}), Says(b"", status)), clock) as (
        vast,
        _,
    ):
        with pytest.raises(market_errors.Unavailable):
            await vast.instances()


async def test_a_code_about_one_instance_says_nothing_of_the_listing(clock: SteppedClock) -> None:
    says = Says({"success": False, "error": "no_such_instance", "msg": "x"}, 404)
    async with vast_saying(says, clock) as (vast, _):
        with pytest.raises(market_errors.Unavailable):
            await vast.instances()


async def test_one_instance_is_looked_up(clock: SteppedClock) -> None:
    async with vast_saying(Says({"instances": box(7)}), clock) as (vast, wire):
        assert (await vast.instance("7")).instance_id == "7"
    assert (wire.seen[0].path, wire.seen[0].query) == ("/api/v0/instances/7/", {"owner": "me"})


GONE = [Says({"instances": None}), Says({"success": False, "error": "no_such_instance", "msg": "x"}, 404)]
NOT_GONE = [
    (Says({"success": False, "error": "auth_error", "msg": "Invalid user key"}, 404), market_errors.Unauthorized),
    (Says({"success": False, "error": "auth_error", "msg": "Invalid user key"}, 401), market_errors.Unauthorized),
    (Says(b"", 404), market_errors.Unavailable),
    (Says({"success": False, "msg": "Not found"}, 404), market_errors.Unavailable),
    (Says(b"", 410), market_errors.Unavailable),
    (Says({}), market_errors.Malformed),
    (Says({"success": False, "error": None}), market_errors.Malformed),
    (Says({"instances": box(8)}), market_errors.Malformed),
]


@pytest.mark.parametrize(
    ("says", "is_proven"),
    [(NOT_GONE[0][0], True), (Says(b"", 401), True), (Says(b" <html>log in</html>", 401), False)],
    ids=["code", "empty", "page"],
)
async def test_a_page_proves_no_refusal_of_the_key(clock: SteppedClock, says: Says, *, is_proven: bool) -> None:
    async with vast_saying(says, clock) as (vast, _):
        with pytest.raises(market_errors.Unauthorized) as caught:
            await vast.instances()
    assert caught.value.is_proven is is_proven


@pytest.mark.parametrize("says", GONE, ids=["null", "code"])
async def test_only_the_markets_own_word_means_gone(clock: SteppedClock, says: Says) -> None:
    async with vast_saying(says, clock) as (vast, _):
        with pytest.raises(market_errors.NotFound):
            await vast.instance("7")


@pytest.mark.parametrize(("says", "error"), NOT_GONE, ids=range(len(NOT_GONE)))
async def test_anything_else_does_not(clock: SteppedClock, says: Says, error: type[market_errors.MarketError]) -> None:
    async with vast_saying(says, clock) as (vast, _):
        with pytest.raises(market_errors.MarketError) as caught:
            await vast.instance("7")
    assert type(caught.value) is error


async def test_the_account_tells_its_id_its_credit_and_the_markets_time(clock: SteppedClock) -> None:
    says = Says({"id": 77, "credit": 12.5}, headers={"Date": "Thu, 05 Nov 2026 22:00:03 GMT"})
    async with vast_saying(says, clock) as (vast, wire):
        account = await vast.account()
    assert account == Account("77", money.usd("12.5"), datetime(2026, 11, 5, 22, 0, 3, tzinfo=UTC))
    assert wire.seen[0].path == "/api/v0/users/current"


async def test_an_account_without_a_date_has_no_time(clock: SteppedClock) -> None:
    async with vast_saying(Says({"id": 77}), clock) as (vast, _):
        assert await vast.account() == Account("77", None, None)


async def test_the_bill_is_read_to_its_end(clock: SteppedClock) -> None:
    first = payload("charges") | {"next_token": "more"}
    async with vast_saying(in_turn(Says(first), Says(payload("charges"))), clock) as (vast, wire):
        charges = await vast.charges(DAY, DAY + timedelta(days=1))
    assert [charge.instance_id for charge in charges] == ["52000001", "52000002"] * 2
    assert json.loads(wire.seen[0].query["select_filters"]) == {"day": {"gte": 1793836800, "lte": 1793923200}}
    assert wire.seen[1].query["after_token"] == "more"


async def test_a_bill_without_end_is_refused(clock: SteppedClock) -> None:
    async with vast_saying(Says(payload("charges") | {"next_token": "more"}), clock) as (vast, _):
        with pytest.raises(market_errors.Malformed):
            await vast.charges(DAY, DAY + timedelta(days=1))


async def test_the_inbox_is_read(clock: SteppedClock) -> None:
    async with vast_saying(Says((PAYLOADS / "inbox.json").read_bytes()), clock) as (vast, _):
        events = await vast.events(datetime.fromtimestamp(1793844000, UTC))
        assert [event.event_id for event in events] == ["e5"]
        assert Capability.EVENTS in vast.capabilities()


INBOX, RISES = "/api/v0/notifications/inbox/", "/api/v0/instances/pending-price-increases/"


async def test_without_an_inbox_the_capability_is_off_and_it_is_asked_for_an_hour_later(clock: SteppedClock) -> None:
    async with vast_saying(Says(b"", 404), clock) as (vast, wire):
        for _ in range(optional_route.MISSES - 1):
            with pytest.raises(market_errors.Unreachable):
                await vast.events(DAY)
            assert Capability.EVENTS in vast.capabilities()
        for _ in range(5):
            assert list(await vast.events(DAY)) == []
        assert vast.capabilities() == {Capability.INTERRUPTIBLE, Capability.REBID, Capability.CREDIT}
        assert Counter(seen.path for seen in wire.seen) == {INBOX: 3, RISES: 3}
        clock.advance(3600)
        assert Capability.EVENTS in vast.capabilities()
        assert list(await vast.events(DAY)) == []
        assert Counter(seen.path for seen in wire.seen) == {INBOX: 4, RISES: 4}


async def test_one_answer_does_not_prove_that_the_inbox_is_gone(clock: SteppedClock) -> None:
    inbox = (PAYLOADS / "inbox.json").read_bytes()
    told = iter([Says(b"", 404), Says(inbox), Says(b"", 404), Says(b"", 404), Says(inbox)])

    def answers(seen: Seen) -> Says:
        return next(told) if seen.path == INBOX else Says(b"", 404)

    found = []
    async with vast_saying(answers, clock) as (vast, _):
        for _ in range(5):
            try:
                found.append(len(await vast.events(datetime.fromtimestamp(1793844000, UTC))))
            except market_errors.Unreachable:
                found.append(-1)
    assert found == [-1, 1, -1, -1, 1]


async def test_pending_rises_are_read_beside_the_inbox(clock: SteppedClock) -> None:
    rows = [
        {
            "pending_price_increase_id": 8,
            "contract_id": 52000001,
            "new_gpu_costpersec": 0.0001,
            "created_at": 1793842000.0,
        },
        {"pending_price_increase_id": 7, "contract_id": 52000002, "new_gpu_costpersec": None, "created_at": None},
        {"contract_id": "no row"},
    ]
    says = Says({"success": True, "count": 3, "pending_price_increases": rows, "notifications": []})
    async with vast_saying(says, clock) as (vast, wire):
        found = await vast.events(DAY)
        assert [(event.kind, event.instance_id, event.new_rate) for event in found] == [
            ("price_rise", "52000002", None),
            ("price_rise", "52000001", money.per_hour("0.36")),
        ]
        assert wire.seen[-1].path == "/api/v0/instances/pending-price-increases/"


@pytest.mark.parametrize(
    ("answer", "status", "known"),
    [
        ({"success": False, "error": "busy", "msg": "closed for a moment"}, 200, 1),
        ({"success": True, "notifications": []}, 200, 1),
        ({"success": True, "pending_price_increases": None}, 200, 1),
        ({"success": False, "error": "not_found"}, 404, 1),
        ({"success": True, "pending_price_increases": []}, 200, 0),
    ],
    ids=["refused", "no list", "null", "no route once", "none"],
)
async def test_pending_rises_that_cannot_be_read_are_not_taken_for_none(
    clock: SteppedClock, answer: dict[str, Any], status: int, known: int
) -> None:
    rise = {"pending_price_increase_id": 7, "contract_id": 52000002, "new_gpu_costpersec": 0.0001}

    def told(later: Says) -> Answers:
        return lambda seen: Says({"success": True, "notifications": []}) if "inbox" in seen.path else later

    async with vast_saying(told(Says({"success": True, "pending_price_increases": [rise]})), clock) as (vast, wire):
        assert len(await vast.events(DAY)) == 1
        wire.answers = told(Says(answer, status))
        assert len(await vast.events(DAY)) == known


async def test_an_inbox_that_refuses_the_key_is_still_there(clock: SteppedClock) -> None:
    says = Says({"success": False, "error": "auth_error", "msg": "Invalid user key"}, 404)
    async with vast_saying(says, clock) as (vast, _):
        with pytest.raises(market_errors.Unauthorized):
            await vast.events(DAY)
        assert Capability.EVENTS in vast.capabilities()


async def test_no_error_tells_the_key(clock: SteppedClock) -> None:
    async with vast_saying(Says({"success": False, "error": "auth_error", "msg": "Invalid user key"}, 404), clock) as (
        vast,
        _,
    ):
        with pytest.raises(market_errors.Unauthorized) as caught:
            await vast.instances()
    assert KEY not in str(caught.value)
    assert KEY not in repr(vast)
