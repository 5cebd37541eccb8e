"""What holds, cooldowns, tallies and told thresholds share: a place in the ledger and, mostly, an end."""

from datetime import datetime, timedelta

LASTING = timedelta(days=3650)
"""What has to name an end shows a record without one as ending so long after it began."""


class Expiring:
    """A record with a `place` and an end in `until`; without one it has the time of its beginning in `since`."""

    __slots__ = ()
    since: datetime
    until: datetime | None

    def __str__(self) -> str:
        """Return it as `gpubid fleet` shows it: SCOPE:KEY."""
        return ":".join(self.place)

    @property
    def place(self) -> tuple[str, str]:
        """Scope and key: two records of one place are the same record, given twice."""
        raise NotImplementedError

    @property
    def shown_until(self) -> datetime:
        """The end that is shown of it: far ahead, where it has none."""
        return self.until if self.until is not None else self.since + LASTING

    def is_over(self, now: datetime) -> bool:
        """Return whether its time is over; without an end it never is."""
        return self.until is not None and self.until <= now
