"""The runs of one pool that were seen, and how much longer a run lasts by the Nelson-Aalen estimate.

Times are hours since the job began.
"""

import bisect
import math
from collections import deque
from dataclasses import dataclass, field

RISK_KEPT = 8.0
"""The predicted risk that counts as recent."""
_LEAST_RISK = 1e-6
_ROUNDING = 1e-9


@dataclass(slots=True)
class KnownRuns:
    """The runs that ended, the present one, and the excess of recent losses over predicted ones."""

    tick_hours: float
    excess: float = 1.0
    _ended: list[float] = field(default_factory=list)
    """Hours of the runs that ended, in order."""
    _since: float | None = None
    _counted: float = 0.0
    _recent: deque[tuple[float, int]] = field(default_factory=deque)

    def see(self, now: float, *, is_up: bool) -> None:
        """Record a look. The first one with capacity after one without begins a run."""
        if self._since is None:
            if is_up:
                self._since, self._counted = now, 0.0
            return
        age = now - self._since
        risk, self._counted = self._cumulative(age) - self._cumulative(self._counted), age
        if not is_up:
            bisect.insort(self._ended, age)
            self._since = None
        if risk > 0.0 or not is_up:
            self._recent.append((risk if is_up else max(risk, _LEAST_RISK), int(not is_up)))
            self._forget()

    def lasts(self, now: float) -> float:
        """Return the hours that a run of the present age still lasts, or infinity while no loss was seen."""
        knots = self._knots(now)
        if not knots:
            return math.inf
        hours, alive, at = 0.0, 1.0, 0.0 if self._since is None else now - self._since
        for knot, step in knots:
            if knot > at + _ROUNDING:
                hours += alive * (knot - at)
                alive *= math.exp(-self.excess * step)
                at = knot
        return hours + alive * self.tick_hours / -math.expm1(-self.excess * knots[-1][1])

    def _knots(self, now: float | None = None) -> list[tuple[float, float]]:
        """Return the steps of the estimate: age in hours, rise of the cumulative hazard."""
        ended = self._ended
        age = now - self._since if now is not None and self._since is not None else -1.0
        found = []
        for place, at in enumerate(ended):
            if place and at - ended[place - 1] <= _ROUNDING:
                continue
            count = bisect.bisect_right(ended, at + _ROUNDING) - place
            found.append((at, count / (len(ended) - place + (age >= at))))
        return found

    def _cumulative(self, age: float) -> float:
        knots = self._knots()
        past = [(at, step) for at, step in knots if at < age]
        tail = knots[-1][1] if knots else 0.0
        return sum(step for _, step in past) + max(age - (past[-1][0] if past else 0.0), 0.0) * tail

    def _forget(self) -> None:
        total = sum(each for each, _ in self._recent)
        while total - self._recent[0][0] >= RISK_KEPT:
            total -= self._recent.popleft()[0]
        self.excess = max(self._densest(), 1.0) if total >= 1.0 else 1.0

    def _densest(self) -> float:
        """Return the largest ratio of losses to predicted ones, over the latest stretches that predict at most one."""
        risk, losses, best = 0.0, 0, 0.0
        for each, lost in reversed(self._recent):
            if risk and risk + each > 1.0:
                break
            risk, losses = risk + each, losses + lost
            best = max(best, losses / max(risk, _LEAST_RISK))
        return best
