"""Arrays whose hosts go on with the next task: the whole program, its market and its bucket; the guards are played."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.decide.limits.limits import Limits
from agent.domain.money import usd
from agent.domain.record import budget
from agent.domain.record.budget import Budget, Thresholds
from agent.domain.record.hold import Word
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.guard_terms import GuardTerms
from agent.domain.work.order import Order
from agent.domain.work.run_times.run_window import Outside, WindowRule
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload, WorkloadKind
from tests.support import played_bucket
from tests.support.played_bucket import PlayedBucket
from tests.support.played_guards import PlayedGuards
from tests.support.s3_server import SECRET
from tests.support.world import FLEET, START, Rehearsed, rehearsed, work

RATES = tuple(f"0.{index}" for index in range(6))


def sweep(bucket: PlayedBucket, slots: int = 6, **changes: Any) -> Workload:
    terms: dict[str, Any] = {
        "kind": WorkloadKind.BATCH,
        "slots": slots,
        "array": ArrayTerms(2, task_hours=0.1),
        "values": (("LR", RATES[:slots]),),
        "command": "python sweep.py",
        "guard": GuardTerms(("/w",), bucket=bucket.place(), keep_host=True),
        "checkpoint": Checkpoint(place=CheckpointPlace.REMOTE),
        "image_gb": 60.0,
    }
    return work("sweep", **{**terms, **changes})


@contextlib.asynccontextmanager
async def played(folder: Path, **changes: Any) -> AsyncIterator[tuple[Rehearsed, PlayedGuards]]:
    """Run a world with an array and its guards."""
    guards = {name: changes.pop(name) for name in ("deaf", "minutes") if name in changes}
    caps = changes.pop("limits", Limits())
    with played_bucket.played() as bucket:
        array = sweep(bucket, **changes)
        poll = timedelta(seconds=30)
        async with rehearsed(folder, workloads=(array,), poll=poll, limits=caps, credential=lambda _: SECRET) as world:
            yield world, PlayedGuards(world, bucket, **guards)


def marked(world: Rehearsed, word: Word) -> set[str]:
    known = world.app.ledger.recollection(world.clock.now())
    return {each.target.spoken for each in known.holds if each.word is word}


def done(world: Rehearsed) -> set[str]:
    return marked(world, Word.DONE)


def are_done(world: Rehearsed, slots: int) -> Callable[[], Awaitable[bool]]:
    """Return whether that many slots are done, as a condition."""

    async def is_reached() -> bool:
        return len(done(world)) >= slots

    return is_reached


def are_reassigned(world: Rehearsed, count: int = 1) -> Callable[[], Awaitable[bool]]:
    async def is_reached() -> bool:
        return len(await world.events("lease.reassigned")) >= count

    return is_reached


async def test_two_hosts_do_six_tasks_each_once_and_each_with_its_own_value(tmp_path: Path) -> None:
    async with played(tmp_path) as (world, guards):
        await guards.until(are_done(world, 6))
        await guards.cycle(5)
        assert len(world.contracts()) == 2
        assert not world.live()
        tasks = [task for guard in guards.guards.values() for task in guard.tasks]
        assert sorted(tasks) == [(str(index), RATES[index]) for index in range(6)]
        # Each slot has its own lease and its own account, and the ledger agrees with the market's charges.
        leases = await world.past_leases()
        assert sorted(lease.slot.index for lease in leases) == list(range(6))
        assert {lease.state for lease in leases} == {LeaseState.ENDED}
        told = await world.events("lease.reassigned")
        assert [event.slot for event in told] == [2, 3, 4, 5]
        assert "which is done: a start takes" in told[0].reason
        ended = [each for each in await world.events("lease.ended") if each.reason_code == "reassigned"]
        goes_on = {(each.host_id, each.intent_id, each.reason) for each in ended}
        assert goes_on == {
            (each.host_id, each.intent_id, f"reassigned: its host goes on with sweep/{each.slot}") for each in told
        }
        assert {each.state.value for each in await world.intents(IntentKind.REASSIGN)} == {"confirmed"}
        assert len(await world.intents(IntentKind.RENT)) == 2
        spent = world.app.ledger.recollection(world.clock.now()).tasks
        assert all(spent[lease.slot].spent.micros > 0 for lease in leases)


async def test_without_the_key_each_task_has_a_host_of_its_own(tmp_path: Path) -> None:
    guard = GuardTerms(("/w",), bucket=PlayedBucket().place())
    async with played(tmp_path, slots=2, array=ArrayTerms(1, task_hours=0.1), guard=guard) as (world, guards):
        await guards.until(are_done(world, 2))
        assert len(world.contracts()) == 2
        assert not await world.events("lease.reassigned")


async def test_a_host_that_saves_too_little_is_released(tmp_path: Path) -> None:
    async with played(tmp_path, slots=2, array=ArrayTerms(1, task_hours=500.0)) as (world, guards):
        await guards.until(are_done(world, 2))
        assert len(world.contracts()) == 2
        assert not await world.events("lease.reassigned")


@pytest.mark.parametrize(("minutes", "is_kept"), [(11, True), (40, False)])
async def test_a_host_whose_task_was_done_while_the_program_slept_long_is_released(
    tmp_path: Path, minutes: int, is_kept: bool
) -> None:
    """Its guard looks for another task for 15 minutes; the host was paid for six more, for a note that nobody read."""
    async with played(tmp_path, slots=2, array=ArrayTerms(1, task_hours=0.1)) as (world, guards):

        async def has_begun() -> bool:
            return any(guard.beats > 2 for guard in guards.guards.values())

        await guards.until(has_begun)
        guards.play_alone(minutes)
        await guards.until(are_done(world, 2))
        assert bool(await world.events("lease.reassigned")) is is_kept
        assert len(world.contracts()) == (1 if is_kept else 2)


async def test_a_guard_that_takes_no_task_is_paid_for_minutes_only(tmp_path: Path) -> None:
    async with played(tmp_path, slots=2, array=ArrayTerms(1, task_hours=0.1), deaf=True) as (world, guards):
        await guards.until(are_reassigned(world))
        (kept,) = world.live()

        async def is_over() -> bool:
            return kept.ended is not None

        await guards.until(is_over, minutes=8)
        last = [lease.end_reason for lease in await world.past_leases() if lease.slot.index == 1]
        assert last == ["task_not_taken"]
        guards.deaf = False
        await guards.until(are_done(world, 2))
        assert sorted(slot for guard in guards.guards.values() for slot, _ in guard.tasks) == ["0", "1"]


async def test_a_kill_ends_a_kept_host_and_nothing_goes_on(tmp_path: Path) -> None:
    async with played(tmp_path) as (world, guards):
        await guards.until(are_reassigned(world))
        before = len(await world.events("lease.reassigned"))
        await world.app.say(Order("kill", "fleet:all"), "a person")
        await guards.cycle(10)
        assert not world.live()
        assert len(await world.events("lease.reassigned")) == before


async def test_no_task_begins_that_the_arrays_budget_could_not_pay_to_its_end(tmp_path: Path) -> None:
    # At the highest price a task of 0.1 hours costs $0.06; one is paid for when the first is done, two would not be.
    hard = Thresholds(total=usd("0.065"))
    caps = Limits(budgets={budget.of_workload("sweep"): Budget(hard=hard)}, reserve=timedelta(minutes=5))
    async with played(tmp_path, slots=2, array=ArrayTerms(1, task_hours=0.1), limits=caps) as (world, guards):
        await guards.until(are_done(world, 1))
        await guards.cycle(10)
        assert not world.live()
        assert not await world.events("lease.reassigned")
        (why,) = [each.reason for each in world.plans[-1].decisions if each.reason.limit]
        assert why.limit == "workload_total"


async def test_no_host_is_kept_beside_a_second_daemon(tmp_path: Path) -> None:
    """Nothing is decided for it then: the guard would begin a task that the other daemon may have begun."""
    async with played(tmp_path) as (world, guards):
        world.is_checked = False  # the other daemon's instance is none of our ledger's
        await guards.until(are_reassigned(world))
        world.foreign(f"gpubid:{FLEET}:sweep:5:feedfacefeedface", most=0.3)
        await world.cycle(minutes=1)
        assert [event.reason_code for event in await world.events("orphan.seen")] == ["second_daemon"]
        before = len(await world.events("lease.reassigned"))
        await guards.cycle(20)
        assert len(await world.events("lease.reassigned")) == before


async def test_no_host_is_kept_outside_of_the_window(tmp_path: Path) -> None:
    hours = WindowRule("0 0 * * *", timedelta(minutes=20))
    async with played(tmp_path, windows=(hours,), outside=Outside.RELEASE) as (world, guards):
        await guards.until(are_reassigned(world))
        await world.until(lambda: world.clock.now() >= START + timedelta(minutes=20), minutes=30)
        before = len(await world.events("lease.reassigned"))
        await guards.cycle(20)
        assert len(await world.events("lease.reassigned")) == before
        assert not world.live()
        assert len(done(world)) < 6
