"""Uniform Progress over pools, and the last resort that every policy here shares.

Uniform Progress is Wu et al., "Can't Be Late" (NSDI 2024): interruptible capacity if it is there, on-demand while
less is done than the straight line asks, and back only when two overheads ahead of it. `eager` tries the other pools
by price after a loss, those of the lost pool's region last (SkyPilot's eager next region; "UP(S)" in SkyNomad, arXiv
2601.06520).
"""

from dataclasses import dataclass, field

import numpy as np

from agent.decide.deadline import multi_pool_policy
from agent.domain.market.tenure import Tenure
from agent.lab.pools import own_kernel
from agent.lab.pools.play import NOTHING, Choice, Mode, Sight
from agent.lab.pools.pool_place import region
from agent.lab.pools.pool_terms import Terms


def last_resort(sight: Sight, terms: Terms) -> Choice | None:
    """Return what must run in this tick for the deadline's sake, or None where there is a choice."""
    forced = multi_pool_policy.must(own_kernel.standing(sight, terms))
    if forced is None:
        return None
    return sight.runs if forced[0] is Tenure.INTERRUPTIBLE else on_demand(sight)


def on_demand(sight: Sight) -> Choice:
    """Return on-demand: what runs of it, or a start where it is cheapest."""
    return sight.runs if sight.runs.mode is Mode.ON_DEMAND else Choice(Mode.ON_DEMAND, sight.fallback)


@dataclass(slots=True)
class OnDemand:
    """On-demand from the first tick to the last."""

    terms: Terms

    def choose(self, sight: Sight) -> Choice:
        """Return on-demand."""
        return on_demand(sight)


@dataclass(slots=True)
class Uniform:
    """Uniform Progress over the pools `among` (all where None): stays where it is, moves only after a loss."""

    terms: Terms
    among: tuple[int, ...] | None = None
    _last: int = field(default=-1, init=False)

    def choose(self, sight: Sight) -> Choice:
        """Return the choice of Uniform Progress."""
        forced = last_resort(sight, self.terms)
        chosen = forced if forced is not None else self._free(sight)
        if chosen.mode is Mode.INTERRUPTIBLE:
            self._last = chosen.pool
        return chosen

    def _free(self, sight: Sight) -> Choice:
        terms = self.terms
        if sight.runs.mode is Mode.INTERRUPTIBLE:
            return sight.runs
        ahead = sight.done * terms.deadline - terms.work * sight.now
        best = self._first(sight)
        if sight.runs.mode is Mode.ON_DEMAND:
            is_far = ahead > 2 * terms.overhead * terms.work
            return best if best is not None and is_far else sight.runs
        if best is not None:
            return best
        return on_demand(sight) if ahead < 0 else NOTHING

    def _first(self, sight: Sight) -> Choice | None:
        """Return the first pool of the order that has capacity: by price, the region of the last loss at the end."""
        among = range(len(self.terms.pools)) if self.among is None else self.among
        lost = region(self.terms.pools[self._last]) if self._last >= 0 else None
        open_ = [pool for pool in among if sight.up[pool]]
        if not open_:
            return None
        keys = [(region(self.terms.pools[pool]) == lost, float(sight.spot[pool])) for pool in open_]
        return Choice(Mode.INTERRUPTIBLE, open_[min(range(len(open_)), key=lambda at: keys[at])])


def alone(terms: Terms) -> list[Uniform]:
    """Return Uniform Progress for each pool alone."""
    return [Uniform(terms, (pool,)) for pool in np.arange(len(terms.pools)).tolist()]
