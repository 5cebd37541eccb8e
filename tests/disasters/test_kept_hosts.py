"""Arrays that keep their hosts, in stories: each task is done once, and an instance goes on with nothing it may not."""

import dataclasses
from collections.abc import Iterator
from typing import Any
from unittest import mock

import msgspec
import pytest
import structlog

from agent.act.kept_hosts import host_keeping
from agent.decide.kept_hosts import finished_hosts, next_slots
from agent.domain.record.lease import Bills, LeaseState
from tests.disasters import draw, play, seed_runs
from tests.disasters.guards.guard_world import slot_of
from tests.disasters.guards.scripted_guard import ScriptedGuard
from tests.disasters.kept_hosts import kept_draw
from tests.disasters.story import BUCKET, Deed, Guarded, Story, Strike, Work
from tests.disasters.test_guards import played

ARRAY = Work("w0", "batch", "ondemand", 3, at_once=1, guard=Guarded(needs=600.0, interval=300.0, keeps_host=True))
WELL = Story(7, ("vast",), (ARRAY,), 30.0, 0.0, 0)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    seed_runs.quietly()
    yield
    structlog.reset_defaults()


@pytest.mark.parametrize("market", ["vast", pytest.param("runpod", marks=pytest.mark.nightly)])
def test_all_tasks_are_done_on_the_host_of_the_first(market: str) -> None:
    verdict, guards = played(dataclasses.replace(WELL, markets=(market,)))
    assert verdict.broken is None
    assert sorted(str(slot_of(root)) for root in guards.done) == ["w0/0", "w0/1", "w0/2"]
    assert len(guards.guards) == 1


def test_a_host_is_kept_although_an_older_lease_of_its_slot_is_still_being_released() -> None:
    """A person may have to prove the end of the older one."""
    kept: list[tuple[Any, ...]] = []
    finished = finished_hosts.finished

    def noted(*about: Any) -> list[Any]:
        found = list(finished(*about))
        kept.extend(about for _ in found)
        return found

    with mock.patch.object(finished_hosts, "finished", noted):
        assert play.play(WELL).broken is None
    fleet, *others = kept[0]
    (lease,) = fleet.leases
    older = {"lease_id": "older", "instance_id": "older", "opened_at": fleet.started_at}
    for state, bills, count in (("releasing", "nothing", 1), ("releasing", "gpu_and_disk", 0), ("paused", "disk", 0)):
        beside = msgspec.structs.replace(lease, state=LeaseState(state), bills=Bills(bills), **older)
        two = msgspec.structs.replace(fleet, leases=(beside, lease))
        assert len(list(finished(two, *others))) == count


def test_a_host_that_takes_no_other_task_is_given_back_and_the_task_is_done_elsewhere() -> None:
    with mock.patch.object(ScriptedGuard, "_go_on", return_value=None):
        verdict, guards = played(WELL)
    assert verdict.broken is None
    assert len(guards.done) == 3
    assert len(guards.guards) == 3


@pytest.mark.nightly
def test_what_another_daemon_rented_for_the_slot_of_a_kept_host_is_not_judged_after_its_end() -> None:
    assert play.play(draw.story(4372)).broken is None


@pytest.mark.nightly
def test_a_rent_that_the_market_delays_may_leave_just_after_the_end_of_its_run() -> None:
    """The end is in the bucket one second before a move leaves, and the bucket was read eight seconds before."""
    assert play.play(draw.story(2716)).broken is None


@pytest.mark.nightly
def test_a_bucket_that_takes_no_note_costs_no_task() -> None:
    told = dataclasses.replace(WELL, strikes=(Strike(BUCKET, "next", 1, "away", 4),))
    verdict, guards = played(told)
    assert verdict.broken is None
    assert len(guards.done) == 3


@pytest.mark.nightly
def test_a_container_that_starts_again_goes_on_with_the_task_that_it_took() -> None:
    verdict, guards = played(dataclasses.replace(WELL, deeds=(Deed(75, "exit"), Deed(85, "kill_9"))))
    assert verdict.broken is None
    assert len(guards.done) == 3


def test_an_instance_that_goes_on_with_a_slot_that_is_filled_is_found() -> None:
    two = dataclasses.replace(WELL, works=(dataclasses.replace(ARRAY, slots=4, at_once=2),))
    places = next_slots._may_begin

    def taken(fleet, work, in_force):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        yield from sorted({lease.slot for lease in fleet.leases if lease.slot.workload == work.name}, key=str)
        yield from places(fleet, work, in_force)

    with (
        mock.patch.object(next_slots, "_may_begin", taken),
        mock.patch.object(host_keeping, "may_go_on", return_value=True),
        mock.patch.object(finished_hosts, "LEAST_SHARE", 0.0),
    ):
        broken = play.play(two).broken
    assert broken is not None
    assert (broken.point, "which [" in broken.sentence) == (2, True), broken


def test_an_eighth_of_the_seeds_has_such_an_array_and_all_others_are_as_they_were() -> None:
    with mock.patch.object(kept_draw, "SHARE", 0.0):
        before = [draw.story(seed) for seed in range(300)]
    after = [draw.story(seed) for seed in range(300)]
    drawn = [one for one, other in zip(after, before, strict=True) if one != other]
    assert 15 < len(drawn) < 60
    assert all(story.works[-1].guard and story.works[-1].guard.keeps_host for story in drawn)
