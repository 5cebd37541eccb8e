"""Rule 20: spending stops on order.

After a kill or a crossed hard cap no GPU bills for more than five minutes in which the market accepts any ending call.
One answer of the market silences listing, pause and release for a minute at most.
"""

import dataclasses
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.decide.limits.limits import Limits
from agent.decide.moves import immediate_endings
from agent.decide.operators import operator_holds
from agent.domain import money
from agent.domain.fleet import Fleet
from agent.domain.record.intent import IntentKind, IntentState
from agent.domain.record.lease import LeaseState
from agent.simulator.runpod.model import Pod
from agent.simulator.vast.model import Contract
from tests.support import builders, loop, second_price, spending
from tests.support.both import OF_THE_PAST, Both, both
from tests.support.losses import seeds
from tests.support.world import POLL, Rehearsed, in_memory, play, rehearsed, work

YEAR = 31_536_000
FIVE_MINUTES = 300.0


def bills(contract: Contract | Pod) -> bool:
    """Return whether a GPU is billed, as it really is."""
    return contract.ended is None and contract.holds_gpu


async def billed_after(world: Rehearsed, minutes: float = 12.0) -> float:
    """Run cycles and return for how many seconds from now on the last GPU was billed."""
    began, last = world.clock.monotonic(), 0.0
    while world.clock.monotonic() - began < minutes * 60:
        await world.cycle()
        world.market.advance_to(world.clock.time())
        if any(bills(contract) for contract in world.live()):
            last = world.clock.monotonic() - began
    return last


async def settled(world: Rehearsed) -> None:
    """Run cycles until something runs, and a while longer; not every market has hosts for every slot."""
    await world.until(lambda: any(lease.state is LeaseState.RUNNING for lease in world.leases()))
    await world.cycle(minutes=5)


throttled = st.sampled_from(["throttle_text", "throttle_json", "throttle_retry_after"])
waits = st.sampled_from([0, 1, 60, 3600, YEAR])
refusing = st.sampled_from(["throttle_retry_after", "server_error_before", "html_403", "slow", "reset"])
DARK = ["GET /instances", "GET /users", "POST /bundles", "GET /notifications"]


def blow(world: Rehearsed, fault: str, route: str, wait: float) -> None:
    """Let a fault blow on a route for good."""
    extra: dict[str, dict[str, Any]] = {
        "throttle_json": {"retry_after": wait},
        "throttle_retry_after": {"retry_after": wait},
        "slow": {"delay": 29.0},
        "reset": {"when": "before"},
    }
    world.weather(fault, route=route, **extra.get(fault, {}))


@given(
    seed=seeds,
    slots=st.integers(1, 3),
    refused=st.sampled_from(["DELETE /instances", "PUT /instances", ""]),
    fault=refusing,
    wait=waits,
    dark=st.lists(st.sampled_from(DARK), unique=True),
    dark_fault=refusing,
    keep=st.booleans(),
)
def test_a_kill_stops_every_gpu(  # noqa: PLR0913 - the parts of a story
    seed: int, slots: int, refused: str, fault: str, wait: float, dark: list[str], dark_fault: str, keep: bool
) -> None:
    # A kill that keeps the disks may not release: where no pause is accepted there is no ending call left.
    refused = "DELETE /instances" if keep and refused else refused

    async def story(world: Rehearsed) -> None:
        world.is_checked = False
        await settled(world)
        for route in dark:
            blow(world, dark_fault, route, wait)
        if refused:
            blow(world, fault, refused, wait)
        await world.cycle(minutes=1)
        await spending.kill(world.app, keep_disks=keep)
        assert await billed_after(world) <= FIVE_MINUTES
        ended = await world.intents(IntentKind.RELEASE, IntentKind.PAUSE)
        assert len([each for each in ended if each.state is IntentState.REJECTED]) <= slots * 2 * 16

    play(story, seed=seed, workloads=(work(slots=slots),), poll=POLL)


@given(
    seed=seeds,
    slots=st.integers(1, 2),
    fault=refusing,
    wait=waits,
    dark=st.lists(st.sampled_from(DARK), unique=True),
    dark_fault=refusing,
)
def test_a_crossed_hard_cap_stops_every_gpu(
    seed: int, slots: int, fault: str, wait: float, dark: list[str], dark_fault: str
) -> None:
    async def story(world: Rehearsed) -> None:
        world.is_checked = False
        await settled(world)
        for route in dark:
            blow(world, dark_fault, route, wait)
        blow(world, fault, "DELETE /instances", wait)
        seen = world.app.seen
        assert seen is not None
        cap = seen.plan.standing.today + money.usd("0.003")
        world.app.rules = dataclasses.replace(world.app.rules, caps=Limits(per_day=cap))
        over: float | None = None
        last = 0.0
        for _ in range(400):
            done = await world.cycle()
            world.market.advance_to(world.clock.time())
            now = world.clock.monotonic()
            over = now if over is None and done.plan.standing.today >= cap else over
            last = now if any(bills(contract) for contract in world.live()) else last
            if over is not None and now - over > 2 * FIVE_MINUTES:
                break
        assert over is not None, "the cap was never crossed: the story tells nothing"
        assert last - over <= FIVE_MINUTES

    play(story, seed=seed, workloads=(work(slots=slots),), poll=POLL)


@given(route=st.sampled_from([*DARK[:2], "DELETE /instances", "PUT /instances"]), fault=throttled, wait=waits)
def test_one_answer_silences_nothing_for_more_than_a_minute(route: str, fault: str, wait: float) -> None:
    async def story(world: Rehearsed) -> None:
        await world.until_running()
        blow(world, fault, route, wait)
        await spending.kill(world.app, keep_disks=route.startswith("PUT"))
        await world.cycle(minutes=1)
        world.still()
        began = world.clock.monotonic()
        seen = world.app.seen
        while not (world.app.seen is not seen and world.app.seen and world.app.seen.fleet.markets["vast"].is_fresh):
            await world.cycle()
            assert world.clock.monotonic() - began <= 80.0, "a minute and a poll"
        while any(lease.bills.value == "gpu_and_disk" for lease in world.leases()):
            await world.cycle()
            assert world.clock.monotonic() - began <= 100.0

    play(story, poll=POLL)


async def test_a_year_of_silence_on_the_account_is_no_dark_market(tmp_path: Path) -> None:
    async with rehearsed(tmp_path) as world:
        lease = await world.until_running()
        world.weather("throttle_retry_after", route="GET /users", retry_after=YEAR)
        for _ in range(4):
            done = await world.cycle(minutes=5)
            assert done.fleet.markets["vast"].is_fresh
        view = done.fleet.markets["vast"]
        assert "shown the account" in view.no_spend_because, "facts of the account are too old to pay by"
        assert [held.lease_id for held in world.leases()] == [lease.lease_id]
        world.still()
        done = await world.cycle(minutes=3)
        assert done.fleet.markets["vast"].no_spend_because == ""


@pytest.mark.parametrize("market", ["vast", "runpod"])
async def test_an_hour_after_a_kill_under_a_years_retry_after(tmp_path: Path, market: str) -> None:
    routes = {"vast": ("DELETE /instances",), "runpod": ("GET /v2/pods", "GET /v2/catalog")}
    jobs = (builders.workload(markets=(market,), slots=2),)
    async with both(tmp_path, *jobs, markets=(market,), climate=OF_THE_PAST) as world:
        await world.until(lambda: len(world.running()) == 2)
        for route in routes[market]:
            world.weather(market, "throttle_retry_after", route=route, retry_after=YEAR)
        await world.cycle()
        await spending.kill(world.app)
        await world.cycle(minutes=65)
        assert not [contract for contract in world.contracts(market) if contract.holds_gpu]
        reader = await world.app.ledger.reader()
        rejected = [each for each in await reader.intents(10_000) if each.state is IntentState.REJECTED]
        assert len(rejected) <= 2 * 70
        world.still()
        await world.cycle(minutes=10)
        assert not world.contracts(market)
        assert not [lease for lease in world.leases() if lease.state is not LeaseState.ENDED]


@given(keep=st.booleans(), share=st.sampled_from([0.5, 0.8]), wait=waits, seed=seeds)
@example(keep=True, share=0.8, wait=3600, seed=2963)  # all tries for one pod are refused
def test_a_kill_of_pods_outlasts_what_runpod_refuses(keep: bool, share: float, wait: float, seed: int) -> None:
    async def story(world: Both) -> None:
        await world.until(lambda: len(world.running()) == 3)
        world.weather("runpod", "throttle_retry_after", route="POST /v2/pods", retry_after=wait, probability=share)
        world.weather("runpod", "throttle_retry_after", route="GET /v2", retry_after=YEAR)
        await spending.kill(world.app, keep_disks=keep)
        await world.cycle(minutes=20)
        reader = await world.app.ledger.reader()
        endings = [each for each in await reader.intents(10_000) if each.kind in {IntentKind.PAUSE, IntentKind.RELEASE}]
        refused = Counter(each.lease_id for each in endings if each.state is IntentState.REJECTED)
        for pod in [pod for pod in world.live() if pod.holds_gpu]:
            # Chance may refuse each try: 0.8 ** 20 is one pod of 87. There was one in each minute.
            assert refused[f"runpod-{pod.pod_id}"] >= 19
        world.still()
        await world.cycle(minutes=2)
        assert not [pod for pod in world.live() if pod.holds_gpu]

    async def told() -> None:
        with tempfile.TemporaryDirectory(prefix="gpubid-rules-", dir=in_memory()) as directory:
            jobs = builders.workload(strategy="ondemand", markets=("runpod",), slots=3)
            async with both(Path(directory), jobs, markets=("runpod",), seed=seed) as world:
                await story(world)

    loop.run_on_one_thread(told())


@given(fleet=second_price.fleets(), keeps_disks=st.booleans())
def test_a_kill_ends_bids_that_wait_for_an_auction_first(fleet: Fleet, *, keeps_disks: bool) -> None:
    """They cost nothing yet, but the next auction may start them while the running ones end."""
    holds = operator_holds.killed((), builders.NOW, "a person", keeps_disks=keeps_disks)
    killed = msgspec.structs.replace(fleet, holds=holds)
    ended = [order.lease for order in immediate_endings.stops(killed, Limits())]
    assert [lease.is_open_bid for lease in ended] == sorted((each.is_open_bid for each in ended), reverse=True)
    assert {lease.lease_id for lease in fleet.leases if not lease.is_down} <= {lease.lease_id for lease in ended}
