"""Vast.ai's surprises, each from a payload through the real adapter over HTTP. `payloads/README.md` has the table."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from agent.clock import SteppedClock
from agent.domain import money
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.markets import market_errors
from agent.markets.port import Charge
from agent.markets.vast.market import VastMarket
from tests.markets import bench
from tests.markets.scene import BID, LABEL, OFFER, asked, vast_saying
from tests.markets.wire import Says, payload

Call = Callable[[VastMarket], Awaitable[Any]]
DAY = datetime(2026, 11, 5, tzinfo=UTC)

CALLS: dict[str, Call] = {
    "rent": lambda vast: vast.rent(OFFER, BID, LABEL),
    "rebid": lambda vast: vast.rebid("52000001", money.per_hour("0.3")),
    "pause": lambda vast: vast.pause("52000001"),
    "release": lambda vast: vast.release("52000001"),
    "look up": lambda vast: vast.instance("52000001"),
    "list": lambda vast: vast.instances(),
    "search": lambda vast: vast.offers(asked()),
    "bill": lambda vast: vast.charges(DAY, DAY),
    "inbox": lambda vast: vast.events(DAY),
}

REFUSALS: list[tuple[str, str, type[market_errors.MarketError], str]] = [
    ("no_credit", "rent", market_errors.OutOfFunds, "insufficient_credit"),
    ("stale_ask_as_bad_argument", "rent", market_errors.Rejected, "no_such_ask"),
    ("stale_ask_at_400", "rent", market_errors.Rejected, "no_such_ask"),
    ("just_taken", "rent", market_errors.Rejected, "no_such_ask"),
    ("new_account_may_spend_little", "rent", market_errors.Rejected, "spend_rate_limit"),
    ("bid_under_the_floor", "rent", market_errors.Rejected, "bid_too_low"),
    ("bid_refused_with_200", "rebid", market_errors.Rejected, "invalid_args"),
    ("no_billing_details", "pause", market_errors.Rejected, "missing_billing"),
    ("unknown_instance_at_400", "pause", market_errors.NotFound, ""),
    ("unknown_instance_at_400", "look up", market_errors.NotFound, ""),
    # A session that is over answers a release as if the instance were gone.
    ("session_over_behind_a_place", "release", market_errors.Unauthorized, ""),
    ("session_over_behind_a_place", "look up", market_errors.Unauthorized, ""),
    ("session_over_behind_a_place", "pause", market_errors.Unauthorized, ""),
    ("unknown_key_behind_a_place", "release", market_errors.Unauthorized, ""),
    ("unknown_key_behind_a_place", "list", market_errors.Unauthorized, ""),
    ("unknown_key_with_a_code", "release", market_errors.Unauthorized, ""),
    ("unknown_key_with_a_code", "look up", market_errors.Unauthorized, ""),
    ("proxy_page", "rent", market_errors.Ambiguous, ""),
    ("proxy_page", "release", market_errors.Ambiguous, ""),
    ("proxy_page", "list", market_errors.Unavailable, ""),
]


def says(name: str) -> Says:
    """Return a refusal of the payload."""
    refusal = payload("refusals")[name]
    return Says(refusal["text"].encode() if "text" in refusal else refusal["body"], refusal["status"])


def test_every_refusal_of_the_payload_is_played() -> None:
    assert set(payload("refusals")) == {name for name, *_ in REFUSALS} | {"unknown_instance_as_not_found"}


@pytest.mark.parametrize(("name", "call", "error", "reason"), REFUSALS)
async def test_a_refusal_proves_what_its_code_and_sentence_prove(
    clock: SteppedClock, name: str, call: str, error: type[market_errors.MarketError], reason: str
) -> None:
    async with vast_saying(says(name), clock) as (vast, _):
        with pytest.raises(market_errors.MarketError) as caught:
            await CALLS[call](vast)
    assert (type(caught.value), getattr(caught.value, "reason", "")) == (error, reason)


@pytest.mark.parametrize("name", ["unknown_instance_at_400", "unknown_instance_as_not_found"])
async def test_a_release_of_an_unknown_instance_is_done(clock: SteppedClock, name: str) -> None:
    async with vast_saying(says(name), clock) as (vast, wire):
        await vast.release("52000001")
    assert len(wire.seen) == 1


async def test_a_bid_under_the_floor_names_what_it_left(clock: SteppedClock) -> None:
    async with vast_saying(says("bid_under_the_floor"), clock) as (vast, _):
        with pytest.raises(market_errors.Rejected) as caught:
            await CALLS["rent"](vast)
    assert caught.value.leftover_id == "52000009"


async def test_null_under_a_plural_key_is_an_unknown_instance(clock: SteppedClock) -> None:
    async with vast_saying(Says(payload("instance_unknown")), clock) as (vast, _):
        with pytest.raises(market_errors.NotFound):
            await CALLS["look up"](vast)


async def test_a_refused_look_up_is_no_unknown_instance(clock: SteppedClock) -> None:
    async with vast_saying(Says(payload("look_up_refused")), clock) as (vast, _):
        with pytest.raises(market_errors.Malformed):
            await CALLS["look up"](vast)


@pytest.mark.parametrize(
    ("call", "empty"),
    [
        ("search", {"offers": []}),
        ("search", {"offers": ["no row"]}),
        ("list", {"instances": []}),
        ("bill", {"results": []}),
        ("inbox", {"notifications": []}),
    ],
)
async def test_a_refusal_with_status_200_is_no_empty_answer(
    clock: SteppedClock, call: str, empty: dict[str, Any]
) -> None:
    async with vast_saying(Says(payload("refused_with_200") | empty), clock) as (vast, _):
        with pytest.raises(market_errors.Malformed, match="success false"):
            await CALLS[call](vast)


async def test_no_instance_of_a_market_that_refuses_with_200_is_gone_and_no_order_is_refused() -> None:
    """The same over the simulated market, whose instance runs on."""
    async with bench.vast_bench() as simulated:
        instance_id = await simulated.rent(await simulated.offer())
        await simulated.simulated.weather("soft_refusal")
        for read in (simulated.market.instances(), simulated.market.instance(instance_id), simulated.offers()):
            with pytest.raises(market_errors.Malformed):
                await read
        for order in (simulated.market.release(instance_id), simulated.market.pause(instance_id)):
            with pytest.raises(market_errors.Ambiguous):
                await order
        assert len(await simulated.contracts()) == 1


async def test_the_credit_is_not_the_balance_and_may_be_negative(clock: SteppedClock) -> None:
    async with vast_saying(Says(payload("account")), clock) as (vast, _):
        account = await vast.account()
    assert (account.account_id, account.credit) == ("4711", money.usd("-1.504"))


async def test_a_bid_search_shows_a_rounded_price_and_the_exact_floor(clock: SteppedClock) -> None:
    async with vast_saying(Says(payload("offers_bid")), clock) as (vast, _):
        (single,) = await vast.offers(asked(verified_only=False))
        # The ask search gets the same rows here; the figure to see is the floor.
        assert (single.offer_id, single.floor) == ("31000021", UsdPerHour(9_334))


async def test_prices_are_those_of_the_whole_slice(clock: SteppedClock) -> None:
    async with vast_saying(Says(payload("offers_bid")), clock) as (vast, _):
        (double,) = await vast.offers(asked(gpus=2, verified_only=False))
    assert (double.gpus, double.floor, double.host_id) == (2, UsdPerHour(280_000), "5121")


async def test_a_host_whose_verification_was_taken_away_is_not_verified(clock: SteppedClock) -> None:
    async with vast_saying(Says(payload("offers_bid")), clock) as (vast, _):
        assert await vast.offers(asked(gpus=2, verified_only=True)) == []


async def test_rented_means_rented_by_us_and_says_nothing_of_others(clock: SteppedClock) -> None:
    """Of the rows, the one that nobody can rent has `rented` false, and the one that we rent can be rented."""
    async with vast_saying(Says(payload("offers_bid")), clock) as (vast, _):
        assert [offer.offer_id for offer in await vast.offers(asked())] == ["31000021"]


async def test_the_disk_of_an_offer_is_priced_by_its_size_and_not_by_the_quote(clock: SteppedClock) -> None:
    async with vast_saying(Says(payload("offers_bid")), clock) as (vast, _):
        (single,) = await vast.offers(asked(disk_gb=144.0))
    assert single.disk_rate(144.0) == money.per_hour("0.03")


SITUATIONS = {
    "accepted": InstanceState.PENDING,
    "under the floor": InstanceState.PAUSED,
    "pulling": InstanceState.LOADING,
    "lost the race to its start": InstanceState.PAUSED,
    "running": InstanceState.RUNNING,
    "outbid": InstanceState.PAUSED,
    "stopped by a person": InstanceState.PAUSED,
    "no credit": InstanceState.PAUSED,
    "container ended": InstanceState.EXITED,
    "host gave up": InstanceState.FAILED,
    "host offline": InstanceState.OFFLINE,
    "no heartbeat": InstanceState.OFFLINE,
    "a word nobody knows": InstanceState.UNKNOWN,
}


async def listed(clock: SteppedClock) -> dict[str, Instance]:
    """Return the instances of the payload by their situation, which is their label."""
    async with vast_saying(Says(payload("instance_states")), clock) as (vast, _):
        return {instance.label: instance for instance in await vast.instances()}


async def test_each_situation_has_its_state(clock: SteppedClock) -> None:
    assert {label: instance.state for label, instance in (await listed(clock)).items()} == SITUATIONS


async def test_an_outbid_a_stop_and_an_empty_account_look_alike(clock: SteppedClock) -> None:
    found = await listed(clock)
    alike = [found[label] for label in ("outbid", "stopped by a person", "no credit")]
    assert len({(one.state, one.is_wanted_running, one.message, one.has_trouble) for one in alike}) == 1
    assert alike[0].message.startswith("success, running")


async def test_only_a_host_without_a_heartbeat_may_charge_gpus_in_silence(clock: SteppedClock) -> None:
    assert [label for label, instance in (await listed(clock)).items() if instance.may_bill_gpu] == ["no heartbeat"]


async def test_gpus_are_charged_while_the_contract_holds_them_and_its_container_has_begun(clock: SteppedClock) -> None:
    charged = {label for label, instance in (await listed(clock)).items() if instance.bills_gpu}
    assert charged == {"running", "container ended", "no heartbeat", "a word nobody knows"}


async def test_the_bid_of_an_instance_is_its_base_price_and_never_the_total(clock: SteppedClock) -> None:
    found = await listed(clock)
    assert found["running"].bid == money.per_hour("0.25")
    assert (found["running"].disk_rate, found["running"].floor) == (money.per_hour("0.002"), money.per_hour("0.2"))
    assert (found["no credit"].tenure, found["no credit"].bid) == (Tenure.ON_DEMAND, None)


async def test_the_bill_has_a_line_a_day_and_its_items_are_exact(clock: SteppedClock) -> None:
    async with vast_saying(Says(payload("charges_two_days")), clock) as (vast, _):
        charges = await vast.charges(DAY, datetime(2026, 11, 7, tzinfo=UTC))
    assert charges == [
        Charge("52000001", money.usd("1.2"), DAY),
        Charge("52000001", money.usd("0.004"), datetime(2026, 11, 6, tzinfo=UTC)),
        # A refused bid's leftover bills its disk; the line itself is rounded to nothing.
        Charge("52000009", money.usd("0.00028"), datetime(2026, 11, 6, tzinfo=UTC)),
    ]
