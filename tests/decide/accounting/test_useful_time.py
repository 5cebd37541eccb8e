"""Useful time is counted as checkpoints keep it, and the sum agrees with the ledger's charges in the end."""

from datetime import timedelta

import msgspec
import pytest

from agent.decide.accounting import useful_time
from agent.domain.fleet import Fleet
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from tests.support import builders

NOW = builders.NOW
MINUTE = timedelta(minutes=1)
PROMISE = Checkpoint(interval=10 * MINUTE, restore=5 * MINUTE, place=CheckpointPlace.REMOTE)
WORK = builders.workload(checkpoint=PROMISE)
RUNS = builders.lease(state=LeaseState.RUNNING, run_since=NOW)
LOST = msgspec.structs.replace(RUNS, state=LeaseState.PAUSED, run_since=None)
AGAIN = msgspec.structs.replace(RUNS, run_since=NOW + 60 * MINUTE)


def fleet(minutes: float, *leases: Lease) -> Fleet:
    return builders.fleet(now=NOW + minutes * MINUTE, workloads=(WORK,), leases=leases)


def counted(*course: tuple[float, tuple[Lease, ...], dict[str, float]]) -> float:
    """Return the minutes that are counted over a course of (minute, leases, charged), the first of them uncounted."""
    stretches = useful_time.running(fleet(course[0][0], *course[0][1]))
    seconds = 0.0
    for minute, leases, charged in course[1:]:
        at = fleet(minute, *leases)
        seconds += sum(gain for name, gain in useful_time.gained(stretches, at, charged) if name == WORK.name)
        stretches = useful_time.running(at)
    return seconds / 60


def test_a_stretch_counts_as_its_checkpoints_come() -> None:
    minutes = (0, 4, 14, 16, 24, 26)
    found = [counted(*((minute, (RUNS,), {}) for minute in minutes[:number])) for number in range(2, 7)]
    assert found == [0, 0, 10, 10, 20]


@pytest.mark.parametrize(("charged", "whole"), [({RUNS.lease_id: 1200.0}, 20), ({RUNS.lease_id: 0.0}, 10), ({}, 22)])
def test_its_end_adds_what_is_left(charged: dict[str, float], whole: int) -> None:
    assert counted((0, (), {}), (16, (RUNS,), {}), (27, (LOST,), charged)) == whole


def test_a_stretch_that_ended_and_began_between_two_looks() -> None:
    lost = {RUNS.lease_id: 1200.0}
    assert counted((0, (), {}), (16, (RUNS,), {}), (76, (AGAIN,), lost)) == 30


def test_what_ran_before_the_first_look_was_counted_by_the_process_before() -> None:
    assert counted((16, (RUNS,), {}), (24, (RUNS,), {}), (26, (RUNS,), {})) == 10
