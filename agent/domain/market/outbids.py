"""Outbids with a known price, counted by the headroom of our bid and of the winner's bid over the host's floor.

They are counts, not sums of logarithms. A rival that bid less than we did was never seen, so only our bids at or below
a headroom give evidence about it. Sums could not separate those bids afterwards.
"""

import math
from bisect import bisect_left
from typing import Self

import msgspec

STEPS = (0.0, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0)
"""Lower bounds of the steps of headroom; the last step has no end. Counts by other steps are not comparable."""

_NONE = (0.0,) * len(STEPS)


class Outbids(msgspec.Struct, frozen=True):
    """Counts by step: `ours` of the bids that lost, at the nearest step; `rivals` of those that won."""

    ours: tuple[float, ...] = _NONE
    rivals: tuple[float, ...] = _NONE

    def plus(self, other: "Outbids", weight: float = 1.0) -> "Outbids":
        """Return these counts with others added at a weight."""
        if other.ours == _NONE:
            return self
        return Outbids(_added(self.ours, other.ours, weight), _added(self.rivals, other.rivals, weight))

    @classmethod
    def one(cls, ours: float, rival: float) -> Self:
        """Return the counts of one outbid, by the headrooms of the losing and the winning bid.

        The winner's step is never below ours: prices are in cents, and the steps of a cheap host are less than a cent.
        """
        at = min(range(len(STEPS)), key=lambda step: abs(math.log1p(STEPS[step]) - math.log1p(max(ours, 0.0))))
        beyond = max(at, bisect_left(STEPS, rival) - 1)
        return cls(_single(at), _single(beyond))


NO_OUTBIDS = Outbids()
"""Counts before any price was known."""


def _single(place: int) -> tuple[float, ...]:
    return tuple(float(step == place) for step in range(len(STEPS)))


def _added(mine: tuple[float, ...], others: tuple[float, ...], weight: float) -> tuple[float, ...]:
    return tuple(one + weight * other for one, other in zip(mine, others, strict=True))
