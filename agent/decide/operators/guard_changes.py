"""Changes of a workload that a running guard would not receive, so that the daemon would misjudge its reports."""

from dataclasses import dataclass

from agent.domain.record.lease import Lease
from agent.domain.work import kept_terms
from agent.domain.work.workload import Workload


@dataclass(frozen=True, slots=True)
class GuardChange:
    """One such change: its key within the workload's table, its code, and the end of a sentence about that key."""

    key: str
    code: str
    sentence: str


def of(lease: Lease, before: Workload | None, after: Workload) -> GuardChange | None:
    """Return the first such change, or None.

    The terms that the lease was rented with count; if they were not recorded, those of the workload `before`. Without
    either, only the removal of the guard is found.
    """
    if lease.guard_terms is None and _has_rclone(after if before is None else before):
        # The daemon reads nothing of such a guard.
        return None
    new = kept_terms.of(after)
    if new is None:
        return GuardChange("guard", "guard_gone", "no longer has a bucket in which its guard reports")
    old = kept_terms.read(lease) or (kept_terms.of(before) if before is not None else None)
    if old is None:
        return None
    if old.is_batch and not new.is_batch:
        return GuardChange("kind", "guard_kind", "is no longer a batch, so that no exit code would end it")
    if old.place != new.place:
        return GuardChange("guard.bucket", "guard_moved", f"is another folder than {old.spoken}")
    gone = sorted(set(old.done_codes) - set(new.done_codes))
    if gone:
        return GuardChange("guard.done_codes", "fewer_done_codes", f"{gone[0]} is no longer a done code")
    return None


def _has_rclone(work: Workload | None) -> bool:
    return work is not None and work.guard is not None and bool(work.guard.rclone)
