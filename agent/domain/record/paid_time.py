"""Paid time of a lease by phase, in whole microseconds."""

from dataclasses import dataclass
from datetime import date

from agent.domain.money import ZERO, Usd


@dataclass(frozen=True, slots=True)
class Phases:
    """Paid time of a lease on one UTC day, in microseconds, to add to the counts.

    `spoiled` moves from useful to lost, `redeemed` from restoring to useful, `finished` from lost to useful.
    `paused_disk` is the part of the cost of its disk that was paid while it did not run.
    """

    lease_id: str
    day: date
    loading: int = 0
    restoring: int = 0
    useful: int = 0
    spoiled: int = 0
    redeemed: int = 0
    finished: int = 0
    paused_disk: Usd = ZERO

    @property
    def paid(self) -> int:
        """All paid time, in microseconds."""
        return self.loading + self.restoring + self.useful
