"""Dependent runs over one record, and how far a run may be read after its end."""

from collections.abc import Iterable

CLUSTER_HOURS = 96
"""Runs of one place that begin within the same four days are not independent. The bootstrap draws them together, and
choices that are scored on one such stretch are made on others."""
SHORT_CLUSTER_HOURS = 24
"""The same for jobs over several pools whose work and deadline are at most the next two figures, and for days of warm
slots. Such runs overlap with one further day at most. Records of 7 to 15 days have enough of these blocks for an
interval."""
SHORT_WORK_HOURS, SHORT_DEADLINE_HOURS = 16.0, 24.0
SPARE_TICKS = 24
"""Ticks after the last deadline, so that a late run can be seen to its end."""


def of(hours: float, cluster_hours: int = CLUSTER_HOURS) -> int:
    """Return the stretch of `cluster_hours` in which a run begins `hours` after the record, counted from 0."""
    return int(hours // cluster_hours)


def hours_of(jobs: Iterable[tuple[float, float]]) -> int:
    """Return the hours of a block for jobs over several pools, each its hours of work and hours allowed."""
    is_short = all(work <= SHORT_WORK_HOURS and allowed <= SHORT_DEADLINE_HOURS for work, allowed in jobs)
    return SHORT_CLUSTER_HOURS if is_short else CLUSTER_HOURS
