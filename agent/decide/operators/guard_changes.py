"""Changes of a workload that a guard at work would not hear of, so that the daemon would misjudge what it says."""

from dataclasses import dataclass

from agent.domain.work.guard_terms import Bucket
from agent.domain.work.workload import Workload, WorkloadKind


@dataclass(frozen=True, slots=True)
class GuardChange:
    """One such change: its place within the workload's table, its code, and what is said of that place."""

    key: str
    code: str
    sentence: str


def of(before: Workload | None, after: Workload) -> GuardChange | None:
    """Return the first such change, or None; without the workload before, only a guard that is gone is seen."""
    if after.guard is None or after.guard.bucket is None:
        return GuardChange("guard", "guard_gone", "has no bucket any more in which its guard reports")
    if before is None or before.guard is None:
        return None
    if before.kind is WorkloadKind.BATCH and after.kind is not WorkloadKind.BATCH:
        return GuardChange("kind", "guard_kind", "is no batch any more, so that no exit code would end it")
    if before.guard.bucket is not None and _folder(before.guard.bucket) != _folder(after.guard.bucket):
        return GuardChange("guard.bucket", "guard_moved", f"is another folder than {before.guard.bucket}")
    gone = sorted(set(before.guard.done_codes) - set(after.guard.done_codes))
    if gone:
        return GuardChange("guard.done_codes", "fewer_done_codes", f"{gone[0]} is no done code any more")
    return None


def _folder(place: Bucket) -> tuple[str, str, str]:
    return place.endpoint, place.name, place.prefix
