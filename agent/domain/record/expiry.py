"""The common part of holds, cooldowns, tallies and reported thresholds: a place in the ledger and mostly an end."""

from datetime import datetime, timedelta

LASTING = timedelta(days=3650)
"""Where an end must be shown, a record without one is shown as ending this long after its beginning."""


class Expiring:
    """A record with a `place` and an end in `until`; a record without an end has its beginning in `since`."""

    __slots__ = ()
    since: datetime
    until: datetime | None

    def __str__(self) -> str:
        """Return the record as `gpubid fleet` shows it: SCOPE:KEY."""
        return ":".join(self.place)

    @property
    def place(self) -> tuple[str, str]:
        """The scope and the key. Two records of one place are the same record, given twice."""
        raise NotImplementedError

    @property
    def shown_until(self) -> datetime:
        """The end to show, far ahead if there is none."""
        return self.until if self.until is not None else self.since + LASTING

    def is_over(self, now: datetime) -> bool:
        """Return whether the record has ended; without an end it never does."""
        return self.until is not None and self.until <= now
