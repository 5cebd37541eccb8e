"""The rate rule of SkyNomad (arXiv 2601.06520): the best score in dollars an hour, against a shadow price of progress.

score of an interruptible pool = V * (L - d)+ / L - price - egress / L, without d where it runs already; of on-demand
V - its price; of nothing 0. V = on-demand price * required rate / past rate, at least the cheapest interruptible
price. L is the hours that a run still lasts. It comes from the Nelson-Aalen estimate of the pool's own spells, given
the present age, with the hazard scaled by the largest recent excess of losses over predicted ones. Without a loss so
far, L is the time left. A running instance is left only for a gain above a margin (0.5 $/h + 0.0002 $/h per GB + 5 % of
V in the published settings).
"""

import math
from collections import deque
from dataclasses import dataclass, field

from agent.domain.market.tenure import Tenure
from agent.lab.jobs import uniform_progress
from agent.lab.jobs.job_terms import HOUR, Terms
from agent.lab.jobs.tick_engine import NOTHING, Choice, Sight

MARGIN, MARGIN_OF_VALUE = 0.5, 0.05
RISK_KEPT = 8.0
"""The predicted risk that counts as recent."""


@dataclass(slots=True)
class Spells:
    """The spells of capacity of one pool, from the first tick on."""

    tick_hours: float
    ended: list[float] = field(default_factory=list)
    age: float | None = None
    recent: deque[tuple[float, int]] = field(default_factory=deque)
    excess: float = 1.0

    def see(self, *, is_up: bool) -> None:
        """Record one tick."""
        if is_up:
            before = self.age or 0.0
            risk = (
                self._cumulative(before + self.tick_hours) - self._cumulative(before) if self.age is not None else 0.0
            )
            self._remember(risk, 0)
            self.age = 0.0 if self.age is None else before + self.tick_hours
        elif self.age is not None:
            lasted = self.age + self.tick_hours
            self._remember(max(self._cumulative(lasted) - self._cumulative(self.age), 1e-6), 1)
            self.ended.append(lasted)
            self.age = None

    def _knots(self) -> list[tuple[float, float]]:
        """Return the steps of the Nelson-Aalen estimate: age in hours, rise of the cumulative hazard."""
        lasted = [*self.ended, *([self.age] if self.age else [])]
        return [
            (at, sum(each == at for each in self.ended) / sum(each >= at for each in lasted))
            for at in sorted(set(self.ended))
        ]

    def _cumulative(self, age: float) -> float:
        knots = self._knots()
        past = [(at, step) for at, step in knots if at < age]
        tail = knots[-1][1] if knots else 0.0
        return sum(step for _, step in past) + max(age - (past[-1][0] if past else 0.0), 0.0) * tail

    def _remember(self, risk: float, losses: int) -> None:
        if risk <= 0.0 and not losses:
            return
        self.recent.append((risk, losses))
        total = sum(each for each, _ in self.recent)
        while total - self.recent[0][0] >= RISK_KEPT:
            total -= self.recent.popleft()[0]
        self.excess = max(self._densest(), 1.0) if total >= 1.0 else 1.0

    def _densest(self) -> float:
        """Return the largest ratio of losses to predicted ones, over the latest stretches that predict at most one."""
        risk, losses, best = 0.0, 0, 0.0
        for each, lost in reversed(self.recent):
            if risk and risk + each > 1.0:
                break
            risk, losses = risk + each, losses + lost
            best = max(best, losses / max(risk, 1e-6))
        return best

    def lasts(self) -> float:
        """Return the hours that a spell of the present age still lasts, or infinity while no end was seen."""
        knots = self._knots()
        if not knots:
            return math.inf
        hours, alive, at = 0.0, 1.0, self.age or 0.0
        for knot, step in knots:
            if knot > at:
                hours += alive * (knot - at)
                alive *= math.exp(-self.excess * step)
                at = knot
        return hours + alive * self.tick_hours / -math.expm1(-self.excess * knots[-1][1])


@dataclass(slots=True)
class Rate:
    """Takes the best score. `gigabytes` only widens the margin."""

    terms: Terms
    gigabytes: float = 0.0
    _spells: list[Spells] = field(init=False)

    def __post_init__(self) -> None:
        """Begin with nothing seen."""
        self._spells = [Spells(self.terms.tick / HOUR) for _ in self.terms.pools]

    def choose(self, sight: Sight) -> Choice:
        """Return the choice with the best score, or the running one if the gain is too small."""
        for spells, is_up in zip(self._spells, sight.up, strict=True):
            spells.see(is_up=is_up)
        forced = uniform_progress.last_resort(sight)
        if forced is not None:
            return forced
        value = self._value(sight)
        scores = self._scores(sight, value)
        runs = sight.runs
        best = max(scores, key=lambda each: scores[each])
        margin = 0.0
        if runs != NOTHING:
            margin = MARGIN + 0.0002 * self.gigabytes + MARGIN_OF_VALUE * value
        return best if scores[best] > scores.get(runs, 0.0) + margin else runs

    def _value(self, sight: Sight) -> float:
        """Return the present value of an hour of progress, in dollars."""
        terms = self.terms
        required = (terms.work - sight.done) / max(terms.deadline - sight.now, 1)
        past = sight.done / sight.now if sight.done and sight.now else terms.work / terms.deadline
        return max(min(sight.on_demand) * required / past, min(sight.spot))

    def _scores(self, sight: Sight, value: float) -> dict[Choice, float]:
        left = (self.terms.deadline - sight.now) / HOUR
        ask = uniform_progress.on_demand(sight)
        move = float(self.terms.egress[sight.where, ask.pool]) if sight.where >= 0 else 0.0
        start = self.terms.overhead / HOUR * value if ask != sight.runs else 0.0
        scores = {NOTHING: 0.0, ask: value - sight.on_demand[ask.pool] - (move if start else 0.0)}
        for pool in range(len(self.terms.pools)):
            if sight.up[pool]:
                lasts = min(self._spells[pool].lasts(), left)
                choice = Choice(Tenure.INTERRUPTIBLE, pool)
                warm = self.terms.overhead / HOUR if choice != sight.runs else 0.0
                move = float(self.terms.egress[sight.where, pool]) if sight.where >= 0 else 0.0
                scores[choice] = value * max(lasts - warm, 0.0) / lasts - sight.spot[pool] - move / lasts
        return scores
