"""Whether a lease's disk may be lost, or may hold the only copy of a checkpoint (rule 11)."""

from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work import kept_terms
from agent.domain.work.guard_terms import Bucket
from agent.domain.work.workload import CheckpointPlace, Workload


def may_leave(lease: Lease, work: Workload) -> bool:
    """Return whether a lease's disk may be lost: it never ran, has no checkpoints, or the workload allows it."""
    return not lease.has_run or work.checkpoint.place is not CheckpointPlace.DISK or work.may_lose_disk


def may_leave_at_a_price(lease: Lease, work: Workload) -> bool:
    """Return whether a strategy that prices the work since the last checkpoint may give up a lease's disk."""
    return may_leave(lease, work) or is_carried(lease, work)


def is_carried(lease: Lease, work: Workload) -> bool:
    """Return whether the last checkpoint on a paused disk was found whole in the bucket since the pause."""
    verified = lease.checkpoint_verified_at
    return bucket_of(lease, work) is not None and verified is not None and verified >= lease.state_since


def bucket_of(lease: Lease, work: Workload) -> Bucket | None:
    """Return the bucket that may have the checkpoint of a paused disk; None if it could not free the disk."""
    if work.guard is None or not _may_be_freed(lease, work) or other_paths(lease, work):
        return None
    return work.guard.bucket


def other_paths(lease: Lease, work: Workload) -> str:
    """Return why a bucket may lack a path that the workload keeps on a paused disk; empty if it has all."""
    if work.guard is None or not _may_be_freed(lease, work):
        return ""
    terms = kept_terms.read(lease)
    if terms is None or terms.paths is None:
        return "the paths that its guard carries were not recorded"
    if terms.paths != work.guard.paths:
        return f"its guard carries {_listed(terms.paths)}, and paths is {_listed(work.guard.paths)} today"
    return ""


def _may_be_freed(lease: Lease, work: Workload) -> bool:
    guard = work.guard
    if guard is None or not guard.release_disk or lease.guard_run is None or not lease.has_run or lease.is_held:
        return False
    return lease.state is LeaseState.PAUSED and work.checkpoint.place is CheckpointPlace.DISK


def _listed(paths: tuple[str, ...]) -> str:
    return ", ".join(paths) or "nothing"


def why_kept(lease: Lease, work: Workload, unverified: str) -> str:
    """Return why rule 11 keeps a lease, and the setting that would free it; or that a verified checkpoint frees it."""
    if may_leave(lease, work):
        return ""
    if is_carried(lease, work):
        taken = lease.checkpoint_taken_at
        return f"; its disk may go: the bucket has its checkpoint{f' of {taken:%H:%M} UTC' if taken else ''}, verified"
    why = f" and {unverified}" if unverified else ""
    return (
        f"; it is not moved, because its disk may hold the only checkpoint{why}: where checkpoints are kept elsewhere "
        f'set at = "remote" in [workloads.{work.name}.checkpoint], else may_lose_disk = true lets it be moved'
    )
