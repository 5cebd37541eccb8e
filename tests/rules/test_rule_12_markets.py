"""Rule 12 on RunPod alone and over both markets: whatever blows on either, no budget is paid over.

Overshoot is at most (rate of what was billing) x (one poll + the time in which a market could not be read or refused
releases + release latency) + traffic metered between two polls. What one market does counts for the budget of
everything and for that of a workload that runs on both; the budget of a market bounds that market alone.
"""

import contextlib
import datetime as dt
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.decide.limits.limits import Limits
from agent.domain import money
from agent.domain.market.label import Label
from agent.domain.record import budget
from agent.domain.record.budget import EVERYTHING, Budget, Kind, Scope, Thresholds
from agent.domain.record.intent import Intent
from agent.markets import labels
from agent.simulator.market_model import Charge, Refusal
from tests.support import loop
from tests.support.both import OF_THE_PAST, Both, both
from tests.support.losses import AFTER, BEFORE, seeds
from tests.support.scene import PROPERTY_POLL, work
from tests.support.wiring import IS_NIGHT
from tests.support.world import in_memory

POLL_SECONDS = PROPERTY_POLL.total_seconds()
LATENCY_SECONDS = 10.0
START = dt.datetime(2026, 7, 27, 6, tzinfo=dt.UTC)
HOURS = 2.5
CAP = 0.2
LIST = {"vast": "GET /instances", "runpod": "GET /v2/pods"}
ORDERS = {"vast": ("PUT /asks", "PUT", "DELETE /instances"), "runpod": ("POST /v2/pods", "POST /graphql", "POST")}
ALONE, TOGETHER = ("runpod",), ("runpod", "vast")

NOTHING: st.SearchStrategy[dict[str, Any]] = st.just({})
seconds = st.sampled_from([20, 300])
doubts = st.tuples(st.just("doubt"), st.sampled_from(BEFORE + AFTER), st.integers(0, 2), seconds)
lies = st.tuples(
    st.just("lie"), st.sampled_from(["empty_list", "partial_list", "stale_list"]).map(lambda name: {"fault": name}),
    st.just(0), seconds,
)  # fmt: skip
blackouts = st.tuples(
    st.just("blackout"), st.just({"fault": "server_error_before"}), st.just(0), st.sampled_from([60, 400])
)
outbids = st.tuples(st.just("outbid"), NOTHING, st.just(0), st.just(0))
crashes = st.tuples(st.just("crash"), NOTHING, st.just(0), st.sampled_from([0, 60, 400]))
kinds = doubts | lies | blackouts | outbids | crashes
blows = st.lists(st.tuples(st.sampled_from([2, 10, 30]), st.sampled_from(TOGETHER), kinds), max_size=6)
Blow = tuple[str, dict[str, Any], int, int]


def limited(scope: Scope, window: str) -> Limits:
    """Return a cap of one scope and one window."""
    amount: dict[str, Any] = {window: money.usd(str(CAP))}
    return Limits(**amount) if scope == EVERYTHING else Limits(budgets={scope: Budget(Thresholds(**amount))})


def label_of(charge: Charge) -> Label:
    """Return the label of a charge: all of them are ours."""
    label = labels.parse(charge.label or "")
    assert label is not None, charge
    return label


def charged(world: Both, markets: tuple[str, ...], scope: Scope) -> list[Charge]:
    """Return the markets' charges to a scope's budget."""
    names = [scope.name] if scope.kind is Kind.MARKET else markets
    found = [charge for name in names for charge in world.charges(name)]
    return [one for one in found if scope.kind is not Kind.WORKLOAD or label_of(one).slot.workload == scope.name]


def outbid(world: Both, market: str) -> None:
    """Let somebody rent the GPU of a market's first bidder on demand."""
    held = [one for one in world.contracts(market) if one.bid is not None and one.holds_gpu]
    # A rival before may have rented the rest of the host: then nobody is outbid.
    with contextlib.suppress(Refusal):
        if held and market == "runpod":
            world.pods.add_rival(held[0].host.machine_id, None, None, on_demand=True)
        elif held:
            world.hosts.add_rival(held[0].host.machine_id, 1, None, on_demand=True)


async def befall(world: Both, market: str, blow: Blow) -> float:
    """Let something happen; return for how many seconds it may keep the program from ending what bills."""
    kind, fault, order, lasts = blow
    if kind == "crash":
        await world.restart(lasts)
        return lasts + POLL_SECONDS
    world.still()
    await world.cycle(1)
    if kind == "outbid":
        outbid(world, market)
        return 0.0
    route = {"doubt": ORDERS[market][order], "lie": LIST[market], "blackout": "*"}[kind]
    world.weather(market, route=route, seconds=lasts, **fault)
    return lasts + POLL_SECONDS


async def live(world: Both, markets: tuple[str, ...], scope: Scope, told: list[Any]) -> None:
    """Run through what happens, and insist that nothing is paid over the cap."""
    hindered, rate, left = 0.0, 0.0, list(told)
    at, end = START + dt.timedelta(minutes=20), START + dt.timedelta(hours=HOURS)
    most_slots = sum(item.slots for item in world.config.workloads)
    while world.clock.now() < end:
        done = await world.cycle()
        spent = done.plan.standing.of(scope).today.dollars
        bound = [intent for intent in done.done if intent.kind.is_paying and is_of(intent, scope)]
        assert spent < CAP or not bound, "paid over the cap"
        known = world.app.ledger.recollection(world.clock.now())
        held = sum(lease.gpu_rate.dollars + lease.disk_rate.dollars for lease in known.leases)
        rate = max(rate, held + sum(intent.rate.dollars for intent in known.intents if not intent.lease_id))
        if left and world.clock.now() >= at:
            wait, market, blow = left.pop(0)
            at = world.clock.now() + dt.timedelta(minutes=wait)
            hindered += await befall(world, market if market in markets else markets[0], blow)
    charges = charged(world, markets, scope)
    total = sum(charge.amount for charge in charges)
    traffic = max((charge.amount for charge in charges if charge.kind in {"download", "upload"}), default=0.0)
    late = 2 * (POLL_SECONDS + LATENCY_SECONDS) + hindered
    # A paused lease bills its disk until the release, which comes a poll later; a held one until a person decides.
    disks = sum(lease.disk_rate.dollars for lease in world.leases()) * HOURS
    allowed = rate * late / 3600 + traffic * most_slots + disks + 0.002
    assert total > 0, "nothing was rented: the property says nothing"
    assert total - CAP <= allowed, f"{total:.4f} over a cap of {CAP}, allowed {allowed:.4f}"


def is_of(intent: Intent, scope: Scope) -> bool:
    """Return whether an intent spends a scope's money."""
    return scope == EVERYTHING or scope.name in {intent.market, intent.slot.workload}


def assert_within_budget(
    markets: tuple[str, ...], scope: Scope, seed: int, strategy: str, window: str, told: list[Any]
) -> None:
    """Play one story in a world of its own, with a workload that may go anywhere and one more."""

    async def story() -> None:
        with tempfile.TemporaryDirectory(prefix="gpubid-rules-", dir=in_memory()) as folder:
            # Where a market's budget is tried, something must run there; the other workload is free to leave.
            pinned = (scope.name,) if scope.kind is Kind.MARKET else ()
            works = work(strategy=strategy, slots=2), work("eval", strategy="patient", markets=pinned)
            limits = limited(scope, window)
            place = Path(folder)
            async with both(
                place,
                *works,
                markets=markets,
                seed=seed,
                limits=limits,
                start=START,
                climate=OF_THE_PAST,
                poll=PROPERTY_POLL,
            ) as world:
                await live(world, markets, scope, told)

    loop.run_on_one_thread(story())


names = st.sampled_from(["patient", "ondemand"])
windows = st.sampled_from(["per_day", "per_month", "total"])
SCOPES = [
    (ALONE, EVERYTHING),
    pytest.param(ALONE, budget.of_market("runpod"), marks=pytest.mark.nightly),
    (TOGETHER, EVERYTHING),
    (TOGETHER, budget.of_market("runpod")),
    pytest.param(TOGETHER, budget.of_market("vast"), marks=pytest.mark.nightly),
    (TOGETHER, budget.of_workload("train")),
]


@pytest.mark.parametrize(("markets", "scope"), SCOPES, ids=str)
@settings(max_examples=settings().max_examples // (2 if IS_NIGHT else 4) + 1)  # 28 worlds of four cases in CI
@given(seed=seeds, strategy=names, window=windows, told=blows)
def test_nothing_on_either_market_makes_it_pay_over_a_budget(
    markets: tuple[str, ...], scope: Scope, seed: int, strategy: str, window: str, told: list[Any]
) -> None:
    assert_within_budget(markets, scope, seed, strategy, window, told)
