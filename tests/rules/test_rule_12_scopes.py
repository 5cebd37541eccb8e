"""Rule 12 in every scope: outbids, doubts, lies, blackouts and crashes in any order never make it pay over a budget.

Overshoot is at most (rate of what was billing) x (one poll + the time in which the market could not be read or refused
releases + release latency) + traffic metered between two polls, whether the cap is of everything, of the market or of
the workload.
"""

import datetime as dt
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.decide.limits.limits import Limits
from agent.domain import money
from agent.domain.record import budget
from agent.domain.record.budget import EVERYTHING, Budget, Scope, Thresholds
from agent.simulator.vast.model import Contract
from tests.support import traffic
from tests.support.losses import AFTER, BEFORE, ORDERS, seeds
from tests.support.wiring import IS_NIGHT
from tests.support.world import PROPERTY_POLL, Rehearsed, play, work

POLL_SECONDS = PROPERTY_POLL.total_seconds()
LATENCY_SECONDS = 10.0
START = dt.datetime(2026, 7, 27, 6, tzinfo=dt.UTC)
CAP = 0.2

doubts = st.builds(
    lambda fault, route, seconds: ("weather", {**fault, "route": route, "seconds": seconds}),
    st.sampled_from(BEFORE + AFTER),
    st.sampled_from(ORDERS),
    st.sampled_from([20, 300]),
)
lies = st.builds(
    lambda fault, seconds: ("weather", {"fault": fault, "route": "GET /instances", "seconds": seconds}),
    st.sampled_from(["empty_list", "partial_list", "stale_list"]),
    st.sampled_from([20, 300]),
)
blackouts = st.builds(
    lambda seconds: ("weather", {"fault": "server_error_before", "route": "*", "seconds": seconds}),
    st.sampled_from([60, 400]),
)
outbids = st.builds(lambda times: ("rival", {"times": times}), st.sampled_from([1.05, 1.5, 6.0]))
crashes = st.builds(lambda seconds: ("crash", {"seconds": seconds}), st.sampled_from([0, 60, 400]))
blows = st.lists(st.tuples(st.sampled_from([2, 10, 30]), doubts | lies | blackouts | outbids | crashes), max_size=6)


def limited(scope: Scope, window: str) -> Limits:
    """Return a cap of one scope and one window."""
    amount: dict[str, Any] = {window: money.usd(str(CAP))}
    return Limits(**amount) if scope == EVERYTHING else Limits(budgets={scope: Budget(Thresholds(**amount))})


def befall(world: Rehearsed, kind: str, what: dict[str, Any]) -> float:
    """Let something happen, and return for how many seconds it may keep the program from ending what bills."""
    if kind == "weather":
        world.weather(**what)
        return float(what["seconds"]) + POLL_SECONDS
    live: list[Contract] = [contract for contract in world.live() if contract.bid is not None]
    if live:
        world.rival(live[0].slice.machine_id, bid=(live[0].bid or 0.0) * what["times"])
    return 0.0


@pytest.mark.parametrize("scope", [EVERYTHING, budget.of_workload("train"), budget.of_market("vast")], ids=str)
@settings(max_examples=settings().max_examples // (2 if IS_NIGHT else 3) + 1)  # 27 worlds of three scopes in CI
@given(seed=seeds, slots=st.integers(1, 3), window=st.sampled_from(["per_day", "per_month", "total"]), told=blows)
def test_no_weather_makes_it_pay_over_a_budget(
    scope: Scope, seed: int, slots: int, window: str, told: list[Any]
) -> None:
    async def story(world: Rehearsed) -> None:
        hindered, rate, left = 0.0, 0.0, list(told)
        at = world.scene.start + dt.timedelta(minutes=20)
        end = world.scene.start + dt.timedelta(hours=3)
        while world.clock.now() < end:
            done = await world.cycle()
            spent = done.plan.standing.of(scope).today.dollars
            paying = [intent for intent in done.done if intent.kind.is_paying]
            assert spent < CAP or not paying, "paid over the cap"
            held = sum(lease.gpu_rate.dollars + lease.disk_rate.dollars for lease in world.leases())
            rate = max(rate, held + sum(intent.rate.dollars for intent in world.open_intents() if not intent.lease_id))
            if left and world.clock.now() >= at:
                wait, (kind, what) = left.pop(0)
                at = world.clock.now() + dt.timedelta(minutes=wait)
                if kind == "crash":
                    await world.restart(what["seconds"])
                    hindered += what["seconds"] + POLL_SECONDS
                else:
                    world.still()
                    await world.cycle(1)
                    hindered += befall(world, kind, what)
        charges = world.market.charges(world.scene.start.timestamp(), world.clock.time())
        total = sum(charge.amount for charge in charges)
        seconds = 2 * (POLL_SECONDS + LATENCY_SECONDS) + hindered
        # A paused lease bills its disk until the release, which comes a poll later; a held one until a person decides.
        disks = sum(lease.disk_rate.dollars for lease in world.leases()) * 3
        allowed = rate * seconds / 3600 + traffic.most_dollars(charges, seconds, slots) + disks + 0.002
        assert total - CAP <= allowed, f"{total:.4f} over a cap of {CAP}, allowed {allowed:.4f}"

    play(story, seed=seed, limits=limited(scope, window), workloads=(work(slots=slots),), start=START)
