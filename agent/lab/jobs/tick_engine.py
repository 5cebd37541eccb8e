"""The run of a job over a window under one policy, tick by tick, over one pool or several.

Semantics of a tick (published simulator of "Can't Be Late"):
- An interruptible instance whose pool has no capacity is gone at the tick's beginning.
- The policy sees which pools have capacity in this tick (all of them: probing costs are not modelled). It chooses none,
  interruptible in one pool, or on-demand.
- A tick costs that pool's price of that tick, whole even if work ends within it.
- Every start spends the overhead before work advances. Overhead longer than a tick carries over.
- A start away from the checkpoint pays its egress. On-demand is rented in the cheapest pool. Of several, the one with
  the checkpoint is taken.

Invariants:
1. A policy sees nothing of a later tick.
2. All seconds are whole, so equal choices give equal ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agent.domain.market.tenure import Tenure
from agent.lab.jobs.job_terms import HOUR, JobCase, Terms


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice for this tick. `pool` is an index, or -1 for none."""

    tenure: Tenure | None
    pool: int = -1


NOTHING = Choice(None)


@dataclass(slots=True)
class Sight:
    """A policy's view at the beginning of a tick. One object is updated from tick to tick."""

    terms: Terms
    up: Sequence[bool] = ()
    """By pool, whether it has capacity in this tick."""
    spot: Sequence[float] = ()
    """By pool, $/h of interruptible capacity."""
    on_demand: Sequence[float] = ()
    """By pool, $/h on demand."""
    tick: int = 0
    done: int = 0
    """Seconds of work done."""
    runs: Choice = NOTHING
    """The choice of the tick before, if it still runs."""
    warm: int = 0
    """Seconds of overhead that its start has yet to spend."""
    where: int = -1
    """The pool of the checkpoint, -1 before the first start."""

    @property
    def now(self) -> int:
        """Seconds since the job began."""
        return self.tick * self.terms.tick

    @property
    def todo(self) -> int:
        """Seconds of work left."""
        return self.terms.work - self.done

    @property
    def left(self) -> int:
        """Seconds until the deadline."""
        return self.terms.deadline - self.tick * self.terms.tick

    @property
    def looks(self) -> int:
        """Whole ticks until the deadline."""
        return self.left // self.terms.tick

    @property
    def fallback(self) -> int:
        """The pool of a new on-demand instance."""
        return fallback(self.on_demand, self.where)


class Policy(Protocol):
    """Chooses for each tick in turn. A new policy is made for each case."""

    def choose(self, sight: Sight, /) -> Choice:
        """Return the choice for this tick."""
        ...


@dataclass(frozen=True, slots=True)
class Planned:
    """A policy that follows a given plan, tick by tick."""

    plan: Sequence[Choice]

    def choose(self, sight: Sight, /) -> Choice:
        """Return the plan's choice."""
        return self.plan[sight.tick]


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a job."""

    cost: float
    """Dollars, egress included."""
    egress: float
    finished: int | None
    """Seconds until it was done, or None if the window ended before."""
    choices: tuple[Choice, ...]
    starts: int
    spot_hours: float
    on_demand_hours: float
    in_time: int
    """Seconds of work that were done within the time that counts."""

    def is_late(self, terms: Terms) -> bool:
        """Whether the job was done too late, or not at all."""
        return self.finished is None or self.finished > terms.counted


class Refused(Exception):
    """A policy chose a pool without capacity: a defect of the policy."""


def fallback(prices: Sequence[float], where: int) -> int:
    """Return the pool in which on-demand is rented: the cheapest, and among equal ones where the checkpoint is."""
    least = min(prices)
    return where if where >= 0 and prices[where] <= least else prices.index(least)


def play(case: JobCase, policy: Policy) -> Run:
    """Play a case to its end.

    Raises:
        Refused: the policy chose a pool without capacity.
    """
    sight, choices, finished = Sight(case.terms), [], None
    tick, cost, egress, starts, in_time = case.terms.tick, 0.0, 0.0, 0, 0
    for sight.tick, (sight.up, sight.spot, sight.on_demand) in enumerate(case.course.rows):
        if sight.runs.tenure is Tenure.INTERRUPTIBLE and not sight.up[sight.runs.pool]:
            sight.runs, sight.warm = NOTHING, 0
        chosen = policy.choose(sight)
        choices.append(chosen)
        if chosen.tenure is None:
            sight.runs, sight.warm = NOTHING, 0
            continue
        if chosen is not sight.runs and chosen != sight.runs:
            starts += 1
            egress += _start(sight, chosen)
        prices = sight.spot if chosen.tenure is Tenure.INTERRUPTIBLE else sight.on_demand
        cost += prices[chosen.pool] * tick / HOUR
        finished = _advance(sight)
        if (finished or (sight.tick + 1) * tick) <= case.terms.counted:
            in_time = sight.done
        if finished is not None:
            break
    spot, on_demand = (sum(each.tenure is tenure for each in choices) * tick / HOUR for tenure in _PAID)
    return Run(cost + egress, egress, finished, tuple(choices), starts, spot, on_demand, in_time)


_PAID = (Tenure.INTERRUPTIBLE, Tenure.ON_DEMAND)


def _start(sight: Sight, chosen: Choice) -> float:
    """Start the choice. Return the dollars of moving the checkpoint there."""
    terms, before = sight.terms, sight.where
    if chosen.tenure is Tenure.INTERRUPTIBLE and not sight.up[chosen.pool]:
        raise Refused(f"tick {sight.tick}: {terms.pools[chosen.pool]} has no capacity")
    sight.runs, sight.warm, sight.where = chosen, terms.overhead, chosen.pool
    return float(terms.egress[before, chosen.pool]) if before >= 0 else 0.0


def _advance(sight: Sight) -> int | None:
    """Let a tick pass. Return the second at which the work was done in it, or None."""
    terms = sight.terms
    spent = min(sight.warm, terms.tick)
    sight.warm -= spent
    todo = terms.work - sight.done
    worked = terms.tick - spent
    if worked >= todo:
        sight.done = terms.work
        return sight.tick * terms.tick + spent + todo
    sight.done += worked
    return None
