"""Whether a running lease is of use, and the leases that are worth a probe."""

import dataclasses
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from agent.decide.facts import LeaseChanged
from agent.decide.reconcile import reconcile
from agent.decide.reconcile.pass_memory import Memory
from agent.decide.reconcile.probes import probing, readiness, ready_waits
from agent.domain.fleet import Fleet
from agent.domain.record.event_kind import EventKind
from agent.domain.record.guard_figures import GuardFigures
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.ready_sign import Liveness, Readiness, ReadySign, ReadyWait, Sighting
from agent.domain.work.stall import OnStall, Quiet, StallRule
from agent.domain.work.workload import Checkpoint, CheckpointPlace, WorkloadKind
from tests.support import builders

NOW = builders.NOW
ASKED = Readiness(ReadySign.PORT, within=timedelta(minutes=30), port=8080)
FRESH = builders.lease(run_since=builders.ago(minutes=5))
LATE = builders.lease(run_since=builders.ago(minutes=31))
IN_VAIN = Sighting("1", NOW, said="connection refused")


def world(held: Lease, sighting: Sighting | None = None, ready: Readiness = ASKED, **changes: Any) -> Fleet:
    """Return a fleet whose lease has been probed in vain since it began to run."""
    row = builders.instance(**changes)
    view = builders.view(instances=(row,), sightings={} if sighting is None else {"1": sighting})
    wait = ReadyWait(held.began, ready.mark, NOW, NOW - held.began)
    return builders.fleet(
        workloads=(builders.workload(ready=ready),),
        markets={"vast": view},
        leases=(held,),
        ready_waits={held.lease_id: wait},
    )


def seen(fleet: Fleet, so_far: LeaseChanged | None = None) -> LeaseChanged | None:
    view = fleet.markets["vast"]
    return readiness.seen(fleet, view, fleet.leases[0], view.instances[0], so_far)


def told(fleet: Fleet) -> LeaseChanged:
    change = seen(fleet)
    assert change is not None
    return change


def test_a_good_probe_makes_it_ready_from_when_it_was_made() -> None:
    change = told(world(FRESH, Sighting("1", builders.ago(minutes=1), is_ready=True)))
    assert change.kind == "lease.ready"
    assert (change.after.ready_since, change.after.was_ready) == (builders.ago(minutes=1), True)


def test_idle_time_from_before_a_sign_was_asked_for_does_not_go_on() -> None:
    change = told(world(replace(FRESH, idle_since=builders.ago(minutes=4)), Sighting("1", NOW)))
    assert (change.kind, change.after.idle_since) == (None, None)


def test_what_is_ready_late_has_no_reason_of_its_wait() -> None:
    late = replace(LATE, end_reason="not_ready: runs since 11:29 and shows no sign of work; port 8080 does not answer")
    change = told(world(late, Sighting("1", NOW, is_ready=True)))
    assert (change.kind, change.after.end_reason) == ("lease.ready", "")


@pytest.mark.parametrize(
    "sighting",
    [None, Sighting("1", NOW), Sighting("1", builders.ago(minutes=6), is_ready=True)],
    ids=["none", "bad", "of before"],
)
def test_without_a_good_probe_it_is_waited_for(sighting: Sighting | None) -> None:
    assert seen(world(FRESH, sighting)) is None


def test_what_is_never_ready_in_time_is_a_bad_lease_and_its_host_rests() -> None:
    change = told(world(LATE, IN_VAIN, gpu_util=0.0))
    assert (change.kind, change.after.has_failed) == ("lease.not_ready", True)
    assert "connection refused" in change.after.end_reason
    assert "its GPUs idle" in change.after.end_reason
    assert change.cooldown is not None
    assert change.cooldown.key == "vast/h1"


def test_what_was_held_when_the_pass_began_is_not_judged_by_a_probe_that_nobody_made() -> None:
    held = replace(LATE, is_held=True, end_reason="undecided")
    result = reconcile.reconcile(world(held), Memory())
    (fact,) = (fact for fact in result.facts if isinstance(fact, LeaseChanged))
    assert (fact.kind, fact.after.is_held, fact.after.has_failed) == (EventKind.ORPHAN_SEEN, False, False)


@pytest.mark.parametrize(
    ("place", "manifest", "has_failed"),
    [
        (CheckpointPlace.DISK, f"ckpt/00000002-{LATE.intent_id}.json", False),
        (CheckpointPlace.DISK, "ckpt/00000001-another.json", True),
        (CheckpointPlace.REMOTE, f"ckpt/00000002-{LATE.intent_id}.json", True),
    ],
)
def test_what_reported_a_checkpoint_on_its_disk_is_left_to_a_person_too(
    place: CheckpointPlace, manifest: str, *, has_failed: bool
) -> None:
    """Its ready sign may be wrong, and the bucket may lack that checkpoint (rule 11)."""
    late = replace(LATE, has_run=True, guard_run=1)
    work = builders.guarded(ready=ASKED, checkpoint=Checkpoint(place=place))
    figures = GuardFigures(late.lease_id, late.slot, "vast", late.host_id, 1, 1, NOW, manifest=manifest)
    fleet = msgspec.structs.replace(world(late, IN_VAIN), workloads=(work,), guard_figures={late.lease_id: figures})
    change = told(fleet)
    assert (change.kind, change.after.has_failed) == ("lease.not_ready", has_failed)


def test_what_was_ready_before_is_left_to_a_person() -> None:
    change = told(world(builders.lease(run_since=LATE.run_since, was_ready=True), IN_VAIN))
    assert (change.kind, change.after.has_failed, change.cooldown) == ("lease.not_ready", False, None)
    assert change.after.end_reason.endswith(
        "; connection refused; it was ready before, so it goes on: `gpubid release train/0` ends it"
    )
    again = builders.lease(run_since=LATE.run_since, was_ready=True, end_reason=change.after.end_reason)
    assert seen(world(again, IN_VAIN)) is None


def test_what_is_left_to_a_person_is_watched_on_for_stalled_work_and_idle_gpus() -> None:
    """Nothing looked at it any more, and it billed for ever."""
    work = builders.workload(ready=ASKED, stalled=StallRule(timedelta(minutes=30), (OnStall.HOLD,)))
    late = builders.lease(run_since=LATE.run_since, was_ready=True)
    fleet = msgspec.structs.replace(world(late, IN_VAIN), workloads=(work,))
    kept = told(fleet).after
    quiet = {kept.lease_id: Quiet(kept.began, NOW, None, timedelta(minutes=31))}
    stalled = told(msgspec.structs.replace(fleet, leases=(kept,), quiet=quiet)).after
    assert stalled.end_reason.startswith("stalled: ")
    again = msgspec.structs.replace(fleet, leases=(stalled,), quiet={})
    assert seen(again) is None, "it is not told again that it is not ready"
    goes_on = {kept.lease_id: Quiet(kept.began, NOW, NOW + timedelta(minutes=1))}
    told_later = told(msgspec.structs.replace(again, quiet=goes_on))
    assert (told_later.kind, told_later.after.stalled_since) == (EventKind.LEASE_PROGRESSED, None)
    assert seen(msgspec.structs.replace(again, leases=(told_later.after,))) is None, "nor once its work goes on"
    idle = told(msgspec.structs.replace(world(kept, IN_VAIN, gpu_util=0.0), workloads=(work,))).after
    assert idle.idle_since == NOW


def test_what_ran_before_the_sign_was_asked_for_is_left_to_a_person() -> None:
    """Its line may have been printed long ago, and its container may lack the port."""
    change = told(world(replace(LATE, ran_micros=1), IN_VAIN))
    assert (change.kind, change.after.has_failed, change.cooldown) == ("lease.not_ready", False, None)
    assert "it ran before without a sign of readiness" in change.after.end_reason


@pytest.mark.parametrize("sighting", [None, Sighting("1", builders.ago(minutes=40))], ids=["none", "of before"])
def test_what_was_not_probed_since_it_runs_is_not_judged(sighting: Sighting | None) -> None:
    assert seen(world(LATE, sighting)) is None


def waits_of(*probed: tuple[float, bool], lease: Lease = LATE) -> ReadyWait | None:
    """Return the wait of a lease that ran since 11:29 after probes at these minutes, each asked or not."""
    waits: Mapping[str, ReadyWait] = {}
    for minute, was_asked in probed:
        at = lease.began + timedelta(minutes=minute)
        fleet = world(lease, Sighting("1", at, was_asked=was_asked))
        waits = ready_waits.counted(msgspec.structs.replace(fleet, now=at), waits)
    return waits.get(lease.lease_id)


@pytest.mark.parametrize(
    ("minutes", "lasted", "is_whole"),
    [
        ((1, 5, 9), 9, True),
        ((1, 5, 5, 9), 9, True),
        ((1, 9, 10), 2, False),
        ((20, 22), 2, False),
    ],
    ids=["all the time", "the same probe twice", "a gap", "from late on"],
)
def test_only_time_between_probes_counts(minutes: tuple[float, ...], lasted: float, *, is_whole: bool) -> None:
    wait = waits_of(*((minute, True) for minute in minutes))
    assert wait is not None
    assert (wait.lasted, wait.is_whole) == (timedelta(minutes=lasted), is_whole)


@pytest.mark.parametrize(("leases", "is_whole"), [(16, False), (400, True)])
def test_in_a_large_fleet_each_lease_is_probed_less_often(leases: int, *, is_whole: bool) -> None:
    """Of 400 leases on a market 16 are probed in a poll of 15 s: each waits for up to 7 minutes."""
    others = tuple(builders.lease(number + 1) for number in range(1, leases))
    waits: Mapping[str, ReadyWait] = {}
    for minute in (4, 11, 18):
        at = LATE.began + timedelta(minutes=minute)
        fleet = world(LATE, Sighting("1", at))
        waits = ready_waits.counted(msgspec.structs.replace(fleet, now=at, leases=(LATE, *others)), waits)
    assert waits[LATE.lease_id].is_whole is is_whole
    assert waits[LATE.lease_id].lasted == timedelta(minutes=18 if is_whole else 4)


def test_a_log_that_could_not_be_read_may_have_had_the_line() -> None:
    wait = waits_of((1, True), (2, False), (3, True))
    assert wait is not None
    assert (wait.lasted, wait.is_whole) == (timedelta(minutes=3), False)


def test_another_sign_is_awaited_anew() -> None:
    wait = waits_of((1, True), (2, True))
    assert wait is not None
    other = Readiness(ReadySign.LOG, line="up")
    at = LATE.began + timedelta(minutes=3)
    waits = ready_waits.counted(world(LATE, Sighting("1", at), ready=other), {LATE.lease_id: wait})
    assert waits[LATE.lease_id] == ReadyWait(LATE.began, other.mark, at, is_whole=False)


def test_another_stretch_of_running_is_awaited_anew() -> None:
    wait = ReadyWait(builders.ago(hours=2), ASKED.mark, builders.ago(hours=1), timedelta(hours=1))
    assert ready_waits.counted(world(LATE), {LATE.lease_id: wait}) == {}


def test_idling_is_noted_and_forgotten() -> None:
    idle = told(world(FRESH, ready=Readiness(), gpu_util=0.0))
    assert (idle.kind, idle.after.idle_since) == (None, NOW)
    long_idle = builders.lease(idle_since=builders.ago(hours=1))
    busy = told(world(long_idle, ready=Readiness(), gpu_util=80.0))
    assert (busy.kind, busy.after.idle_since) == ("lease.busy", None)
    brief = told(world(builders.lease(idle_since=builders.ago(minutes=1)), ready=Readiness(), gpu_util=80.0))
    assert (brief.kind, brief.after.idle_since) == (None, None)


@pytest.mark.parametrize("use", [None, 50.0])
def test_what_works_or_does_not_tell_is_no_news(use: float | None) -> None:
    assert seen(world(FRESH, ready=Readiness(), gpu_util=use)) is None


def test_where_it_is_reached_is_kept() -> None:
    change = told(world(FRESH, ready=Readiness(), address="1.2.3.4:22", ports="8080/tcp=1.2.3.4:41234"))
    assert (change.after.ssh_address, change.after.ports) == ("1.2.3.4:22", "8080/tcp=1.2.3.4:41234")


def test_a_loss_is_told_as_it_is() -> None:
    fleet = world(FRESH, Sighting("1", NOW, is_ready=True))
    lost = LeaseChanged(FRESH, FRESH, EventKind.LEASE_INTERRUPTED)
    assert seen(fleet, lost) is lost


@pytest.mark.parametrize(
    ("changes", "work", "is_asked"),
    [
        ({}, {"ready": ASKED}, True),
        ({"ready_since": NOW}, {"ready": ASKED}, False),
        ({}, {}, False),
        ({"state": LeaseState.PAUSED}, {"ready": ASKED}, False),
        ({"is_held": True}, {"ready": ASKED}, False),
        ({"slot": builders.slot("unknown")}, {"ready": ASKED}, False),
        ({}, {"kind": WorkloadKind.BATCH, "done_line": "bye"}, True),
        ({"state": LeaseState.EXITED}, {"kind": WorkloadKind.BATCH, "done_line": "bye"}, True),
        ({"state": LeaseState.EXITED}, {"ready": ASKED}, False),
        ({}, {"kind": WorkloadKind.SERVICE, "done_line": "bye"}, False),
    ],
    ids=str,
)
def test_only_what_may_change_a_mind_is_probed(changes: dict[str, Any], work: dict[str, Any], is_asked: bool) -> None:
    view = builders.view(instances=(builders.instance(ports="22/tcp=1.2.3.4:22 8080/tcp=1.2.3.4:41234"),))
    fleet = builders.fleet(
        workloads=(builders.workload(**work),), leases=(builders.lease(**changes),), markets={"vast": view}
    )
    targets = probing.targets(fleet, "vast")
    assert bool(targets) is is_asked
    if "ready" in work and is_asked:
        assert (targets[0].place, targets[0].needs_log) == ("1.2.3.4:41234", False)
    if "done_line" in work and is_asked:
        assert targets[0].needs_log


def test_an_old_view_is_no_ground_for_a_probe() -> None:
    fleet = builders.fleet(leases=(FRESH,), markets={"vast": builders.view(is_fresh=False)})
    assert probing.targets(fleet, "vast") == ()
    assert probing.targets(fleet, "runpod") == ()


def test_a_port_that_is_not_mapped_has_no_place() -> None:
    assert probing.place_of("22/tcp=1.2.3.4:22", 8080) == ""


@pytest.mark.parametrize(
    ("place", "changes", "kind"),
    [
        (CheckpointPlace.DISK, {}, "lease.unhealthy"),
        (CheckpointPlace.DISK, {"end_reason": "not_ready: told by an older version"}, "lease.unhealthy"),
        (CheckpointPlace.DISK, {"restarts": 0}, "lease.unhealthy"),
        (CheckpointPlace.REMOTE, {"restarts": 0}, "lease.unhealthy"),
        (CheckpointPlace.REMOTE, {}, "lease.not_ready"),
    ],
    ids=["kept", "kept and told before", "kept and not restarted", "not restarted", "may be given up"],
)
def test_a_service_that_is_not_ready_again_after_its_pause_or_restart_is_unhealthy(
    place: CheckpointPlace, changes: dict[str, Any], kind: str
) -> None:
    ready = dataclasses.replace(ASKED, live=Liveness(timedelta(seconds=30)))
    work = builders.workload(ready=ready, checkpoint=Checkpoint(place=place))
    late = replace(LATE, was_ready=True, restarts=1)
    change = told(msgspec.structs.replace(world(replace(late, **changes), IN_VAIN, ready), workloads=(work,)))
    assert change.kind == kind
    assert (change.after.unhealthy_since == NOW) is (kind == "lease.unhealthy")
    assert change.after.has_failed is (kind == "lease.not_ready")
