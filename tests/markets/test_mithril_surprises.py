"""Mithril's surprises, each from a payload through the real adapter over HTTP. `payloads/README.md` has the table."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from agent.clock import SteppedClock
from agent.domain import money
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.tenure import Tenure
from agent.markets import market_errors
from agent.markets.mithril import states
from agent.markets.mithril.market import MithrilMarket
from agent.markets.port import Charge
from tests.markets import spot_bids
from tests.markets.scene import LABEL, asked
from tests.markets.wire import Answers, Says, Seen

Call = Callable[[MithrilMarket], Awaitable[Any]]

CALLS: dict[str, Call] = {
    "rent": lambda mithril: mithril.rent(spot_bids.OFFERED, spot_bids.ORDER, LABEL),
    "rebid": lambda mithril: mithril.rebid(spot_bids.BID, money.per_hour("2.60")),
    "pause": lambda mithril: mithril.pause(spot_bids.BID),
    "release": lambda mithril: mithril.release(spot_bids.BID),
    "look up": lambda mithril: mithril.instance(spot_bids.BID),
}

REFUSALS: list[tuple[str, str, type[market_errors.MarketError], str]] = [
    ("limit_too_low", "rent", market_errors.Rejected, "bid_too_low"),
    ("limit_too_low", "rebid", market_errors.Rejected, "bid_too_low"),
    ("limit_below_minimum", "rent", market_errors.Rejected, "bid_too_low"),
    ("other_field", "rent", market_errors.Rejected, "invalid_args"),
    # A path that nothing serves is no bid that has ended.
    ("no_route", "release", market_errors.Ambiguous, ""),
    ("no_route", "look up", market_errors.Unavailable, ""),
    ("unknown_bid", "pause", market_errors.NotFound, ""),
    ("unknown_bid", "look up", market_errors.NotFound, ""),
    ("not_for_spot", "pause", market_errors.Ambiguous, ""),
    ("name_taken", "rent", market_errors.Ambiguous, ""),
]


def refusal(name: str) -> Says:
    """Return a refusal of the payload."""
    found = spot_bids.payload("refusals")[name]
    return Says(found["body"], found["status"])


@pytest.mark.parametrize(("name", "call", "error", "reason"), REFUSALS)
async def test_a_refusal_proves_what_its_detail_proves(
    clock: SteppedClock, name: str, call: str, error: type[market_errors.MarketError], reason: str
) -> None:
    async with spot_bids.mithril_saying(refusal(name), clock) as (mithril, _):
        with pytest.raises(market_errors.MarketError) as caught:
            await CALLS[call](mithril)
    assert (type(caught.value), getattr(caught.value, "reason", "")) == (error, reason)
    assert "s3cret" not in str(caught.value)


async def test_a_release_of_an_unknown_bid_is_done(clock: SteppedClock) -> None:
    async with spot_bids.mithril_saying(refusal("unknown_bid"), clock) as (mithril, _):
        await mithril.release(spot_bids.BID)


def full(seen: Seen) -> Says:
    """Answer as the project, with the prices of pools that are full but for one."""
    if seen.path != "/v2/pricing/current":
        return spot_bids.project(seen)
    shown = spot_bids.payload("prices_of_full_pools")
    found = shown.get(f"{seen.query['instance_type']}@{seen.query['region']}")
    return Says(found) if found is not None else refusal("no_price")


async def test_the_spot_price_is_not_the_price_to_win(clock: SteppedClock) -> None:
    async with spot_bids.mithril_saying(full, clock) as (mithril, _):
        found = {offer.host_id: offer for offer in await mithril.offers(asked(gpus=1))}
    dollars = {
        pool.split("/")[1]: (offer.floor, offer.price_paid, offer.is_price_unknown) for pool, offer in found.items()
    }
    assert dollars == {
        "us-central3-a": (money.per_hour("16.01"), money.per_hour("13.00"), False),
        "eu-central1-b": (money.per_hour("16.50"), money.per_hour("13.00"), False),
        # Three cents, and nothing is free: nobody can say what wins.
        "us-central5-a": (None, money.per_hour("0.03"), True),
    }


async def test_a_price_is_for_the_whole_machine_and_a_reservations_is_no_ask(clock: SteppedClock) -> None:
    async with spot_bids.mithril_saying(full, clock) as (mithril, _):
        (eight,) = await mithril.offers(asked(gpus=8))
    assert (eight.gpus, eight.floor, eight.ask, eight.price_paid) == (8, money.per_hour("0.50"), None, None)
    assert eight.vram_mb == 80 * 1024


async def test_a_pool_without_a_price_now_is_still_a_pool(clock: SteppedClock) -> None:
    unpriced = refusal("no_price")

    def answers(seen: Seen) -> Says:
        return unpriced if seen.path == "/v2/pricing/current" else spot_bids.project(seen)

    async with spot_bids.mithril_saying(answers, clock) as (mithril, _):
        found = await mithril.offers(asked(gpus=8))
    assert [(offer.floor, offer.is_price_unknown) for offer in found] == [(None, True)]


def account(seen: Seen) -> Says:
    """Answer as a project with the bids on two pages, and machines of bids and of a reservation."""
    if seen.path == "/v2/spot/bids":
        first, second = spot_bids.payload("bids_on_two_pages")
        return Says(second if seen.query.get("next_cursor") == "2" else first)
    if seen.path == "/v2/instances":
        return Says(spot_bids.payload("machines_of_offsets"))
    if seen.path == "/v2/instances/pricing/history":
        is_eight = seen.query["bid_fid"] == "bid_eight"
        return Says(spot_bids.payload("paid_by_period") if is_eight else {"instances": [], "next_cursor": None})
    return spot_bids.project(seen)


async def listed(clock: SteppedClock, answers: Answers = account) -> dict[str, Instance]:
    async with spot_bids.mithril_saying(answers, clock) as (mithril, _):
        return {one.instance_id: one for one in await mithril.instances()}


def statuses(seen: Seen) -> list[str]:
    """Return each text that a question has for statuses."""
    return parse_qs(urlsplit(seen.target).query)["status_in"]


async def test_a_list_of_statuses_is_one_text_with_commas(clock: SteppedClock) -> None:
    """A market that reads one text would take the last one of several, and list no machine that runs."""
    rows = spot_bids.payload("machines_of_offsets")["data"]

    def answers(seen: Seen) -> Says:
        if seen.path != "/v2/instances":
            return account(seen)
        wanted = statuses(seen)[-1].split(",")
        return spot_bids.page(*(row for row in rows if row["status"] in wanted))

    assert (await listed(clock, answers))["bid_eight"].state is InstanceState.RUNNING


async def test_where_each_status_is_a_text_of_its_own_they_are_sent_so_from_then_on(clock: SteppedClock) -> None:
    asked_so: list[int] = []

    def answers(seen: Seen) -> Says:
        if seen.path != "/v2/instances":
            return account(seen)
        asked_so.append(len(statuses(seen)))
        return refusal("joined_statuses") if "," in statuses(seen)[0] else account(seen)

    async with spot_bids.mithril_saying(answers, clock) as (mithril, _):
        for _ in range(2):
            assert len(await mithril.instances()) == 5
    assert asked_so == [1, len(states.LISTED), len(states.LISTED)]


async def test_another_refused_question_is_not_asked_in_another_form(clock: SteppedClock) -> None:
    def answers(seen: Seen) -> Says:
        return refusal("other_field") if seen.path == "/v2/instances" else account(seen)

    async with spot_bids.mithril_saying(answers, clock) as (mithril, wire):
        with pytest.raises(market_errors.Malformed):
            await mithril.instances()
    assert len(wire.seen) == 1


async def test_a_cursor_may_be_a_number_and_ended_bids_are_listed_too(clock: SteppedClock) -> None:
    assert set(await listed(clock)) == {"bid_waits", "bid_lost", "bid_eight", "bid_moves", "bid_again"}


async def test_an_open_bid_waits_or_has_lost_its_machine(clock: SteppedClock) -> None:
    found = await listed(clock)
    assert (found["bid_waits"].state, found["bid_waits"].billing_rate) == (InstanceState.PENDING, money.FREE)
    assert (found["bid_lost"].state, found["bid_lost"].bills_gpu) == (InstanceState.PAUSED, False)
    assert found["bid_lost"].created_at == datetime(2026, 11, 5, 20, tzinfo=UTC)


async def test_a_status_that_only_one_route_documents_is_charged(clock: SteppedClock) -> None:
    found = await listed(clock)
    assert (found["bid_moves"].state, found["bid_moves"].bills_gpu) == (InstanceState.UNKNOWN, True)


async def test_what_is_paid_is_the_price_of_the_bill_and_not_the_limit(clock: SteppedClock) -> None:
    eight = (await listed(clock))["bid_eight"]
    assert (eight.gpu_rate, eight.limit, eight.gpus) == (money.per_hour("9.50"), money.per_hour("1025"), 8)
    assert (eight.tenure, eight.price_since) == (Tenure.INTERRUPTIBLE, datetime(2026, 11, 5, 21, 12, tzinfo=UTC))


async def test_the_youngest_machine_is_that_of_the_latest_instant_and_not_of_the_latest_text(
    clock: SteppedClock,
) -> None:
    """The earlier one is dated three hours ahead of UTC, and ended in an error; the bid has won another since."""
    again = (await listed(clock))["bid_again"]
    assert (again.state, again.has_trouble) == (InstanceState.LOADING, False)


async def test_the_bill_is_made_of_periods_of_one_price_each(clock: SteppedClock) -> None:
    day, until = datetime(2026, 11, 5, tzinfo=UTC), datetime(2026, 11, 5, 22, 12, tzinfo=UTC)
    async with spot_bids.mithril_saying(account, clock) as (mithril, _):
        charges = await mithril.charges(day, until)
    assert charges == [Charge("bid_eight", money.usd("17.50"), day)]


async def test_the_account_has_no_credit_because_it_pays_in_arrears(clock: SteppedClock) -> None:
    async with spot_bids.mithril_saying(spot_bids.project, clock) as (mithril, _):
        account_shown = await mithril.account()
    assert (account_shown.account_id, account_shown.credit) == ("org_1/proj_1", None)


async def test_a_start_is_queued_until_an_auction(clock: SteppedClock) -> None:
    async with spot_bids.mithril_saying(spot_bids.project, clock) as (mithril, wire):
        assert await mithril.resume(spot_bids.BID) is False
    assert [(seen.method, seen.json) for seen in wire.seen] == [("PATCH", {"paused": False})]
