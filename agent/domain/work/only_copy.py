"""Whether a lease's disk may be lost, or may hold the only copy of a checkpoint (rule 11)."""

from agent.domain.record.lease import Lease
from agent.domain.work.workload import CheckpointPlace, Workload


def may_leave(held: Lease, work: Workload) -> bool:
    """Return whether the lease's disk may be lost: it never ran, keeps no checkpoints, or the workload allows it."""
    return not held.has_run or work.checkpoint.place is not CheckpointPlace.DISK or work.may_lose_disk
