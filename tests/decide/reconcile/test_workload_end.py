"""Endings: which are counted, which hold, which are done; spreading over owners; probes that are due."""

import datetime as dt
from collections import Counter
from typing import Any

import msgspec
import pytest

from agent.decide import slots
from agent.decide.facts import LeaseChanged
from agent.decide.pricing import cooldowns, spread
from agent.decide.reconcile import reconcile, workload_end
from agent.decide.reconcile.guards import guard_switch
from agent.decide.reconcile.pass_memory import Memory
from agent.decide.reconcile.probes import probing
from agent.domain.market.host import OwnerKey
from agent.domain.market.instance import InstanceState
from agent.domain.market.interruption import Cause, Evidence
from agent.domain.record.cooldown import Cooldown, CooldownKind
from agent.domain.record.event_kind import EventKind
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.record.lease import LeaseState
from agent.domain.slot import Slot
from agent.domain.work.ready_sign import Readiness, ReadySign, Sighting
from agent.domain.work.workload import WorkloadKind
from tests.support import builders
from tests.support.builders import NOW, ago
from tests.support.expiring import held as held_back
from tests.support.expiring import tally

BATCH = builders.workload(kind=WorkloadKind.BATCH)
LATER = NOW + dt.timedelta(hours=3)


def lost(cause: Cause, rule: str = "floor", kind: str = "lease.interrupted", **before: Any) -> LeaseChanged:
    held = builders.lease(**{"run_since": ago(hours=1), **before})
    after = builders.lease(state=LeaseState.PAUSED, state_since=NOW, interrupted_by=cause)
    return LeaseChanged(held, after, EventKind(kind), cause=cause, evidence=Evidence(rule, "as seen"))


def scopes(fleet: Any, *changes: LeaseChanged) -> list[tuple[str, str]]:
    return [mark.record.place for mark in workload_end.marks(fleet, changes)]


@pytest.mark.parametrize(
    ("cause", "rule", "is_held"),
    [
        (Cause.EXTERNAL_STOP, "floor", True),
        (Cause.UNKNOWN, "none", True),
        (Cause.HOST_GONE, "no_such_instance", True),
        (Cause.OUTBID, "inbox", False),
        (Cause.DISPLACED, "no_floor", False),
        (Cause.HOST_OFFLINE, "host_state", False),
        (Cause.OUT_OF_CREDIT, "credit", False),
        (Cause.CONTRACT_END, "end_date", False),
    ],
)
def test_only_what_nobody_explains_holds_a_batch(cause: Cause, rule: str, is_held: bool) -> None:
    found = scopes(builders.fleet(workloads=(BATCH,)), lost(cause, rule))
    assert found == ([(Word.HELD, "slot:train/0")] if is_held else [])


def test_a_host_that_was_silent_before_it_vanished_explains_itself() -> None:
    change = lost(Cause.HOST_GONE, "no_such_instance", interrupted_by=Cause.HOST_OFFLINE)
    assert scopes(builders.fleet(workloads=(BATCH,)), change) == []


def test_a_service_has_one_move_a_cool_off() -> None:
    fleet = builders.fleet()
    assert scopes(fleet, lost(Cause.UNKNOWN)) == [("moved", "train/0")]
    again = builders.fleet(tallies=(tally("moved", "train/0"),))
    assert scopes(again, lost(Cause.UNKNOWN)) == [(CooldownKind.COOL_OFF, "train/0")]
    resting = builders.fleet(cooldowns=(Cooldown(CooldownKind.COOL_OFF, "train/0", LATER, "x"),))
    found = slots.view_or_proposal(resting, builders.TRAIN_0, cooldowns.in_force(resting))
    assert getattr(found, "reason", None) is not None
    assert found.reason.code == "cool_off"  # type: ignore[union-attr]


@pytest.mark.parametrize("rule", ["floor", "none"])
def test_a_start_that_somebody_stops_is_one_move_of_a_service_and_one_failed_start_of_a_batch(rule: str) -> None:
    stopped = lost(Cause.EXTERNAL_STOP if rule == "floor" else Cause.UNKNOWN, rule, "lease.start_lost", run_since=None)
    assert scopes(builders.fleet(), stopped) == [("moved", "train/0")]
    again = builders.fleet(tallies=(tally("moved", "train/0"),))
    assert scopes(again, stopped) == [(CooldownKind.COOL_OFF, "train/0")]
    assert scopes(again, lost(Cause.OUTBID, "inbox", "lease.start_lost", run_since=None)) == []
    assert scopes(builders.fleet(workloads=(BATCH,)), stopped) == [("failed_start", f"{BATCH.name}@vast-1")]
    outbid = lost(Cause.OUTBID, "inbox", "lease.start_lost", run_since=None)
    assert scopes(builders.fleet(workloads=(BATCH,)), outbid) == []


def test_a_start_that_its_own_guard_stopped_counts_for_nothing() -> None:
    stopped = lost(Cause.EXTERNAL_STOP, guard_switch.SWITCHED, "lease.start_lost", run_since=None)
    assert scopes(builders.fleet(), stopped) == scopes(builders.fleet(workloads=(BATCH,)), stopped) == []


def ended(minutes: float = 2, **view: Any) -> Any:
    held = builders.lease(
        state=LeaseState.EXITED, state_since=ago(minutes=minutes), interrupted_by=Cause.CONTAINER_EXIT
    )
    return builders.fleet(workloads=(BATCH,), leases=(held,), markets={"vast": builders.view(**view)})


def test_the_end_of_a_container_is_done_for_a_batch_once_it_settled_and_nothing_for_a_service() -> None:
    change = lost(Cause.CONTAINER_EXIT, "container_state")
    assert scopes(builders.fleet(workloads=(BATCH,)), change) == []
    assert scopes(ended(minutes=1)) == []
    assert scopes(ended()) == [(Word.DONE, "slot:train/0")]
    assert scopes(builders.fleet(), change) == []


def test_an_end_that_the_ledger_lacks_is_not_judged_however_long_ago_it_was() -> None:
    """After a restart the end is dated far back, and its log was not read since: a crash would be taken for done."""
    over = ended()
    (after,) = over.leases
    before = builders.lease(run_since=ago(hours=1))
    change = LeaseChanged(before, after, EventKind.LEASE_EXITED, cause=Cause.CONTAINER_EXIT)
    assert scopes(msgspec.structs.replace(over, leases=(before,)), change) == []
    assert scopes(over) == [(Word.DONE, "slot:train/0")]


def test_trouble_in_the_message_is_no_clean_end() -> None:
    row = builders.instance(state=InstanceState.EXITED, message="exited with code 137", has_trouble=True)
    assert scopes(ended(instances=(row,))) == [(Word.HELD, "slot:train/0")]


LINED = builders.workload(kind=WorkloadKind.BATCH, done_line="all done")


def sighted(**told: Any) -> dict[str, Any]:
    return {"sightings": {"1": Sighting("1", NOW, **told)}}


@pytest.mark.parametrize(
    ("work", "view", "why"),
    [
        (LINED, sighted(), "its container ended and its log does not say that it is done"),
        (
            BATCH,
            {"instances": (builders.instance(state=InstanceState.EXITED, message="code 137", has_trouble=True),)},
            "its container ended with an error: code 137",
        ),
        (BATCH, sighted(failure="out of memory"), "its container ended, and its log says: out of memory"),
    ],
    ids=["no line", "trouble", "last words"],
)
def test_a_batch_that_ended_badly_waits_for_a_person_for_good(work: Any, view: dict[str, Any], why: str) -> None:
    """Its next rent would be paid for the same failure: the mark says why, what to do, and does not wear off."""
    fleet = msgspec.structs.replace(ended(**view), workloads=(work,))
    (mark,) = workload_end.marks(fleet, ())
    assert (*mark.record.place, mark.record.ground) == (Word.HELD, "slot:train/0", why)
    assert isinstance(mark.record, OperatorHold)
    assert (mark.record.since, mark.record.until) == (NOW, None)
    assert (mark.workload, mark.lease, mark.kind) == ("train", fleet.leases[0], "workload.held")
    assert mark.sentence == (
        f"train/0 is held: {why}; look at it, then `gpubid resume train/0` or `gpubid done train/0`"
    )


@pytest.mark.parametrize(
    ("work", "view", "why"),
    [(BATCH, {}, "the end of its container"), (LINED, sighted(is_done=True), "a line of its log")],
    ids=["end", "line"],
)
def test_a_batch_that_is_done_is_never_filled_again(work: Any, view: dict[str, Any], why: str) -> None:
    fleet = msgspec.structs.replace(ended(**view), workloads=(work,))
    (mark,) = workload_end.marks(fleet, ())
    assert (*mark.record.place, mark.record.ground) == (Word.DONE, "slot:train/0", why)
    assert isinstance(mark.record, OperatorHold)
    assert (mark.record.since, mark.record.until) == (NOW, None)
    assert (mark.workload, mark.lease, mark.kind) == ("train", fleet.leases[0], "workload.done")
    assert mark.sentence == f"train/0 is done by {why}"


def test_an_exit_at_once_is_told_with_its_host_and_kept_from_it() -> None:
    quick = lost(Cause.CONTAINER_EXIT, run_since=ago(minutes=1), runs=1)
    (mark,) = workload_end.marks(builders.fleet(), (quick,))
    why = "its container ended within 3 min of its start"
    assert (mark.record.ground, mark.record.until) == (why, NOW + workload_end.FAST_EXITS_KEPT)
    assert (mark.workload, mark.lease, mark.kind) == ("train", quick.after, "workload.failed_at_once")
    assert mark.sentence == f"train/0 on host h1: {why}"


def test_an_exit_at_once_counts_against_the_workload_and_three_hosts_hold_it() -> None:
    quick = lost(Cause.CONTAINER_EXIT, run_since=ago(minutes=1), runs=1)
    assert scopes(builders.fleet(), quick) == [(workload_end.FAST_EXIT, "train@vast/h1")]
    counted = tuple(tally(workload_end.FAST_EXIT, f"train@h{number}") for number in (7, 8))
    assert scopes(builders.fleet(tallies=counted), quick) == [
        (workload_end.FAST_EXIT, "train@vast/h1"),
        (Word.HELD, "workload:train"),
    ]
    others = tuple(tally(workload_end.FAST_EXIT, f"other@h{number}") for number in (7, 8))
    assert (Word.HELD, "workload:train") not in scopes(builders.fleet(tallies=others), quick)


def test_a_later_stretch_or_one_that_was_ready_is_no_exit_at_once() -> None:
    earlier: list[dict[str, Any]] = [{"runs": 2}, {"runs": 1, "was_ready": True}]
    for before in earlier:
        quick = lost(Cause.CONTAINER_EXIT, run_since=ago(minutes=1), **before)
        assert scopes(builders.fleet(), quick) == []


def test_the_budget_of_failed_starts_holds_once() -> None:
    work = builders.workload(max_failed_starts=2)
    counted = tuple(tally("failed_start", f"train@vast-{number}") for number in (7, 8))
    fleet = builders.fleet(workloads=(work,), tallies=counted)
    assert scopes(fleet) == [(Word.HELD, "workload:train")]
    held = held_back("held", "workload:train")
    assert scopes(builders.fleet(workloads=(work,), tallies=counted, holds=(held,))) == []


def test_failed_starts_stop_no_lease_that_works() -> None:
    """Twelve failed starts of one replica paused every healthy one."""
    work = builders.workload(max_failed_starts=2, slots=2)
    counted = tuple(tally("failed_start", f"train@vast-{number}") for number in (7, 8))
    well = builders.lease(1, slot=Slot("train", 1))
    fleet = builders.fleet(workloads=(work,), tallies=counted, leases=(well,))
    assert scopes(fleet) == [(Word.DRAIN, "workload:train")]
    drained = held_back("drain", "workload:train")
    outbid = msgspec.structs.replace(well, state=LeaseState.PAUSED, interrupted_by=Cause.OUTBID)
    assert scopes(msgspec.structs.replace(fleet, leases=(outbid,))) == [(Word.DRAIN, "workload:train")]
    assert scopes(msgspec.structs.replace(fleet, leases=(outbid,), holds=(drained,))) == [], "it is told once"
    for changes in ({"has_failed": True}, {"state": LeaseState.EXITED}, {"end_reason": workload_end.FAST_EXIT}):
        ill = msgspec.structs.replace(well, **changes)
        assert scopes(msgspec.structs.replace(fleet, leases=(ill,))) == [(Word.HELD, "workload:train")]
    assert scopes(msgspec.structs.replace(fleet, leases=(), holds=(drained,))) == [(Word.HELD, "workload:train")]


def test_an_image_that_cannot_be_had_blames_no_host() -> None:
    row = builders.instance(
        state=InstanceState.FAILED, message="manifest unknown", has_trouble=True, is_image_refused=True
    )
    held = builders.lease(state=LeaseState.STARTING, has_run=False)
    fleet = builders.fleet(leases=(held,), markets={"vast": builders.view(instances=(row,))})
    first = reconcile.reconcile(fleet, Memory())
    [change, *marks] = reconcile.reconcile(fleet, first.memory).facts
    assert isinstance(change, LeaseChanged)
    assert change.after.end_reason == "image_refused: manifest unknown"
    assert change.cooldown is None
    assert {mark.record.place[0] for mark in marks} == {"failed_start", workload_end.FAST_EXIT}  # type: ignore[union-attr]


def test_probes_ask_only_what_is_not_known() -> None:
    work = builders.workload(ready=Readiness(ReadySign.PORT, port=80))
    view = builders.view(instances=(builders.instance(ports="80/tcp=1.2.3.4:4000 81/tcp=1.2.3.4:4001"),))
    fleet = builders.fleet(workloads=(work,), leases=(builders.lease(),), markets={"vast": view})
    [target] = probing.targets(fleet, "vast")
    assert target.place == "1.2.3.4:4000"
    ready = builders.fleet(workloads=(work,), leases=(builders.lease(ready_since=NOW),), markets={"vast": view})
    assert probing.targets(ready, "vast") == ()
    assert probing.targets(builders.fleet(leases=(builders.lease(),), markets={"vast": view}), "vast") == ()


def test_owners_are_spread() -> None:
    work = builders.workload(max_per_owner=1, slots=2)
    fleet = builders.fleet(workloads=(work,), leases=(builders.lease(),))
    held, nobody = spread.owners(fleet, work), OwnerKey("vast", "")
    assert spread.is_crowded(work, OwnerKey("vast", "o1"), held)
    assert not spread.is_crowded(work, OwnerKey("runpod", "o1"), held)
    assert not spread.is_crowded(work, OwnerKey("vast", "o2"), held)
    assert not spread.is_crowded(work, nobody, Counter({nobody: 5}))
    assert not spread.is_crowded(builders.workload(), OwnerKey("vast", "o1"), Counter({OwnerKey("vast", "o1"): 9}))


@pytest.mark.parametrize("has_run", [True, False])
def test_a_container_that_is_started_again_and_again_is_read_for_the_line_of_its_end(has_run: bool) -> None:
    """RunPod starts an ended container anew: the pod is starting at every look, and its work is done all the same."""
    held = builders.lease(state=LeaseState.STARTING, has_run=has_run)
    sighting = Sighting("1", NOW, is_ready=False, is_done=True)
    view = builders.view(instances=(builders.instance(state=InstanceState.LOADING),), sightings={"1": sighting})
    fleet = builders.fleet(workloads=(LINED,), leases=(held,), markets={"vast": view})
    assert bool(probing.targets(fleet, "vast")) is has_run
    assert scopes(fleet) == ([(Word.DONE, "slot:train/0")] if has_run else [])
