"""Quotes: the floor of a slice that a search shows, late and with the holder's own bid as an echo.

1. A free slice shows its host's floor at once.
2. A slice that a bidder holds shows its old floor until the echo lag has passed. Then it shows the holder's bid,
   rounded to three decimals. A lowered bid takes longer to show than a raised one.
3. A slice that a rival has just taken is not listed for some minutes; one held on demand is never listed.
"""

import dataclasses
from typing import Final

from agent.simulator import recorded_figures

FREE: Final = -1.0  # a level: nobody has any GPU of the slice
_GOLDEN = 2_654_435_761


def spread(key: int, at: float, bounds: tuple[float, float]) -> float:
    """Pick a number between bounds that depends only on the key and the time."""
    mixed = (key * _GOLDEN ^ int(at * 1000) * 40_503) & 0xFFFFFFFF
    mixed = (mixed ^ (mixed >> 15)) * 2_246_822_519 & 0xFFFFFFFF
    return bounds[0] + (bounds[1] - bounds[0]) * ((mixed ^ (mixed >> 13)) / 0xFFFFFFFF)


@dataclasses.dataclass(slots=True)
class Quote:
    """The present and the coming quotes of one slice."""

    offer_id: int
    level: float | None = FREE  # the truth: FREE, the holder's bid for this slice, None while held on demand
    shown: float | None = FREE
    hidden_until: float = 0.0
    coming: list[tuple[float, float]] = dataclasses.field(default_factory=list)

    def update(
        self,
        now: float,
        level: float | None,
        *,
        is_taken_by_rival: bool,
        lag: tuple[float, float],
        lowered: tuple[float, float],
    ) -> None:
        """Take the slice's new true level."""
        if level == self.level:
            return
        before = self.level
        self.level = level
        if level is None or level == FREE:
            self.coming.clear()
            self.shown = level
            self.hidden_until = 0.0
            return
        if self.shown is None:
            self.shown = FREE
        if is_taken_by_rival:
            self.hidden_until = now + spread(self.offer_id, now, recorded_figures.UNLISTED_SECONDS)
        delay = spread(self.offer_id + 1, now, lag)
        if before is not None and before != FREE and level < before:
            delay *= spread(self.offer_id + 2, now, lowered)
        # a later change never shows before an earlier one
        at = max(now + delay, self.coming[-1][0] if self.coming else 0.0)
        self.coming.append((at, round(level, 3)))

    def read(self, now: float) -> float | None:
        """Return the floor that a search shows now: FREE for the host's floor, None for no row."""
        while self.coming and self.coming[0][0] <= now:
            self.shown = self.coming.pop(0)[1]
        return None if now < self.hidden_until else self.shown
