"""Dependent runs over one record, and how far a run may be read after its end."""

CLUSTER_HOURS = 96
"""Runs of one place that begin within the same four days are not independent. The bootstrap draws them together, and
choices that are scored on one such stretch are made on others."""
SPARE_TICKS = 24
"""Ticks after the last deadline, so that a late run can be seen to its end."""


def of(hours: float) -> int:
    """Return the stretch of four days that begins `hours` after a record does, counted from 0."""
    return int(hours // CLUSTER_HOURS)
