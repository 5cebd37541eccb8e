"""A task that fails is tried again and then held alone; a command that fails for every task stops the array."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from agent.decide import plan, slot_releases
from agent.decide.limits.limits import Limits
from agent.decide.reconcile import workload_end
from agent.domain.fleet import Fleet
from agent.domain.market.interruption import Cause
from agent.domain.record import hold
from agent.domain.record.expiring_record import ExpiringRecord
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.record.tally import Counted, Tally
from agent.domain.slot import Slot
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.decision import Rent
from agent.domain.work.ready_sign import Sighting
from agent.domain.work.workload import Checkpoint, CheckpointPlace, WorkloadKind
from strategies.patient import Patient, PatientParams
from tests.support import builders
from tests.support.builders import NOW, ago

RUNS = builders.lease(9, slot=Slot("sweep", 9))
"""Another task, which has run for an hour."""
LOST = "its container ended, and its log says: out of memory"


def fleet(*leases: Lease, retries: int = 0, known: tuple[ExpiringRecord, ...] = (), **changes: Any) -> Fleet:
    work = builders.workload("sweep", kind=WorkloadKind.BATCH, slots=100, array=ArrayTerms(8, retries=retries))
    said = {"1": Sighting("1", NOW, failure="out of memory")}
    rows = tuple(builders.instance(int(each.instance_id), host_id=each.host_id) for each in leases)
    return builders.fleet(
        workloads=(replace(work, **changes),),
        leases=leases,
        markets={"vast": builders.view(sightings=said, instances=rows)},
        holds=tuple(each for each in known if isinstance(each, OperatorHold)),
        tallies=tuple(each for each in known if isinstance(each, Tally)),
    )


def ended(index: int = 3, **changes: Any) -> Lease:
    """Build the lease of a task whose container ended two minutes ago with words of failure in its log."""
    values = {"state": LeaseState.EXITED, "state_since": ago(minutes=2), "interrupted_by": Cause.CONTAINER_EXIT}
    return builders.lease(1, slot=Slot("sweep", index), **{**values, **changes})


def failed(index: int, lease: str, counted: Counted = Counted.FAILED_TASK, at: datetime = NOW) -> Tally:
    return Tally(counted, f"sweep/{index}", at, NOW + timedelta(days=1), LOST, lease)


def done(index: int, at: datetime) -> OperatorHold:
    return OperatorHold(Word.DONE, hold.of_slot(Slot("sweep", index)), at, "its end")


def marks(of: Fleet) -> dict[str, str]:
    """Return the new marks with their grounds, without the proof of the array and the hosts that it avoids."""
    found = {":".join(mark.record.place): mark.record.ground for mark in workload_end.marks(of, ())}
    return {place: ground for place, ground in found.items() if not place.startswith(("ran:", "avoided:"))}


def released(of: Fleet) -> list[tuple[str, str]]:
    return [(each.lease.lease_id, each.reason.code) for each in slot_releases.releases(of)]


def recorded(of: Fleet) -> Fleet:
    """Return the fleet once the ledger has its marks."""
    new = [mark.record for mark in workload_end.marks(of, ())]
    holds = (*of.holds, *(each for each in new if isinstance(each, OperatorHold)))
    return msgspec.structs.replace(
        of, holds=holds, tallies=(*of.tallies, *(each for each in new if isinstance(each, Tally)))
    )


def test_a_task_that_fails_is_held_alone() -> None:
    found = fleet(ended(), RUNS)
    assert marks(found) == {"failed_task:sweep/3@vast-1": LOST, "held:slot:sweep/3": LOST}
    assert marks(recorded(found)) == {}
    assert released(recorded(found)) == []


def test_a_task_is_tried_again_on_another_host_before_it_is_held() -> None:
    found = fleet(ended(), RUNS, retries=1)
    assert marks(found) == {"failed_task:sweep/3@vast-1": LOST}
    assert released(found) == []
    assert released(recorded(found)) == [("vast-1", "task_failed")]
    assert marks(recorded(found)) == {}
    again = fleet(ended(), RUNS, retries=1, known=(failed(3, "vast-0"),))
    assert set(marks(again)) == {"failed_task:sweep/3@vast-1", "held:slot:sweep/3"}


@pytest.mark.parametrize("end_reason", ["", workload_end.FAST_EXIT], ids=["later", "at once"])
def test_another_host_is_tried_although_it_is_dearer(end_reason: str) -> None:
    lease = ended(end_reason=end_reason, host_id="h1")
    known = recorded(fleet(lease, RUNS, retries=1))
    view = builders.view(offers=(builders.offer(1), builders.offer(2, floor=builders.per_hour("0.25"))))
    for minutes, host in ((30, "h2"), (121, "h1")):
        now = NOW + timedelta(minutes=minutes)
        empty = msgspec.structs.replace(known, leases=(), markets={"vast": view}, now=now)
        patient = builders.tuned(Patient(), PatientParams())
        [first, *_] = [
            each for each in plan.plan(empty, {"patient": patient}, Limits()).decisions if isinstance(each, Rent)
        ]
        assert first.offer.host_id == host


def test_a_pool_of_machines_is_not_avoided() -> None:
    lease = ended(host_id="pool/us-central1-a/it_1")
    assert lease.host.is_pool
    assert not [each for each in recorded(fleet(lease, RUNS)).tallies if each.counted is Counted.AVOIDED]


def test_a_disk_that_may_hold_the_only_copy_is_kept() -> None:
    on_disk = fleet(ended(), RUNS, retries=5, checkpoint=Checkpoint(place=CheckpointPlace.DISK))
    assert "held:slot:sweep/3" in marks(on_disk)
    assert released(recorded(on_disk)) == []


def test_a_task_that_fails_at_once_on_three_hosts_is_held_alone_while_another_works() -> None:
    quick = ended(end_reason=workload_end.FAST_EXIT)
    assert set(marks(fleet(quick, RUNS))) == {"fast_exit:sweep/3@vast-1"}
    twice = tuple(failed(3, lease, Counted.FAST_EXIT) for lease in ("vast-7", "vast-8"))
    assert marks(fleet(quick, RUNS, known=twice))["held:slot:sweep/3"] == "it failed at once 3 times"


@pytest.mark.parametrize(("of", "where"), [("sweep", "vast/h1"), ("sweep/3", "vast-1")])
def test_only_a_host_that_will_be_avoided_is_said_to_be(of: str, where: str) -> None:
    """An array that has worked elsewhere blames the task, which may begin on the same host again."""
    quick = ended(end_reason=workload_end.FAST_EXIT)
    mark = Tally(Counted.FAST_EXIT, of, NOW, NOW + timedelta(days=1), "x", where)
    (release,) = slot_releases.releases(fleet(quick, RUNS, known=(mark,)))
    again = "on another host" if of == "sweep" else "again"
    assert release.reason.sentence == f"its container ended right after the start: it is tried {again}"


def test_three_failures_hold_an_array_of_which_nothing_has_worked() -> None:
    known = (failed(0, "vast-7"), failed(1, "vast-8"))
    why = "3 of its tasks failed and none has worked: correct the command or the image"
    assert marks(fleet(ended(), retries=5, known=known))["held:workload:sweep"] == why
    assert "held:workload:sweep" not in marks(fleet(ended(), retries=5, known=known[:1]))
    at_once = Tally(Counted.FAST_EXIT, "sweep", NOW, NOW + timedelta(days=1), "x", "vast/h7")
    assert "held:workload:sweep" in marks(fleet(ended(), retries=5, known=(known[0], at_once)))


@pytest.mark.parametrize(("minutes", "is_stopped"), [(90, True), (30, False)])
def test_three_tasks_that_fail_in_a_row_stop_further_starts_and_no_running_task(minutes: int, is_stopped: bool) -> None:
    hour_ago = ago(hours=1)
    known = (failed(4, "vast-7", at=hour_ago), failed(5, "vast-8", at=hour_ago), done(6, ago(minutes=minutes)))
    found = marks(fleet(ended(), RUNS, known=known))
    assert (found.get("drain:workload:sweep") == "gpubid, because 3 of its tasks failed in a row") is is_stopped
    assert "held:workload:sweep" not in found


@pytest.mark.parametrize(("starts", "runs", "word"), [(95, RUNS, None), (96, RUNS, "drain"), (12, None, "held")])
def test_failed_starts_are_many_where_many_tasks_start(starts: int, runs: Lease | None, word: str | None) -> None:
    until = NOW + timedelta(days=1)
    known = tuple(Tally(Counted.FAILED_START, "sweep", NOW, until, "x", f"vast-{number}") for number in range(starts))
    found = marks(fleet(*([runs] if runs else []), known=known))
    ended = [each for each in ("drain", "held") if f"{each}:workload:sweep" in found]
    assert ended == ([] if word is None else [word])


@pytest.mark.parametrize(("at_once", "is_stopped"), [(None, True), (50, False)])
def test_failed_starts_of_an_array_as_wide_as_its_budget_are_not_counted_for_each_slot(
    at_once: int | None, is_stopped: bool
) -> None:
    """It took 12 failed starts for each of its 100 slots, all paid for."""
    until = NOW + timedelta(days=1)
    known = tuple(Tally(Counted.FAILED_START, "sweep", NOW, until, "x", f"vast-{number}") for number in range(96))
    found = marks(fleet(RUNS, known=known, array=ArrayTerms(at_once)))
    assert ("drain:workload:sweep" in found) is is_stopped


def test_the_proof_of_an_array_is_kept_after_the_lease_that_gave_it_is_lost() -> None:
    """Tasks that were held alone must not hold the array once its other leases are lost for a while."""
    (proof,) = workload_end.marks(fleet(RUNS), ())
    assert proof.record.place == ("ran", "sweep")
    poisoned = (failed(4, "vast-7"), failed(5, "vast-8"))
    kept = (*poisoned, proof.record)
    assert "held:workload:sweep" not in marks(fleet(ended(), known=kept))
    assert list(workload_end.marks(fleet(RUNS, known=(proof.record,)), ())) == []
    assert list(workload_end.marks(fleet(msgspec.structs.replace(RUNS, run_since=ago(minutes=9))), ())) == []


def test_a_person_who_resumes_a_task_or_its_array_ends_its_count() -> None:
    task = failed(3, "vast-1")
    assert task.is_against("sweep", {"sweep/3"})
    assert task.is_against("sweep", {"sweep"})
    assert not task.is_against("sweep", {"sweep/33"})
    assert not task.is_against("sweeps", {"sweeps"})
