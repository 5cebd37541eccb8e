"""The notice before a market takes an instance, as guards measured it on the disk that was kept."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

FEWEST = 10
"""With fewer measured losses, a market's notice is unknown."""


@dataclass(frozen=True, slots=True)
class NoticeGiven:
    """The notice of one loss: whether a signal came, and the seconds from it to silence. A host may lie."""

    lease_id: str
    lost_at: datetime
    market: str
    sigterm_seen: bool
    seconds: float
    told_at: datetime


@dataclass(frozen=True, slots=True)
class MarketNotice:
    """The notice of one market, over all measured losses to it."""

    market: str
    losses: int
    signalled: int
    seconds: float | None
    """The median from the signal to silence; None if no signal came."""

    @property
    def is_known(self) -> bool:
        """Whether enough losses were measured."""
        return self.losses >= FEWEST

    @property
    def sentence(self) -> str:
        """The notice in one sentence."""
        if not self.is_known:
            return f"notice before a loss to {self.market}: unknown ({self.losses} of {FEWEST} measured)"
        head = f"notice before a loss to {self.market}: SIGTERM in {self.signalled / self.losses:.0%} of {self.losses}"
        return head if self.seconds is None else f"{head}, then {self.seconds:.1f} s (median)"


def of(market: str, given: Iterable[NoticeGiven]) -> MarketNotice:
    """Return the notice of one market."""
    mine = [each for each in given if each.market == market]
    seconds = [each.seconds for each in mine if each.sigterm_seen]
    return MarketNotice(market, len(mine), len(seconds), statistics.median(seconds) if seconds else None)
