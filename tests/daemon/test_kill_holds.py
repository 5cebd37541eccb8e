"""A kill holds until it is lifted: for a rent under way, an instance out of doubt, and a refused stop."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent.domain.record.intent import Intent, IntentState
from agent.domain.record.lease import LeaseState
from agent.domain.work.decision import Hold
from agent.domain.work.order import Order
from agent.simulator.vast.model import Contract
from tests.support import spending
from tests.support.world import Rehearsed, rehearsed

BOTH = pytest.mark.parametrize("keep_disks", [False, True], ids=["release", "keep-disks"])


def billed_gpus(world: Rehearsed) -> list[str]:
    """Return the contracts that bill a GPU now."""
    return [str(contract.contract_id) for contract in world.live() if contract.holds_gpu]


@BOTH
async def test_a_rent_in_doubt_is_stopped_when_it_turns_up(tmp_path: Path, keep_disks: bool) -> None:
    async with rehearsed(tmp_path, is_wired=True) as world:
        world.weather("server_error_after", route="PUT /asks")
        await world.cycle()
        assert world.open_intents()
        assert world.live()
        assert await spending.kill(world.app, keep_disks=keep_disks) == []
        world.still()
        await world.cycle(minutes=5)
        assert not billed_gpus(world)
        assert bool(world.live()) is keep_disks
        await world.cycle(minutes=60)
        assert not billed_gpus(world)
        assert len(world.contracts()) == 1


async def test_what_a_cycle_was_renting_when_the_order_came_is_among_those_to_stop(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, is_wired=True) as world:
        orders: list[asyncio.Task[list[Intent]]] = []
        create = world.market.create

        def rented(*arguments: Any, **terms: Any) -> Contract:
            orders.append(asyncio.ensure_future(spending.kill(world.app)))
            return create(*arguments, **terms)

        world.market.create = rented  # type: ignore[method-assign]
        await world.cycle()
        assert len(orders) == 1, "no rent was under way; the story tells nothing"
        # Nothing is written to an id that a reply alone named (rule 18): the next look proves it, then it ends.
        await orders[0]
        await world.cycle(minutes=1)
        assert len(world.contracts()) == 1
        assert not world.live()


@pytest.mark.parametrize("verb", ["kill", "release", "pause"])
async def test_no_cycle_runs_between_the_record_of_an_order_and_its_endings(tmp_path: Path, verb: str) -> None:
    async with rehearsed(tmp_path, is_wired=True) as world:
        await world.until_running()
        before = len(world.simulator.api.calls)
        cycle = asyncio.create_task(world.app.cycle())
        await asyncio.sleep(0)
        assert world.app._turn.locked(), "the cycle has begun"
        _, done = await world.app.say(Order(verb, "train"), "a test")
        assert [intent.state for intent in done] == [IntentState.CONFIRMED]
        await cycle
        routes = [(method, path.rstrip("/")) for _, method, path, _ in list(world.simulator.api.calls)[before:]]
        ending = next(at for at, (method, path) in enumerate(routes) if method != "GET" and "/instances/" in path)
        listings = [path for method, path in routes[:ending] if method == "GET" and path.endswith("/instances")]
        assert len(listings) <= 1, "the reading that it interrupted, and no other"


async def test_a_cycle_that_had_its_turn_first_gives_way_before_it_reads(tmp_path: Path) -> None:
    """Both wait for the turn of an earlier order; the cycle came first."""
    async with rehearsed(tmp_path, is_wired=True) as world:
        await world.until_running()
        before = len(world.simulator.api.calls)
        async with world.app._turn:
            cycle = asyncio.create_task(world.app.cycle())
            await asyncio.sleep(0)
            order = asyncio.create_task(world.app.say(Order("release", "train"), "a test"))
            await asyncio.sleep(0)
        _, done = await order
        assert [intent.state for intent in done] == [IntentState.CONFIRMED]
        await cycle
        routes = [(method, path) for _, method, path, _ in list(world.simulator.api.calls)[before:]]
        assert routes[0][0] == "DELETE", routes
        assert any(method == "GET" for method, _ in routes), "the cycle went on afterwards"


@BOTH
async def test_a_refused_stop_is_given_again(tmp_path: Path, keep_disks: bool) -> None:
    async with rehearsed(tmp_path, is_wired=True) as world:
        await world.until_running()
        world.weather("throttle_text", route="PUT /instances" if keep_disks else "DELETE /instances", seconds=30)
        done = await spending.kill(world.app, keep_disks=keep_disks)
        assert done[0].state is IntentState.REJECTED
        assert bool(billed_gpus(world)) is keep_disks, "a release that is refused is a pause for the time being"
        await world.cycle(minutes=3)
        assert not billed_gpus(world)
        assert bool(world.live()) is keep_disks


async def test_a_plain_kill_after_one_that_kept_the_disks_releases_them(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, is_wired=True) as world:
        await world.until_running()
        await spending.kill(world.app, keep_disks=True)
        await world.cycle(minutes=2)
        assert world.lease().state is LeaseState.PAUSED
        await spending.kill(world.app)
        await world.cycle(minutes=2)
        assert not world.live()


async def test_a_kill_that_keeps_the_disks_after_one_that_releases_is_taken(tmp_path: Path) -> None:
    """It ended with "releasing and may not become paused": a lease that leaves is paused and leaves all the same."""
    async with rehearsed(tmp_path) as world:
        await world.until_running()
        world.weather("throttle_retry_after", route="DELETE /instances", retry_after=31_536_000, seconds=300)
        await spending.kill(world.app)
        assert world.lease().state is LeaseState.RELEASING
        await spending.kill(world.app, keep_disks=True)
        await world.cycle(minutes=2)
        assert not billed_gpus(world)
        assert world.lease().state is LeaseState.RELEASING
        await world.cycle(minutes=10)
        assert not world.live(), "the first order stands"


async def test_it_outlives_the_program_and_ends_when_lifted(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, is_wired=True) as world:
        await world.until_running()
        await spending.kill(world.app)
        await world.restart(after_seconds=600)
        done = await world.cycle(minutes=10)
        assert not world.live()
        assert all(isinstance(decision, Hold) and decision.reason.code == "stopped" for decision in done.plan.decisions)
        await spending.lift(world.app)
        await world.until_running()
        assert len(world.live()) == 1
