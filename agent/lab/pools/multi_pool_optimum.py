"""The exact offline optimum over several pools: what a policy that knew every tick would have paid, on time.

A backward dynamic programme over (tick, what runs and where, slack), with slack = time left in whole ticks - work
left: a tick of work keeps it, a tick of nothing costs a tick of it, a start costs the overhead. A start is taken
whole: what is lost or left before it has worked was never worth its price, given that egress obeys the triangle
inequality. Locations that cost nothing to move between and have one on-demand price are one.
"""

import math
from dataclasses import dataclass

import numpy as np

from agent.lab.pools import play
from agent.lab.pools.pool_terms import HOUR, Course, Grid, PoolsCase, Terms


def cost(case: PoolsCase) -> float:
    """Return the least dollars that are on time; infinite where nothing is."""
    return _Backward(case).solve()


def locations(terms: Terms, course: Course) -> list[int]:
    """Return for each pool the first pool that is the same place: free to move to, the same to move from, one price."""
    egress = terms.egress
    found: list[int] = []
    for pool in range(len(terms.pools)):
        same = [
            first
            for first in dict.fromkeys(found)
            if egress[pool, first] == egress[first, pool] == 0.0
            and np.array_equal(egress[pool], egress[first])
            and np.array_equal(egress[:, pool], egress[:, first])
            and np.array_equal(course.on_demand[:, pool], course.on_demand[:, first])
        ]
        found.append(same[0] if same else pool)
    return found


@dataclass(frozen=True, slots=True)
class _Values:
    """Cost to go at one tick by slack: with nothing running by location (and nowhere yet), running, on demand."""

    idle: dict[int, Grid]
    run: list[Grid]
    ask: dict[int, Grid]


class _Backward:
    """The programme of one case; slack is counted in units of the greatest common divisor of tick and overhead."""

    def __init__(self, case: PoolsCase) -> None:
        self.terms, self.course = case.terms, case.course
        terms = case.terms
        self.place = locations(terms, case.course)
        self.places = sorted(set(self.place))
        self.unit = math.gcd(terms.tick, terms.overhead)
        slack = terms.ticks * terms.tick - terms.work
        self.levels = slack // self.unit + 1
        self.offset = slack % self.unit
        self.warm_ticks = max(math.ceil(terms.overhead / terms.tick), 1)
        self.dear = np.full(max(self.levels, 0), np.inf)

    def solve(self) -> float:
        """Return the value of the first tick."""
        if self.levels <= 0:
            return math.inf
        ahead = [self._end()]
        for tick in reversed(range(self.terms.ticks)):
            ahead.insert(0, self._step(tick, ahead))
            del ahead[self.warm_ticks + 1 :]
        return float(ahead[0].idle[-1][-1])

    def _end(self) -> _Values:
        done = np.zeros(self.levels)
        return _Values(
            dict.fromkeys([*self.places, -1], done), [done] * len(self.place), dict.fromkeys(self.places, done)
        )

    def _less(self, values: Grid, seconds: int) -> Grid:
        """Return the values at so much less slack; infinite where none is left."""
        shift = seconds // self.unit
        if shift == 0:
            return values
        moved = self.dear.copy()
        moved[shift:] = values[: self.levels - shift] if shift < self.levels else values[:0]
        return moved

    def _step(self, tick: int, ahead: list[_Values]) -> _Values:
        starts, asks = self._starts(tick, ahead)
        idle = {where: self._idle(tick, where, ahead[0].idle[where], starts, asks) for where in [*self.places, -1]}
        done = self._first_done(tick)
        run: list[Grid] = []
        for pool, place in enumerate(self.place):
            if not self.course.up[tick, pool]:
                run.append(idle[place])
                continue
            price = float(self.course.spot[tick, pool]) * self.terms.tick / HOUR
            stays = ahead[0].run[pool] + price
            run.append(self._with_end(np.minimum(stays, idle[place], out=stays), done))
        ask: dict[int, Grid] = {}
        for place in self.places:
            stays = ahead[0].ask[place] + float(self.course.on_demand[tick, place]) * self.terms.tick / HOUR
            ask[place] = self._with_end(np.minimum(stays, idle[place], out=stays), done)
        return _Values(idle, run, ask)

    def _idle(self, tick: int, where: int, after: Grid, starts: dict[int, Grid], asks: dict[int, Grid]) -> Grid:
        """Return the best of waiting and of every start from a location."""
        best = self._less(after, self.terms.tick)
        best = best.copy() if best is after else best
        for place, start in starts.items():
            np.minimum(best, start + self._egress(where, place), out=best)
        target = self.place[play.fallback(self.course.on_demand[tick], where)]
        if target in asks:
            np.minimum(best, asks[target] + self._egress(where, target), out=best)
        return self._with_end(best, self._first_done(tick))

    def _starts(self, tick: int, ahead: list[_Values]) -> tuple[dict[int, Grid], dict[int, Grid]]:
        """Return by location what the best start in one of its pools costs from here, and a start on demand."""
        until = tick + self.warm_ticks
        if until > self.terms.ticks:
            return {}, {}
        after, hours = ahead[self.warm_ticks - 1], self.terms.tick / HOUR
        starts: dict[int, Grid] = {}
        for pool in np.flatnonzero(self.course.up[tick:until].all(axis=0)).tolist():
            paid = float(self.course.spot[tick:until, pool].sum()) * hours
            start = self._less(after.run[pool], self.terms.overhead) + paid
            place = self.place[pool]
            starts[place] = np.minimum(starts[place], start) if place in starts else start
        asks = {
            place: self._less(after.ask[place], self.terms.overhead)
            + float(self.course.on_demand[tick:until, place].sum()) * hours
            for place in self.places
        }
        return starts, asks

    def _egress(self, where: int, place: int) -> float:
        return 0.0 if where < 0 else float(self.terms.egress[where, place])

    def _first_done(self, tick: int) -> int:
        """Return the first level of slack at which all work is done."""
        left = (self.terms.ticks - tick) * self.terms.tick
        return max(-(-(left - self.offset) // self.unit), 0)

    @staticmethod
    def _with_end(values: Grid, done: int) -> Grid:
        values[done:] = 0.0
        return values
