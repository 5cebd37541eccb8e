"""A container that ended by itself: of a batch that is judged later, of a service it is a loss."""

import pytest
from msgspec.structs import replace

from agent.decide.facts import LeaseChanged
from agent.decide.reconcile.probes import liveness
from agent.domain.market.instance import InstanceState
from agent.domain.market.interruption import Cause
from agent.domain.record.lease import LeaseState
from agent.domain.work.workload import Checkpoint, CheckpointPlace, WorkloadKind
from agent.markets.dstack.rules import RULES as DSTACK
from tests.support import builders
from tests.support.listings import changed, seen


@pytest.mark.parametrize(("kind", "event"), [("batch", "lease.exited"), ("service", "lease.interrupted")])
def test_the_own_end_of_a_batch_is_no_interruption_and_that_of_a_service_is_one(kind: str, event: str) -> None:
    work, row = builders.workload(kind=WorkloadKind(kind)), builders.instance(state=InstanceState.EXITED)
    first = seen(builders.lease(), row, work=work)
    fact: LeaseChanged = changed(seen(builders.lease(), row, at=1, memory=first.memory, work=work))
    assert (fact.kind, fact.cause) == (event, Cause.CONTAINER_EXIT)


@pytest.mark.parametrize(
    ("restarts", "ready", "place", "after"),
    [
        (0, 1, CheckpointPlace.NONE, (1, False)),
        (2, 1, CheckpointPlace.NONE, (3, True)),
        (2, 7, CheckpointPlace.NONE, (1, False)),
        (2, 1, CheckpointPlace.DISK, (3, False)),
    ],
    ids=["once", "again and again", "after long health", "with the only copy"],
)
def test_a_service_that_ends_again_and_again_is_given_up(
    restarts: int, ready: int, place: CheckpointPlace, after: tuple[int, bool]
) -> None:
    """It was started on its host every twelve minutes, for ever."""
    work = builders.workload(kind=WorkloadKind.SERVICE, checkpoint=Checkpoint(place=place))
    held = builders.lease(restarts=restarts, run_since=builders.ago(hours=ready), was_ready=True, runs=3)
    row = builders.instance(state=InstanceState.EXITED)
    first = seen(held, row, work=work)
    change = changed(seen(held, row, at=1, memory=first.memory, work=work))
    assert (change.after.restarts, change.after.has_failed) == after
    assert change.after.end_reason.startswith("unhealthy: its container ended by itself, and 2 ") is after[1]


@pytest.mark.parametrize(("hours", "restarts"), [(7, 0), (1, 1)])
def test_restarts_are_forgotten_at_the_end_of_a_long_stretch_in_health(hours: int, restarts: int) -> None:
    """One restart months ago let a lease that was outbid go at its next slow start."""
    held = builders.lease(restarts=1, run_since=builders.ago(hours=hours))
    row = builders.instance(state=InstanceState.PAUSED)
    first = seen(held, row)
    assert changed(seen(held, row, at=1, memory=first.memory)).after.restarts == restarts


def test_an_old_stretch_that_was_not_ready_says_nothing_of_the_next_one() -> None:
    """Its GPUs idled while the next one loaded, and it was released for that."""
    held = builders.lease(state=LeaseState.PAUSED, end_reason="not_ready: runs since 11:29 and shows no sign of work")
    assert changed(seen(held, builders.instance())).after.end_reason == ""


def test_a_service_that_ends_again_and_again_and_must_keep_its_disk_is_told() -> None:
    kept = builders.workload(kind=WorkloadKind.SERVICE, checkpoint=Checkpoint(place=CheckpointPlace.DISK))
    held = builders.lease(state=LeaseState.EXITED, restarts=3, interrupted_by=Cause.CONTAINER_EXIT)
    (alert,) = liveness.alerts(builders.fleet(leases=(held,), workloads=(kept,)))
    assert alert.sentence.startswith("train/0 on host h1 ends by itself again and again")
    free = builders.workload(kind=WorkloadKind.SERVICE)
    assert not list(liveness.alerts(builders.fleet(leases=(held,), workloads=(free,))))


@pytest.mark.parametrize(("hours", "is_given_up"), [(1, True), (7, False)])
def test_where_nothing_restarts_in_place_a_short_stretch_is_a_failed_start_and_a_long_one_is_none(
    hours: int, *, is_given_up: bool
) -> None:
    """Slots that end once a night, after days of good service, held the whole workload."""
    work = builders.workload(kind=WorkloadKind.SERVICE)
    before = builders.lease(run_since=builders.ago(hours=hours), was_ready=True)
    lost = replace(before, state=LeaseState.EXITED, state_since=builders.NOW, interrupted_by=Cause.CONTAINER_EXIT)
    view = builders.view(rules=DSTACK)
    fleet = builders.fleet(leases=(before,), workloads=(work,), markets={"vast": view})
    assert liveness.after_exit(fleet, before, lost).has_failed is is_given_up
