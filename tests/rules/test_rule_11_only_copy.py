"""Rule 11: a paused disk that may hold the only checkpoint is released only when the workload says it may be lost.

Or when its guard's bucket was found to have that checkpoint, whole.
"""

import dataclasses
import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.decide.limits.limits import Limits
from agent.domain import money
from agent.domain.record.lease import LeaseState
from agent.domain.work.guard_terms import GuardTerms
from agent.domain.work.run_times.run_window import Outside, WindowRule
from agent.domain.work.run_times.running_limit import AtLimit, LimitOf, RunningLimit
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload
from agent.simulator.vast.model import Contract
from tests.support import levers, played_bucket
from tests.support.carried import PlayedGuard
from tests.support.losses import seeds
from tests.support.s3_server import SECRET, S3Server
from tests.support.world import FLEET, Rehearsed, play, rehearsed, work

fates = st.lists(
    st.sampled_from(["outbid", "displaced", "exit", "broke", "restart", "cap", "wait"]), min_size=2, max_size=5
)


def strike(world: Rehearsed, contract: Contract, fate: str) -> None:
    """Let the market, or the work itself, end a running instance's turn."""
    if fate == "exit":
        world.market.advance_to(world.clock.time())
        levers.exit_container(world.market, contract.contract_id)
    elif fate in {"outbid", "displaced"}:
        bid = contract.bid * 4 if fate == "outbid" and contract.bid is not None else None
        world.rival(contract.slice.machine_id, bid=bid)


@pytest.mark.long(18)
@given(seed=seeds, slots=st.integers(1, 2), story=fates)
def test_what_ran_on_a_disk_is_never_released_by_us(seed: int, slots: int, story: list[str]) -> None:
    async def told(world: Rehearsed) -> None:
        await world.until_running()
        for fate in story:
            await world.cycle(minutes=20)
            for contract in [each for each in world.live() if each.holds_gpu]:
                strike(world, contract, fate)
            if fate == "restart":
                await world.restart(after_seconds=300)
            elif fate == "broke":
                world.weather("no_credit", seconds=900)
            elif fate == "cap":
                world.app.rules = dataclasses.replace(world.app.rules, caps=Limits(per_day=money.usd("0.01")))
        await world.cycle(minutes=120)
        ended = [contract for contract in world.contracts() if contract.ended is not None]
        assert not [contract for contract in ended if contract.first_started is not None], "the only copy is gone"

    disk = work(slots=slots, checkpoint=Checkpoint(place=CheckpointPlace.DISK))
    play(told, seed=seed, workloads=(disk,))


@pytest.mark.nightly
@settings(max_examples=8)
@given(seed=seeds, story=st.lists(st.sampled_from(["outbid", "exit", "restart", "wait"]), min_size=1, max_size=2))
def test_no_window_and_no_running_time_releases_what_ran_on_a_disk(seed: int, story: list[str]) -> None:
    """A file that would is refused when it is read; here nobody reads it."""
    ends = RunningLimit(dt.timedelta(minutes=50), LimitOf.LEASE, AtLimit.RELEASE)
    hours = WindowRule("*/40 * * * *", dt.timedelta(minutes=10))

    async def told(world: Rehearsed) -> None:
        for fate in story:
            await world.cycle(minutes=40)
            for contract in [each for each in world.live() if each.holds_gpu]:
                strike(world, contract, fate)
            if fate == "restart":
                await world.restart(after_seconds=300)
        await world.cycle(minutes=70)
        ended = [contract for contract in world.contracts() if contract.ended is not None]
        assert not [contract for contract in ended if contract.first_started is not None], "the only copy is gone"

    disk = Checkpoint(place=CheckpointPlace.DISK)
    play(told, seed=seed, workloads=(work(checkpoint=disk, windows=(hours,), outside=Outside.RELEASE),
                                     work("other", checkpoint=disk, max_running=(ends,))))  # fmt: skip


FAULTS = {
    "none but kept by the file": PlayedGuard.keep_still,
    "no pointer": lambda guard: guard.put("latest.json", b"{}"),
    "a file is missing": lambda guard: guard.carry(3, is_whole=False),
    "a size lies": lambda guard: guard.carry(2, files=_file(guard, size_bytes=8)),
    "a checksum lies": lambda guard: guard.carry(2, files=_file(guard, etag="0" * 32)),
    "no checksum": lambda guard: guard.carry(2, files=_file(guard, etag="")),
    "a path leads out": lambda guard: guard.carry(2, files=_file(guard, path="0/../model.pt")),
    "content replaced": lambda guard: guard.put(f"ckpt/00000002-{guard.lease}/0/model.pt", b"WEIGHTS"),
    "another run": lambda guard: guard.carry(2, run=9),
    "progress goes back": lambda guard: guard.carry(3, progress=0.5),
    "pointer goes back": lambda guard: guard.point(1),
    "a note of another lease": lambda guard: guard.carry(2, lease="another"),
    "reported a later one": lambda guard: guard.beat(manifest=guard.name(4)),
    "reported none": lambda guard: guard.beat(manifest=None),
}
"""Leftovers of a host, a store or a torn upload in place of the last checkpoint."""
GUARDED: dict[str, Any] = {"command": "python train.py", "checkpoint": Checkpoint(place=CheckpointPlace.DISK)}


def _file(guard: PlayedGuard, **changes: object) -> list[dict[str, object]]:
    (file,) = guard.manifest(2)["files"]
    return [{**file, **changes}]


def guarded(server: S3Server, **changes: Any) -> Workload:
    return work(guard=GuardTerms(("/w",), bucket=server.place(), **changes), **GUARDED)


async def heard(world: Rehearsed, guard: PlayedGuard) -> None:
    """Wait until the daemon has read the last beat."""

    def is_heard() -> bool:
        report = world.app._guard_reader.reports.get(guard.lease)
        return report is not None and report.beat is not None and report.beat.sequence == guard.beats

    await world.until(is_heard, 120)


async def displaced(world: Rehearsed, server: S3Server, fault: Callable[[PlayedGuard], None] | None) -> Contract:
    """Run until a guard has carried two checkpoints, apply a fault, and take the instance away for good."""
    lease = await world.until_running()
    guard = PlayedGuard(server, f"train/{FLEET}/train/0/1", lease.intent_id)
    guard.beat()
    await heard(world, guard)
    for sequence in (1, 2):
        guard.carry(sequence)
        guard.beat(manifest=None if fault is FAULTS["reported none"] else guard.name(sequence))
        await heard(world, guard)
        await world.cycle(minutes=3)
    if fault is not None:
        fault(guard)
        await heard(world, guard)
    contract = world.contract()
    world.rival(contract.slice.machine_id)
    return contract


@pytest.mark.long(30)
@given(seed=seeds, fault=st.sampled_from(sorted(FAULTS)), is_restarted=st.booleans())
@example(seed=8585, fault="content replaced", is_restarted=False)  # the market gives it back
def test_a_guarded_disk_stays_where_the_bucket_does_not_have_its_checkpoint(
    seed: int, fault: str, *, is_restarted: bool
) -> None:
    async def told(world: Rehearsed) -> None:
        contract = await displaced(world, server, FAULTS[fault])
        await world.cycle(minutes=20)
        if is_restarted:
            await world.restart(after_seconds=300)
        await world.cycle(minutes=30)
        assert contract.ended is None, "the only copy is gone"
        assert contract.first_started is not None
        # Where the rival gives way, the market starts it again on its disk.
        assert world.lease().instance_id == str(contract.contract_id)
        assert world.lease().state is (LeaseState.RUNNING if contract.holds_gpu else LeaseState.PAUSED)

    with played_bucket.played() as server:
        train = guarded(server, release_disk=fault != "none but kept by the file")
        play(told, seed=seed, workloads=(train,), credential=lambda _: SECRET)


async def test_a_guarded_disk_goes_once_the_bucket_has_its_checkpoint(tmp_path: Path) -> None:
    with played_bucket.played() as server:
        async with rehearsed(tmp_path, workloads=(guarded(server),), credential=lambda _: SECRET) as world:
            contract = await displaced(world, server, None)
            await world.until(lambda: contract.ended is not None and len(world.leases()) == 1, 60)
            (lease,) = world.leases()
            assert (lease.state, lease.host_id) == (LeaseState.RUNNING, str(world.contract().slice.machine_id))
            said = [decision.reason.sentence for plan in world.plans for decision in plan.decisions]
            assert any("its disk may go: the bucket has its checkpoint of" in sentence for sentence in said)
            assert any("and its bucket has not been compared" in sentence for sentence in said)
            lost_work = [
                term.figure
                for plan in world.plans
                for decision in plan.decisions
                for option in decision.reason.options
                for term in option.terms
                if option.name == "move" and term.name == "lost work"
            ]
            assert lost_work
            assert contract.bid is not None
            assert all(0 < dollars < contract.bid * 10 / 60 for dollars in lost_work), "the work since is priced"


async def test_a_bucket_that_is_away_keeps_the_disk(tmp_path: Path) -> None:
    with played_bucket.played() as server:
        async with rehearsed(tmp_path, workloads=(guarded(server),), credential=lambda _: SECRET) as world:
            world.app._audit._secret = lambda _: "refused"
            contract = await displaced(world, server, None)
            await world.cycle(minutes=30)
            assert contract.ended is None
            assert world.lease().checkpoint_verified_at is None
