"""Whether the bucket has the last checkpoint of a paused disk, by a comparison and by the guard's report.

Invariants:
1. Only the daemon's own comparison, begun after the lease was paused, verifies a disk. A host's report alone never
   does.
2. A verification counts for `COUNTS_FOR`, even while the bucket is away, unless a comparison denies it. Beside another
   lease of the run, whose guard writes and removes checkpoints in the same folder, only a comparison since the daemon's
   start counts, for `COUNTS_BESIDE_ANOTHER`.
3. The ledger has the verification, and each cycle derives it again (rule 19).
"""

from collections.abc import Iterator
from datetime import timedelta

from msgspec.structs import replace

from agent.decide.facts import LeaseChanged
from agent.domain.fleet import Fleet
from agent.domain.record.guard_figures import GuardFigures
from agent.domain.record.lease import Lease
from agent.domain.work import carried_checkpoint, only_copy
from agent.domain.work.carried_checkpoint import CheckpointProof

COUNTS_FOR = timedelta(hours=1)
"""How long a verification counts: a bucket's own rules, or a person, may empty it later."""
COUNTS_BESIDE_ANOTHER = timedelta(minutes=15)
"""How long a comparison counts, since another host may remove the files: longer than the slowest poll and itself."""
WRITTEN_AGAIN = COUNTS_FOR / 2
"""A verification younger than this is not recorded again, since nothing would change."""


def changes(fleet: Fleet) -> Iterator[LeaseChanged]:
    """Yield the leases whose disk is newly verified, or no longer."""
    for lease in fleet.leases:
        after = _judged(fleet, lease)
        if after != lease:
            yield LeaseChanged(lease, after, None)


def why_not(fleet: Fleet, lease: Lease) -> str:
    """Return why the bucket's checkpoint does not free a paused disk; empty if it does, or does not matter."""
    work = fleet.workload(lease.slot.workload)
    if work is None or work.guard is None or work.guard.bucket is None or only_copy.is_carried(lease, work):
        return ""
    if not work.guard.release_disk:
        return "release_disk = false keeps it whatever its bucket has"
    if only_copy.bucket_of(lease, work) is None:
        return only_copy.other_paths(lease, work)
    proof = _proof(fleet, lease)
    missing = _missing_report(lease, fleet.guard_figures.get(lease.lease_id))
    if proof is None:
        return missing or "its bucket has not been compared with its last checkpoint yet, or does not answer"
    return _refusal(fleet, lease, proof)


def _judged(fleet: Fleet, lease: Lease) -> Lease:
    work, verified = fleet.workload(lease.slot.workload), lease.checkpoint_verified_at
    if work is None or only_copy.bucket_of(lease, work) is None:
        return _unverified(lease)
    proof = _proof(fleet, lease)
    if proof is None:
        is_over = verified is not None and not _is_within(fleet.now - verified, COUNTS_FOR)
        return _unverified(lease) if is_over or _is_beside_another(fleet, lease) else lease
    if _refusal(fleet, lease, proof):
        return _unverified(lease)
    is_written = verified is not None and timedelta() <= proof.read_at - verified < WRITTEN_AGAIN
    if is_written and only_copy.is_carried(lease, work):
        return lease
    figures = fleet.guard_figures.get(lease.lease_id)
    taken = figures.kept_at if figures is not None else None
    return replace(lease, checkpoint_taken_at=taken, checkpoint_verified_at=proof.read_at)


def _unverified(lease: Lease) -> Lease:
    return replace(lease, checkpoint_taken_at=None, checkpoint_verified_at=None)


def _proof(fleet: Fleet, lease: Lease) -> CheckpointProof | None:
    """Return the comparison that counts, made in this pause and not too old, or None."""
    proof = fleet.checkpoint_proofs.get(lease.intent_id)
    if proof is None or proof.read_at < lease.state_since:
        return None
    counts_for = COUNTS_BESIDE_ANOTHER if _is_beside_another(fleet, lease) else COUNTS_FOR
    return proof if _is_within(fleet.now - proof.read_at, counts_for) else None


def _is_beside_another(fleet: Fleet, lease: Lease) -> bool:
    """Return whether another host works on the run of a lease, or may do so."""
    others = (other for other in fleet.leases if other.slot == lease.slot and other.lease_id != lease.lease_id)
    return any(other.is_open and other.guard_run == lease.guard_run for other in others)


def _is_within(age: timedelta, most: timedelta) -> bool:
    """Return whether an age is at most `most`. A negative age does not count: a clock that was ahead dated it."""
    return timedelta() <= age <= most


def _refusal(fleet: Fleet, lease: Lease, proof: CheckpointProof) -> str:
    figures = fleet.guard_figures.get(lease.lease_id)
    missing = _missing_report(lease, figures)
    if missing or proof.refusal:
        return missing or proof.refusal
    reported = figures.manifest if figures is not None else ""
    if proof.sequence < (carried_checkpoint.sequence_of(reported) or 0):
        return f"the bucket's newest is {proof.manifest}, before {reported}, which its guard reported"
    return ""


def _missing_report(lease: Lease, figures: GuardFigures | None) -> str:
    """Return a sentence if the guard carried no checkpoint in the last stretch of running, else nothing.

    One that it restored from another lease is older than all that this disk has.
    """
    is_of_last_stretch = figures is not None and figures.stretch == lease.runs and figures.run == lease.guard_run
    if figures is None or not is_of_last_stretch or carried_checkpoint.sequence_of(figures.manifest) is None:
        return "its guard reported no checkpoint in its last stretch of running"
    if not carried_checkpoint.is_of(figures.manifest, lease.intent_id):
        return "its guard has carried no checkpoint since it restored one of another lease"
    return ""
