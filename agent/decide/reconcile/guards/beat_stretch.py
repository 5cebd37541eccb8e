"""Whether a guard's beat is of the lease's present stretch of running.

Invariant: a beat from before the present stretch says nothing about this stretch.
"""

from agent.domain.record.lease import Lease
from agent.domain.work.guard_report import GuardReport


def has_changed(report: GuardReport, lease: Lease) -> bool:
    """Return whether the daemon has seen the beat change since the present stretch of running began."""
    return report.beat_changed_at is not None and report.beat_changed_at >= lease.began


def is_present(report: GuardReport, lease: Lease) -> bool:
    """Return whether a beat is of the present stretch of running: in the first stretch every beat is."""
    return lease.runs <= 1 or has_changed(report, lease)
