"""Plays one policy over one case, tick by tick.

Semantics of a tick: an interruptible instance whose pool has no capacity is gone at the tick's beginning; the policy
sees which pools have capacity in this tick (all of them: probing costs are not modelled) and chooses none,
interruptible in one pool, or on-demand; a tick costs that pool's price of that tick; every start spends the overhead
before work advances, what is longer than a tick carries over; a start away from the checkpoint pays its egress.
On-demand is rented in the pool where it is cheapest, of several where the checkpoint lies.
"""

import enum
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from agent.lab.pools.pool_terms import HOUR, Flags, Grid, PoolsCase, Terms


class Mode(enum.IntEnum):
    """What runs in a tick."""

    NONE = 0
    INTERRUPTIBLE = 1
    ON_DEMAND = 2


@dataclass(frozen=True, slots=True)
class Choice:
    """What is to run in this tick; `pool` is an index, -1 for none."""

    mode: Mode
    pool: int = -1


NOTHING = Choice(Mode.NONE)


@dataclass(frozen=True, slots=True)
class Sight:
    """What a policy sees at the beginning of a tick.

    `now` and `done` in seconds; `runs` is what still runs, `warm` its overhead left; `where` the pool of the
    checkpoint, -1 before the first start; `up`, `spot` and `on_demand` by pool; `fallback` the pool of a new
    on-demand instance.
    """

    tick: int
    now: int
    done: int
    runs: Choice
    warm: int
    where: int
    up: Flags
    spot: Grid
    on_demand: Grid
    fallback: int


class Policy(Protocol):
    """Chooses for each tick in turn; made anew for each case."""

    def choose(self, sight: Sight, /) -> Choice:
        """Return what is to run in this tick."""
        ...


@dataclass(frozen=True, slots=True)
class Run:
    """What a policy did: dollars (of these egress), ticks until done (None: never), its choices, starts and hours."""

    cost: float
    egress: float
    ticks: int | None
    choices: tuple[Choice, ...]
    starts: int
    spot_hours: float
    on_demand_hours: float


class Refused(Exception):
    """A policy chose a pool without capacity: a defect of the policy."""


def fallback(prices: Grid, where: int) -> int:
    """Return the pool in which on-demand is rented: the cheapest, of several where the checkpoint lies."""
    return where if where >= 0 and prices[where] <= prices.min() else int(np.argmin(prices))


def play(case: PoolsCase, policy: Policy) -> Run:
    """Play a case to its end.

    Raises:
        Refused: the policy chose capacity that is not there.
    """
    terms, course = case.terms, case.course
    runs, warm, where, done, starts = NOTHING, 0, -1, 0, 0
    cost = egress = 0.0
    choices: list[Choice] = []
    for tick in range(len(course.up)):
        up, spot, ask = course.up[tick], course.spot[tick], course.on_demand[tick]
        if runs.mode is Mode.INTERRUPTIBLE and not up[runs.pool]:
            runs, warm = NOTHING, 0
        chosen = policy.choose(
            Sight(tick, tick * terms.tick, done, runs, warm, where, up, spot, ask, fallback(ask, where))
        )
        choices.append(chosen)
        if chosen.mode is Mode.NONE:
            runs, warm = chosen, 0
            continue
        if chosen.mode is Mode.INTERRUPTIBLE and not up[chosen.pool]:
            raise Refused(f"tick {tick}: {terms.pools[chosen.pool]} has no capacity")
        if chosen != runs:
            starts += 1
            warm = terms.overhead
            egress += float(terms.egress[where, chosen.pool]) if where >= 0 else 0.0
            where = chosen.pool
        runs = chosen
        prices = spot if chosen.mode is Mode.INTERRUPTIBLE else ask
        cost += float(prices[chosen.pool]) * terms.tick / HOUR
        done += max(terms.tick - warm, 0)
        warm = max(warm - terms.tick, 0)
        if done >= terms.work:
            break
    hours = [sum(each.mode is mode for each in choices) * terms.tick / HOUR for mode in Mode]
    took = len(choices) if done >= terms.work else None
    return Run(cost + egress, egress, took, tuple(choices), starts, hours[1], hours[2])


def is_late(run: Run, terms: Terms) -> bool:
    """Tell whether a run missed its deadline."""
    return run.ticks is None or run.ticks > terms.ticks
