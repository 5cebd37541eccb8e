"""The two leases of a move: which one goes, which one is started again, and what a slot waits for."""

from typing import Any

import msgspec
import pytest

from agent.decide.reconcile.probes import kept_pairs
from agent.decide.strategy import Proposal, SlotView
from agent.domain.market.market_rules import MarketRules
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work import kept_terms
from agent.domain.work.ready_sign import Readiness, ReadySign
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from tests.decide.test_slots import look, released
from tests.support import builders

NOW = builders.NOW
OLD = builders.lease(1, state=LeaseState.PAUSED)
NEW = builders.lease(2, opened_at=NOW)


def test_the_old_lease_of_a_finished_move_goes() -> None:
    assert released(OLD, NEW) == [("vast-1", "moved")]


def test_the_old_lease_stays_until_the_new_one_runs() -> None:
    starting = builders.lease(2, opened_at=NOW, state=LeaseState.STARTING, state_since=NOW)
    assert released(OLD, starting) == []


def test_the_old_lease_stays_while_the_market_of_the_new_one_does_not_answer() -> None:
    new = msgspec.structs.replace(NEW, market="runpod")
    silent, seen = ({"vast": builders.view(), "runpod": builders.view(is_fresh=known)} for known in (False, True))
    assert released(OLD, new, markets=silent) == []
    assert released(OLD, new, markets=seen) == [("vast-1", "moved")]


def test_the_old_lease_stays_while_the_machine_of_the_new_one_may_still_load_the_image() -> None:
    new = msgspec.structs.replace(NEW, market="machines", state_since=builders.ago(minutes=3))
    machines = {"vast": builders.view(), "machines": builders.view(rules=MarketRules(shows_container=False))}
    assert released(OLD, new, markets=machines) == []
    loaded = msgspec.structs.replace(new, state_since=builders.ago(minutes=8))
    assert released(OLD, loaded, markets=machines) == [("vast-1", "moved")]
    work = builders.workload(ready=Readiness(ReadySign.PORT, port=80))
    ready = msgspec.structs.replace(new, ready_since=builders.ago(minutes=1))
    assert released(OLD, ready, markets=machines, workloads=(work,)) == [("vast-1", "moved")]


def test_the_old_lease_stays_while_the_market_has_said_that_it_ends_the_new_one() -> None:
    """It may be all that the slot has in minutes."""
    assert released(OLD, msgspec.structs.replace(NEW, notice_at=builders.ago(minutes=-4))) == []


def test_the_old_lease_stays_when_it_may_hold_the_only_checkpoint() -> None:
    work = builders.workload(checkpoint=Checkpoint(place=CheckpointPlace.DISK))
    assert released(OLD, NEW, workloads=(work,)) == []


ON_DISK = builders.workload(checkpoint=Checkpoint(place=CheckpointPlace.DISK))
BACK = builders.lease(1)
LOADS = builders.lease(2, opened_at=NOW, state=LeaseState.STARTING, state_since=NOW)


def test_the_new_lease_goes_before_it_ran_if_the_old_one_is_back_and_may_not_be_left() -> None:
    """Else two GPUs bill for one slot: no rule releases either once the new one runs too."""
    assert released(BACK, LOADS, workloads=(ON_DISK,)) == [("vast-2", "old_is_back")]
    changes: dict[str, Any] = {"bid_limit": builders.per_hour(1), "has_run": False}
    queued = builders.lease(2, opened_at=NOW, state=LeaseState.PAUSED, state_since=NOW, **changes)
    assert released(BACK, queued, workloads=(ON_DISK,)) == [("vast-2", "old_is_back")]
    ending = msgspec.structs.replace(BACK, notice_at=builders.ago(minutes=-4))
    for old in (msgspec.structs.replace(BACK, state=LeaseState.OFFLINE), ending):
        assert released(old, LOADS, workloads=(ON_DISK,)) == []
    assert released(BACK, LOADS) == [], "its disk may go: the move goes on"
    dark = {"vast": builders.view(is_fresh=False)}
    assert released(BACK, LOADS, workloads=(ON_DISK,), markets=dark) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"state": LeaseState.RUNNING},
        {"state": LeaseState.PAUSED},
        {"state": LeaseState.PAUSED, "paused_by_us": True},
        {"state": LeaseState.STARTING},
    ],
    ids=str,
)
def test_a_slot_that_keeps_two_leases_that_ran_waits_for_a_person_and_says_so(changes: dict[str, Any]) -> None:
    new = builders.lease(2, opened_at=NOW, has_run=True, **changes)
    assert released(BACK, new, workloads=(ON_DISK,)) == []
    answer = look(leases=(BACK, new), workloads=(ON_DISK,))
    assert isinstance(answer, Proposal)
    assert (answer.kind, answer.reason.code) == (None, "two_leases")
    (alert,) = kept_pairs.alerts(builders.fleet(leases=(BACK, new), workloads=(ON_DISK,)))
    assert (alert.kind, alert.key, alert.sentence) == ("alert.two_leases", "vast-1 vast-2", answer.reason.sentence)
    assert "vast-1 on host h1 and vast-2 on host h2" in alert.sentence
    assert alert.sentence.endswith("`gpubid release vast-2` or `gpubid release vast-1`")


@pytest.mark.parametrize("leases", [(BACK,), (BACK, LOADS), (BACK, builders.lease(2, state=LeaseState.RELEASING))])
def test_a_slot_with_one_lease_that_ran_keeps_no_pair(leases: tuple[Lease, ...]) -> None:
    assert list(kept_pairs.alerts(builders.fleet(leases=leases, workloads=(ON_DISK,)))) == []


def test_of_two_kept_leases_that_we_stopped_the_new_one_is_started_again() -> None:
    stopped = (msgspec.structs.replace(each, state=LeaseState.PAUSED, paused_by_us=True) for each in (BACK, NEW))
    answer = look(leases=tuple(stopped), workloads=(ON_DISK,))
    assert isinstance(answer, Proposal)
    assert (answer.kind, answer.reason.code) == (IntentKind.RESUME, "move_continued")


def test_two_leases_whose_disks_may_go_are_no_kept_pair() -> None:
    assert list(kept_pairs.alerts(builders.fleet(leases=(BACK, NEW)))) == []


def test_a_move_that_lost_its_start_is_given_up() -> None:
    lost = builders.lease(2, opened_at=NOW, state=LeaseState.PAUSED, has_run=False)
    assert released(OLD, lost) == [("vast-2", "move_lost")]


def test_a_move_whose_new_lease_ran_and_was_lost_is_given_up_after_a_while() -> None:
    """Else the slot waits for ever, with two paused leases and nothing that runs."""
    ran = builders.lease(2, opened_at=NOW, state=LeaseState.PAUSED, state_since=builders.ago(minutes=9))
    assert released(OLD, ran) == []
    ran = msgspec.structs.replace(ran, state_since=builders.ago(minutes=11))
    assert released(OLD, ran) == [("vast-2", "move_lost")]
    assert released(OLD, msgspec.structs.replace(ran, paused_by_us=True)) == []
    work = builders.workload(checkpoint=Checkpoint(place=CheckpointPlace.DISK))
    assert released(OLD, ran, workloads=(work,)) == []


def test_a_move_goes_on_once_what_stopped_both_its_leases_is_lifted() -> None:
    """Else the slot waits for ever for a lease that nobody starts."""
    old, new = (msgspec.structs.replace(lease, state=LeaseState.PAUSED, paused_by_us=True) for lease in (OLD, NEW))
    answer = look(leases=(old, new))
    assert isinstance(answer, Proposal)
    assert (answer.kind, answer.lease, answer.reason.code) == (IntentKind.RESUME, new, "move_continued")
    dark = look(leases=(old, new), markets={"vast": builders.view(is_fresh=False)})
    outbid = look(leases=(old, msgspec.structs.replace(new, paused_by_us=False)))
    assert isinstance(dark, SlotView), "it may run by now"
    assert isinstance(outbid, SlotView), "its market stopped it"


@pytest.mark.parametrize("is_verified", [False, True])
def test_of_a_move_of_guarded_work_a_disk_goes_whose_checkpoint_is_in_the_bucket(*, is_verified: bool) -> None:
    guarded = (builders.guarded(checkpoint=Checkpoint(place=CheckpointPlace.DISK)),)
    terms, at = kept_terms.recorded(builders.lease(guard_run=1), *guarded).guard_terms, NOW if is_verified else None
    told: dict[str, Any] = {"guard_run": 1, "guard_terms": terms, "checkpoint_verified_at": at}
    old = msgspec.structs.replace(OLD, **told)
    assert released(old, NEW, workloads=guarded) == ([("vast-1", "moved")] if is_verified else [])
    lost = builders.lease(2, opened_at=NOW, state=LeaseState.PAUSED, state_since=builders.ago(minutes=11), **told)
    assert released(old, lost, workloads=guarded) == ([("vast-2", "move_lost")] if is_verified else [])


def test_the_old_lease_goes_whose_checkpoint_is_in_the_bucket_if_the_new_one_was_lost_and_must_stay() -> None:
    """Else the slot waits for ever for a new lease that no strategy raises, and pays for two disks."""
    guarded = (builders.guarded(checkpoint=Checkpoint(place=CheckpointPlace.DISK)),)
    terms = kept_terms.recorded(builders.lease(guard_run=1), *guarded).guard_terms
    told: dict[str, Any] = {"guard_run": 1, "guard_terms": terms}
    old = msgspec.structs.replace(OLD, paused_by_us=True, checkpoint_verified_at=NOW, **told)
    lost = builders.lease(2, opened_at=NOW, state=LeaseState.PAUSED, state_since=builders.ago(minutes=11), **told)
    assert released(old, lost, workloads=guarded) == [("vast-1", "moved")]
    may_return = msgspec.structs.replace(old, paused_by_us=False)
    unverified = msgspec.structs.replace(old, checkpoint_verified_at=None)
    late = msgspec.structs.replace(lost, state_since=builders.ago(minutes=9))
    stopped = msgspec.structs.replace(lost, paused_by_us=True)
    for pair in ((may_return, lost), (unverified, lost), (old, late), (old, stopped)):
        assert released(*pair, workloads=guarded) == []


def test_two_leases_of_a_workload_nobody_knows_are_left_alone() -> None:
    assert released(OLD, NEW, workloads=()) == []
