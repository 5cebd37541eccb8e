"""RunPod's surprises, each from a payload through the real adapter over HTTP. `payloads/README.md` has the table."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from agent.clock import SteppedClock
from agent.domain import money
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.tenure import Tenure
from agent.markets import market_errors
from agent.markets.port import Charge
from agent.markets.runpod import figures
from agent.markets.runpod.market import RunPodMarket
from tests.markets import pods
from tests.markets.scene import LABEL, asked
from tests.markets.wire import Answers, Says, Seen

Call = Callable[[RunPodMarket], Awaitable[Any]]

BID = replace(pods.ASK, tenure=Tenure.INTERRUPTIBLE, bid=money.per_hour("0.80"))
PAIR = msgspec.structs.replace(pods.OFFERED, gpus=2)
STOPPED, BROKEN, RUNS = pods.POD, "b7n1m4s8d0kl", "r5h2j9f3g6qw"

CALLS: dict[str, Call] = {
    "rent": lambda runpod: runpod.rent(pods.OFFERED, pods.ASK, LABEL),
    "start": lambda runpod: runpod.resume(pods.POD),
    "look up": lambda runpod: runpod.instance(pods.POD),
    "account": lambda runpod: runpod.account(),
    "bid": lambda runpod: runpod.rent(PAIR, BID, LABEL),
}

PROBLEMS: list[tuple[str, str, type[market_errors.MarketError], str]] = [
    ("create_no_capacity", "rent", market_errors.Rejected, "no_capacity"),
    ("create_host_too_small", "rent", market_errors.Rejected, "no_capacity"),
    ("create_insufficient_balance", "rent", market_errors.OutOfFunds, "out_of_funds"),
    ("create_unknown_field", "rent", market_errors.Rejected, "invalid_args"),
    ("start_host_full", "start", market_errors.Rejected, "host_full"),
    ("start_wrong_state", "start", market_errors.Rejected, "wrong_state"),
    ("unknown_pod", "start", market_errors.NotFound, ""),
    ("unknown_pod", "look up", market_errors.NotFound, ""),
    # The words of a refusal at a status that proves nothing.
    ("server_fault", "rent", market_errors.Ambiguous, ""),
]


async def failure(answers: Answers | Says, clock: SteppedClock, call: Call) -> market_errors.MarketError:
    """Return the error of a call."""
    async with pods.runpod_saying(answers, clock) as (runpod, _):
        with pytest.raises(market_errors.MarketError) as caught:
            await call(runpod)
    return caught.value


@pytest.mark.parametrize(("name", "call", "error", "reason"), PROBLEMS)
async def test_a_problem_proves_what_its_status_and_sentence_prove(
    clock: SteppedClock, name: str, call: str, error: type[market_errors.MarketError], reason: str
) -> None:
    problem = pods.payload("problems")[name]
    raised = await failure(Says(problem, problem["status"]), clock, CALLS[call])
    assert (type(raised), getattr(raised, "reason", "")) == (error, reason)


def graphql(name: str) -> Answers:
    """Answer as the account, but each of its questions and orders in GraphQL so."""
    says = Says(pods.payload("graphql_errors")[name])
    return lambda seen: says if seen.path == "/graphql" else pods.account(seen)


async def resumed(runpod: RunPodMarket) -> bool:
    """List the stopped pod at a bid, then start it."""
    await runpod.instances()
    return await runpod.resume(STOPPED)


def stopped(name: str) -> Answers:
    """Answer as an account with a stopped pod at a bid, but a start of it so."""
    start = Says(pods.payload("graphql_errors")[name])
    return lambda seen: start if b"podBidResume" in seen.body else listed(seen)


def listed(seen: Seen) -> Says:
    """Answer as an account with the pods of the payloads on both surfaces."""
    if seen.path == "/v2/pods":
        return Says(pods.payload("pods_stopped"))
    return Says(pods.payload("graphql_pods")) if seen.path == "/graphql" else pods.account(seen)


GRAPHQL: list[tuple[str, str, type[market_errors.MarketError], str]] = [
    ("rent_no_capacity", "bid", market_errors.Rejected, "no_capacity"),
    ("rent_not_offered", "bid", market_errors.Rejected, "not_sold"),
    ("rent_server_fault", "bid", market_errors.Ambiguous, ""),
    # An error beside a pod proves no refusal: the pod bills.
    ("rent_and_an_error", "bid", market_errors.Ambiguous, ""),
    ("rent_and_a_refused_key", "bid", market_errors.Ambiguous, ""),
    ("pods_key", "account", market_errors.Unauthorized, ""),
    ("nobodys_key", "account", market_errors.Unauthorized, ""),
    ("guest", "account", market_errors.Unauthorized, ""),
]


@pytest.mark.parametrize(("name", "call", "error", "reason"), GRAPHQL)
async def test_an_error_with_status_200_is_none_of_the_listing_and_proves_what_it_says(
    clock: SteppedClock, name: str, call: str, error: type[market_errors.MarketError], reason: str
) -> None:
    raised = await failure(graphql(name), clock, CALLS[call])
    assert (type(raised), getattr(raised, "reason", "")) == (error, reason)


RESUMES: list[tuple[str, type[market_errors.MarketError], str]] = [
    ("resume_host_full", market_errors.Rejected, "host_full"),
    ("resume_outbid", market_errors.Rejected, "bid_too_low"),
    ("resume_not_started", market_errors.Ambiguous, ""),
    ("resume_nothing", market_errors.Ambiguous, ""),
]


@pytest.mark.parametrize(("name", "error", "reason"), RESUMES)
async def test_a_start_at_a_bid_counts_only_with_a_running_pod(
    clock: SteppedClock, name: str, error: type[market_errors.MarketError], reason: str
) -> None:
    raised = await failure(stopped(name), clock, resumed)
    assert (type(raised), getattr(raised, "reason", "")) == (error, reason)


async def test_a_placeholder_is_no_price_and_one_row_is_no_model(clock: SteppedClock) -> None:
    def answers(seen: Seen) -> Says:
        is_catalogue = seen.path.startswith("/v2/catalog")
        return Says(pods.payload("catalogue_placeholders")) if is_catalogue else pods.account(seen)

    async with pods.runpod_saying(answers, clock) as (runpod, _):
        found = await runpod.offers(asked(verified_only=False))
    assert {(offer.gpu, offer.is_verified, offer.ask) for offer in found} == {
        ("RTX 4090", True, money.per_hour("0.66")),
        ("RTX A2000", False, money.per_hour("0.12")),
    }


async def test_a_floor_is_for_all_gpus_a_price_for_one_and_a_floor_at_the_ask_is_none(clock: SteppedClock) -> None:
    def answers(seen: Seen) -> Says:
        return Says(pods.payload("floors")) if b"gpuTypes" in seen.body else pods.account(seen)

    async with pods.runpod_saying(answers, clock) as (runpod, wire):
        found = {(offer.gpu, offer.floor, offer.ask) for offer in await runpod.offers(asked(gpus=2))}
        await runpod.rent(PAIR, BID, LABEL)
    assert found == {
        ("RTX 4090", money.per_hour("0.70"), money.per_hour("1.32")),
        ("H100 SXM", None, money.per_hour("5.88")),
    }
    # The bid is sent for each of the two GPUs.
    assert wire.seen[-1].json["variables"]["input"]["bidPerGpu"] == 0.4


async def surfaces(clock: SteppedClock) -> tuple[dict[str, Instance], dict[str, tuple[str, datetime]]]:
    """Return the instances of the payloads by id, and kind and time of each one's last change."""
    async with pods.runpod_saying(listed, clock) as (runpod, _):
        instances = {one.instance_id: one for one in await runpod.instances()}
        events = await runpod.events(datetime(2026, 11, 5, tzinfo=UTC))
        return instances, {event.instance_id: (str(event.kind), event.at) for event in events}


async def test_a_report_of_a_pod_that_exited_is_stale(clock: SteppedClock) -> None:
    instances, _ = await surfaces(clock)
    assert (instances[STOPPED].state, instances[STOPPED].bills_gpu) == (InstanceState.PAUSED, False)
    assert (instances[RUNS].state, instances[RUNS].bills_gpu) == (InstanceState.RUNNING, True)


async def test_what_graphql_alone_has_is_tenure_bid_and_why_a_pod_stopped(clock: SteppedClock) -> None:
    instances, changes = await surfaces(clock)
    assert (instances[STOPPED].tenure, instances[STOPPED].bid) == (Tenure.INTERRUPTIBLE, money.per_hour("0.80"))
    assert (instances[RUNS].tenure, instances[RUNS].bid) == (Tenure.ON_DEMAND, None)
    assert changes[STOPPED] == ("bid_lost", datetime(2026, 11, 5, 21, 30, tzinfo=UTC))
    assert changes[BROKEN] == ("stopped_by_market", datetime(2026, 11, 5, 21, 10, tzinfo=UTC))


async def test_a_pod_that_the_market_stopped_before_it_ran_could_not_start(clock: SteppedClock) -> None:
    instances, _ = await surfaces(clock)
    assert (instances[BROKEN].state, instances[BROKEN].has_trouble) == (InstanceState.FAILED, True)


async def test_a_pod_that_ran_and_was_stopped_by_the_market_can_start_again(clock: SteppedClock) -> None:
    rows = pods.payload("pods_stopped")["pods"]
    earlier = [row | {"status": "RUNNING", "runtime": {"uptime": 9}} for row in rows if row["id"] == BROKEN]
    async with pods.runpod_saying(pods.listing(*earlier), clock) as (runpod, wire):
        await runpod.instances()
        clock.advance(60.0)
        wire.answers = listed
        found = {one.instance_id: one.state for one in await runpod.instances()}
    assert found[BROKEN] is InstanceState.PAUSED


async def test_a_port_behind_the_proxy_has_no_address_of_its_own(clock: SteppedClock) -> None:
    instances, _ = await surfaces(clock)
    assert instances[RUNS].ports == "8000/tcp=203.0.113.9:41234"


async def test_the_credit_may_be_negative(clock: SteppedClock) -> None:
    async with pods.runpod_saying(listed, clock) as (runpod, _):
        assert (await runpod.account()).credit == money.usd("-0.42")


async def test_a_stopped_pod_bills_its_volume_at_twice_the_rate_and_shows_no_cost(clock: SteppedClock) -> None:
    instances, _ = await surfaces(clock)
    one = instances[STOPPED]
    assert one.billing_rate == one.disk_rate
    async with pods.runpod_saying(Says(pods.payload("bill_of_a_stopped_pod")), clock) as (runpod, _):
        charges = await runpod.charges(datetime(2026, 11, 5, tzinfo=UTC), datetime(2026, 11, 7, tzinfo=UTC))
    days = [datetime(2026, 11, 5, tzinfo=UTC) + timedelta(days=number) for number in range(2)]
    assert charges == [Charge(STOPPED, money.usd("0.2667"), day) for day in days]
    # A day at the listed rate is the day of the bill, to its four decimals.
    assert abs(one.disk_rate.micros * 24 - charges[0].amount.micros) < 100
    assert figures.STOPPED_VOLUME_MICROS_PER_GB_MONTH == 2 * figures.VOLUME_MICROS_PER_GB_MONTH
