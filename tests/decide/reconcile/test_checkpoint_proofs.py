"""When a paused disk counts as carried: by our own comparison of this pause, held against the guard's last word."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from agent.decide.facts import LeaseChanged
from agent.decide.reconcile.guards import checkpoint_proofs
from agent.decide.reconcile.guards.checkpoint_proofs import COUNTS_BESIDE_ANOTHER, COUNTS_FOR, WRITTEN_AGAIN
from agent.domain.fleet import Fleet
from agent.domain.record.guard_figures import GuardFigures
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work import kept_terms, only_copy
from agent.domain.work.carried_checkpoint import CheckpointProof
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from tests.support import builders

NOW = builders.NOW
WORK = builders.guarded(checkpoint=Checkpoint(place=CheckpointPlace.DISK))
REMOTE = Checkpoint(place=CheckpointPlace.REMOTE)
PAUSED = builders.lease(
    state=LeaseState.PAUSED, state_since=builders.ago(minutes=20), guard_run=1, has_run=True, runs=2, run_since=None
)
HELD = kept_terms.recorded(PAUSED, WORK)
NAME = f"ckpt/00000003-{HELD.intent_id}.json"
TAKEN = builders.ago(minutes=31)
PROOF = CheckpointProof(builders.ago(minutes=1), NAME, 3)


def figures(**changes: Any) -> GuardFigures:
    values = {"run": 1, "stretch": 2, "told_at": builders.ago(minutes=21), "manifest": NAME, "kept_at": TAKEN}
    return GuardFigures(HELD.lease_id, HELD.slot, "vast", HELD.host_id, **{**values, **changes})


def fleet(held: Lease = HELD, proof: CheckpointProof | None = PROOF, **changes: Any) -> Fleet:
    values: Mapping[str, Any] = {
        "workloads": (WORK,),
        "leases": (held,),
        "checkpoint_proofs": {} if proof is None else {held.intent_id: proof},
        "guard_figures": {held.lease_id: figures()},
        **changes,
    }
    return builders.fleet(**values)


def after(seen: Fleet) -> Lease:
    """Return the lease of a fleet as it is after the facts."""
    (held,) = seen.leases
    found = list(checkpoint_proofs.changes(seen))
    assert found in ([], [LeaseChanged(held, found[0].after, None)] if found else [])
    return found[0].after if found else held


def verified(ago: timedelta = timedelta(minutes=1)) -> Lease:
    return msgspec.structs.replace(HELD, checkpoint_taken_at=TAKEN, checkpoint_verified_at=NOW - ago)


def test_a_comparison_of_this_pause_frees_the_disk_and_dates_its_checkpoint() -> None:
    found = after(fleet())
    assert (found.checkpoint_taken_at, found.checkpoint_verified_at) == (TAKEN, PROOF.read_at)
    assert only_copy.is_carried(found, WORK)
    assert not only_copy.may_leave(found, WORK)
    assert only_copy.may_leave_at_a_price(found, WORK)
    assert not only_copy.may_leave_at_a_price(HELD, WORK)
    assert checkpoint_proofs.why_not(fleet(found), found) == ""


def test_nobody_knows_when_a_checkpoint_was_taken_that_was_first_read_after_a_start() -> None:
    found = after(fleet(guard_figures={HELD.lease_id: figures(kept_at=None)}))
    assert (found.checkpoint_taken_at, found.checkpoint_verified_at) == (None, PROOF.read_at)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"proof": None}, "has not been compared"),
        ({"proof": replace(PROOF, read_at=builders.ago(minutes=21))}, "has not been compared"),
        ({"proof": replace(PROOF, refusal="file 1 differs")}, "file 1 differs"),
        ({"proof": replace(PROOF, sequence=2, manifest="ckpt/00000002-a1.json")}, f"before {NAME}"),
        ({"guard_figures": {}}, "reported no checkpoint"),
        ({"guard_figures": {HELD.lease_id: figures(manifest="")}}, "reported no checkpoint"),
        ({"guard_figures": {HELD.lease_id: figures(manifest="ckpt/../x.json")}}, "reported no checkpoint"),
        (
            {"guard_figures": {HELD.lease_id: figures(manifest="ckpt/00000003-b2.json")}},
            "since it restored one of another",
        ),
        ({"guard_figures": {HELD.lease_id: figures(stretch=1)}}, "reported no checkpoint"),
        ({"guard_figures": {HELD.lease_id: figures(run=2)}}, "reported no checkpoint"),
    ],
)
def test_what_frees_no_disk_says_why(changes: dict[str, Any], why: str) -> None:
    seen = fleet(HELD, **changes)
    assert after(seen) == HELD
    assert why in checkpoint_proofs.why_not(seen, HELD)
    before = verified(timedelta(minutes=10))
    is_unknown = why == "has not been compared"
    assert (after(fleet(before, **changes)) == before) is is_unknown, "only a comparison denies the one before it"


def test_a_pointer_that_moved_on_frees_it_too() -> None:
    moved = replace(PROOF, sequence=4, manifest="ckpt/00000004-b2.json")
    assert only_copy.is_carried(after(fleet(proof=moved)), WORK)


@pytest.mark.parametrize("state", [LeaseState.RUNNING, LeaseState.OFFLINE, LeaseState.MISSING, LeaseState.EXITED])
def test_only_a_paused_disk_counts_as_carried(state: LeaseState) -> None:
    seen = fleet(msgspec.structs.replace(verified(), state=state))
    assert not only_copy.is_carried(seen.leases[0], WORK)
    assert after(seen).checkpoint_verified_at is None


def test_a_verification_of_an_earlier_pause_says_nothing() -> None:
    old = verified(timedelta(minutes=21))
    assert not only_copy.is_carried(old, WORK)
    assert after(fleet(old)).checkpoint_verified_at == PROOF.read_at


def test_it_outlasts_a_restart_and_a_bucket_that_is_away_for_an_hour() -> None:
    for ago, is_kept in ((COUNTS_FOR, True), (COUNTS_FOR + timedelta(seconds=1), False)):
        long_paused = msgspec.structs.replace(verified(ago), state_since=builders.ago(hours=5))
        assert (after(fleet(long_paused, proof=None)) == long_paused) is is_kept
        old = replace(PROOF, read_at=NOW - ago)
        assert (after(fleet(long_paused, proof=old)) == long_paused) is is_kept


@pytest.mark.parametrize(("run", "counts_for"), [(1, COUNTS_BESIDE_ANOTHER), (2, COUNTS_FOR), (None, COUNTS_FOR)])
def test_beside_another_lease_of_its_run_only_a_recent_comparison_of_this_process_counts(
    run: int | None, counts_for: timedelta
) -> None:
    """The other host may replace the checkpoint that was found by one that is not whole, and remove it."""
    long_paused = msgspec.structs.replace(verified(timedelta(minutes=1)), state_since=builders.ago(hours=5))
    other = builders.lease(2, guard_run=run)
    for ago, is_kept in ((counts_for, True), (counts_for + timedelta(seconds=1), run != 1)):
        seen = fleet(long_paused, replace(PROOF, read_at=NOW - ago), leases=(long_paused, other))
        facts = list(checkpoint_proofs.changes(seen))
        assert only_copy.is_carried(facts[0].after if facts else long_paused, WORK) is is_kept
    since_the_start = fleet(long_paused, None, leases=(long_paused, other))
    facts = list(checkpoint_proofs.changes(since_the_start))
    assert (facts == []) is (run != 1)
    if facts:
        assert "has not been compared" in checkpoint_proofs.why_not(since_the_start, facts[0].after)


def test_what_a_clock_that_was_ahead_has_dated_frees_no_disk() -> None:
    ahead = verified(-timedelta(hours=3))
    assert after(fleet(ahead, proof=None)).checkpoint_verified_at is None
    early = replace(PROOF, read_at=NOW + timedelta(hours=3))
    assert after(fleet(ahead, proof=early)).checkpoint_verified_at is None
    assert after(fleet(proof=early)).checkpoint_verified_at is None
    assert after(fleet(ahead)).checkpoint_verified_at == PROOF.read_at, "a comparison of now is written in its place"


def test_the_same_comparison_is_written_down_twice_an_hour_at_most() -> None:
    for younger, is_written in ((WRITTEN_AGAIN - timedelta(seconds=1), False), (WRITTEN_AGAIN, True)):
        held = msgspec.structs.replace(verified(timedelta(minutes=1) + younger), state_since=builders.ago(hours=5))
        seen = fleet(held, proof=PROOF)
        assert (after(seen).checkpoint_verified_at == PROOF.read_at) is is_written
        assert list(checkpoint_proofs.changes(fleet(after(seen)))) == []


def test_release_disk_false_and_a_guard_without_a_bucket_free_nothing() -> None:
    assert WORK.guard is not None
    kept = replace(WORK, guard=replace(WORK.guard, release_disk=False))
    seen = fleet(verified(), workloads=(kept,))
    assert "release_disk = false" in checkpoint_proofs.why_not(seen, seen.leases[0])
    assert after(seen).checkpoint_verified_at is None
    bare = replace(WORK, guard=replace(WORK.guard, bucket=None))
    for work in (kept, bare, replace(WORK, guard=None), replace(WORK, checkpoint=REMOTE)):
        assert not only_copy.is_carried(verified(), work)
    seen = fleet(workloads=(bare,))
    assert checkpoint_proofs.why_not(seen, HELD) == ""


@pytest.mark.parametrize(
    ("paths", "is_freed"),
    [(("/w",), True), (("/w", "/opt/state"), False), (("/opt/state",), False), ((), False)],
)
def test_a_checkpoint_of_other_paths_than_the_file_has_today_frees_no_disk(
    paths: tuple[str, ...], *, is_freed: bool
) -> None:
    assert WORK.guard is not None
    edited = replace(WORK, guard=replace(WORK.guard, paths=paths))
    assert only_copy.is_carried(verified(), edited) is is_freed
    seen = fleet(verified(), workloads=(edited,))
    assert (after(seen).checkpoint_verified_at is not None) is is_freed
    why = checkpoint_proofs.why_not(seen, seen.leases[0])
    assert why == "" if is_freed else f"carries /w, and paths is {', '.join(paths) or 'nothing'} today" in why


@pytest.mark.parametrize(
    "terms", [None, '{"is_batch":false,"endpoint":"e","bucket":"b","prefix":"p","done_codes":[0]}', '{"of":"later"}']
)
def test_a_guard_whose_paths_nobody_recorded_frees_no_disk(terms: str | None) -> None:
    seen = fleet(msgspec.structs.replace(verified(), guard_terms=terms))
    assert after(seen).checkpoint_verified_at is None
    assert "its guard carries were not recorded" in checkpoint_proofs.why_not(seen, seen.leases[0])
