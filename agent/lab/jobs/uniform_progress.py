"""Uniform Progress, on-demand alone, and the last resort that every published policy here has.

Uniform Progress is Wu et al., "Can't Be Late" (NSDI 2024). It takes interruptible capacity if it is there, on-demand
while the work is behind a straight line, and interruptible again only when two overheads ahead of the line. Over
several pools it tries the others by price after a loss, and those of the lost pool's region last (SkyPilot's eager next
region; "UP(S)" in SkyNomad, arXiv 2601.06520).
"""

from dataclasses import dataclass, field

from agent.domain.market.tenure import Tenure
from agent.lab.jobs.job_terms import Terms
from agent.lab.jobs.pool_place import region
from agent.lab.jobs.tick_engine import NOTHING, Choice, Sight


def last_resort(sight: Sight) -> Choice | None:
    """Return the choice that the deadline forces in this tick, or None if there is a free choice.

    If another start and a fallback after it no longer fit, only the running instance may continue. If the start of a
    fallback just fits, only a warm instance may continue.
    """
    terms, tick, looks = sight.terms, sight.terms.tick, sight.looks
    todo = sight.todo + terms.overhead
    if -(-(todo + terms.overhead) // tick) < looks:
        return None
    if sight.runs.tenure is Tenure.INTERRUPTIBLE and (-(-todo // tick) < looks or sight.warm == 0):
        return sight.runs
    return on_demand(sight)


def on_demand(sight: Sight) -> Choice:
    """Return on-demand: the running instance, or a start in the cheapest pool."""
    return sight.runs if sight.runs.tenure is Tenure.ON_DEMAND else Choice(Tenure.ON_DEMAND, sight.fallback)


@dataclass(slots=True)
class OnDemand:
    """On-demand from the first tick to the last."""

    terms: Terms

    def choose(self, sight: Sight) -> Choice:
        """Return on-demand."""
        return on_demand(sight)


@dataclass(slots=True)
class Uniform:
    """Uniform Progress over the pools `among` (None means all). It moves only after a loss."""

    terms: Terms
    among: tuple[int, ...] | None = None
    _spots: tuple[tuple[Choice, str], ...] = field(init=False)
    _lost: str | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Set the region of each pool that may be tried."""
        pools, among = self.terms.pools, self.among
        tried = range(len(pools)) if among is None else among
        self._spots = tuple((Choice(Tenure.INTERRUPTIBLE, pool), region(pools[pool])) for pool in tried)

    def choose(self, sight: Sight) -> Choice:
        """Return the choice of Uniform Progress."""
        forced = last_resort(sight)
        chosen = forced if forced is not None else self._free(sight)
        if chosen.tenure is Tenure.INTERRUPTIBLE and chosen is not sight.runs:
            self._lost = region(self.terms.pools[chosen.pool])
        return chosen

    def _free(self, sight: Sight) -> Choice:
        terms, runs = self.terms, sight.runs
        if runs.tenure is Tenure.INTERRUPTIBLE:
            return runs
        ahead = sight.done * terms.deadline - terms.work * sight.now
        best = self._first(sight)
        if runs.tenure is Tenure.ON_DEMAND:
            is_far = ahead > 2 * terms.overhead * terms.work
            return best if best is not None and is_far else runs
        if best is not None:
            return best
        return on_demand(sight) if ahead < 0 else NOTHING

    def _first(self, sight: Sight) -> Choice | None:
        """Return the first pool with capacity: in order of price, with the region of the last loss at the end."""
        up, prices, lost = sight.up, sight.spot, self._lost
        found = [(place == lost, prices[spot.pool], spot) for spot, place in self._spots if up[spot.pool]]
        return min(found, key=lambda each: each[:2])[2] if found else None


def alone(terms: Terms) -> list[Uniform]:
    """Return Uniform Progress for each pool alone."""
    return [Uniform(terms, (pool,)) for pool in range(len(terms.pools))]
