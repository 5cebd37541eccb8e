"""Our reading of SkyNomad's rule (arXiv 2601.06520): the best score in dollars an hour, with a price of progress.

Formulas: an interruptible pool scores V * (L - d)+ / L - price - egress / L, without d where it runs already. On-demand
scores V - its price, less V * d + egress away from the checkpoint. Nothing scores 0. V is the on-demand price times the
required rate over a reference rate, at least the cheapest interruptible price. A running instance is left only for a
score above its own by a margin: 0.5 $/h + 0.0002 $/h per GB + 5 % of V.

Readings, where the paper leaves room (settings as in the published artifact):
1. The reference rate is the planned one, work over time allowed. A past rate is the other published form.
2. L is the mean remaining life by the Nelson-Aalen estimate of the pool's runs, given the present age. The hazard is
   scaled by the largest recent excess of losses over predicted ones. L is at most the time left.
3. A run of a pool lasts from a look that found capacity to the next one that did not, whether or not we ran there (the
   artifact calls this virtual availability). The present run counts as one that has not ended.
4. It never stops an instance to wait.
5. On-demand is forced when the work left and one start just fit into the time left.
"""

import math
from dataclasses import dataclass, field

from agent.domain.market.tenure import Tenure
from agent.lab.jobs import uniform_progress
from agent.lab.jobs.job_terms import HOUR, Terms
from agent.lab.jobs.tick_engine import NOTHING, Choice, Sight
from agent.lab.pools.known_runs import KnownRuns

MARGIN, MARGIN_PER_GIGABYTE, MARGIN_OF_VALUE = 0.5, 0.0002, 0.05


@dataclass(slots=True)
class Rate:
    """Takes the best score. `gigabytes` only widens the margin."""

    terms: Terms
    gigabytes: float = 0.0
    _pools: list[KnownRuns] = field(init=False)

    def __post_init__(self) -> None:
        """Begin with nothing seen."""
        self._pools = [KnownRuns(self.terms.tick / HOUR) for _ in self.terms.pools]

    def choose(self, sight: Sight) -> Choice:
        """Return the choice with the best score, or the running one if the gain is too small."""
        now = sight.now / HOUR
        for pool, is_up in zip(self._pools, sight.up, strict=True):
            pool.see(now, is_up=is_up)
        forced = _forced(sight)
        return forced if forced is not None else self._best(sight, now)

    def _best(self, sight: Sight, now: float) -> Choice:
        value = self._value(sight)
        scores = self._scores(sight, value, now)
        least = scores.get(sight.runs, 0.0)
        if sight.runs != NOTHING:
            least += MARGIN + MARGIN_PER_GIGABYTE * self.gigabytes + MARGIN_OF_VALUE * value
        best = max(scores, key=lambda each: scores[each])
        return best if scores[best] > least else sight.runs

    def _value(self, sight: Sight) -> float:
        """Return the present value of an hour of progress, in dollars."""
        terms = self.terms
        required = sight.todo / max(sight.left, 1)
        return max(min(sight.on_demand) * required * terms.deadline / terms.work, min(sight.spot))

    def _scores(self, sight: Sight, value: float, now: float) -> dict[Choice, float]:
        left, start = sight.left / HOUR, self.terms.overhead / HOUR
        ask = uniform_progress.on_demand(sight)
        move = self._egress(sight, ask.pool)
        away = value * start + move if sight.where not in {-1, ask.pool} else 0.0
        scores = {ask: value - sight.on_demand[ask.pool] - away}
        for place, pool in enumerate(self._pools):
            if not sight.up[place]:
                continue
            choice = Choice(Tenure.INTERRUPTIBLE, place)
            lasts, warm = min(pool.lasts(now), left), 0.0 if choice == sight.runs else start
            if lasts > warm:
                move = self._egress(sight, place)
                scores[choice] = value * (lasts - warm) / lasts - sight.spot[place] - move / lasts
        return scores

    def _egress(self, sight: Sight, pool: int) -> float:
        return float(self.terms.egress[sight.where, pool]) if sight.where >= 0 else 0.0


def _forced(sight: Sight) -> Choice | None:
    """Return the choice that the deadline forces in this tick, or None if there is a free choice."""
    needed = math.ceil((sight.todo + sight.terms.overhead) / sight.terms.tick)
    if needed < sight.looks:
        return None
    is_warm = sight.runs.tenure is Tenure.INTERRUPTIBLE and sight.warm == 0
    return sight.runs if is_warm else uniform_progress.on_demand(sight)
