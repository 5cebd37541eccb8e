"""The exact offline optimum: the least cost in time of a policy that knew every tick, and its choices.

A backward dynamic programme over (tick, tenure and place, slack), with slack = time left - work left. A tick of work
keeps the slack, an idle tick costs a tick of it, and a start costs the overhead. A start is taken whole: an instance
that is lost or left before it has worked is never worth its price, because egress obeys the triangle inequality. Places
with free moves between them and one on-demand price count as one. The semantics are those of `tick_engine`.
"""

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from agent.domain.market.tenure import Tenure
from agent.lab.jobs.job_terms import HOUR, Course, Grid, JobCase, Terms
from agent.lab.jobs.tick_engine import NOTHING, Choice, fallback


def cost(case: JobCase) -> float:
    """Return the least dollars of a run in time, or infinity if none is in time."""
    back = _Backward(case)
    if back.levels <= 0:
        return math.inf
    _, ahead = deque(back.sweep(0, back.ticks, back.end()), maxlen=1).pop()
    return back.least(ahead)


def choices(case: JobCase) -> tuple[Choice, ...] | None:
    """Return the choice of each tick that costs the least, until the work is done; None if no run is in time.

    Only the values of some ticks are kept. Those between are computed again, because all of them would fill the memory.
    """
    back = _Backward(case)
    if back.levels <= 0:
        return None
    step, end = math.isqrt(back.ticks) + 1, back.end()
    kept = {tick: ahead for tick, ahead in back.sweep(0, back.ticks, end) if tick % step == 0} | {back.ticks: end}
    if not math.isfinite(back.least(kept[0])):
        return None
    walk = _Walk(back)
    held: list[Choice] = []
    for begin in range(0, back.ticks, step):
        until = min(begin + step, back.ticks)
        later = {until: kept[until], **dict(back.sweep(begin, until, kept[until]))}
        for tick in range(begin, until):
            if walk.is_done(tick):
                return tuple(held)
            held.append(walk.choose(tick, later[tick + 1]))
    return tuple(held)


def locations(terms: Terms, course: Course) -> list[int]:
    """Return for each pool the first pool of the same place: free moves between them, equal egress, one price."""
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
    """Cost to go at one tick by slack: with nothing running by place (-1: nowhere yet), running by pool, on demand."""

    idle: dict[int, Grid]
    run: list[Grid]
    ask: dict[int, Grid]


_Ahead = list[_Values]
"""The values of a tick, and of the ticks after it that a start may reach."""


class _Backward:
    """The programme of one case. The unit of slack is the greatest common divisor of tick and overhead."""

    def __init__(self, case: JobCase) -> None:
        self.terms, self.course = case.terms, case.course
        terms = case.terms
        self.place = locations(terms, case.course)
        self.places = sorted(set(self.place))
        self.unit = math.gcd(terms.tick, terms.overhead)
        slack = terms.counted - terms.work
        self.slack = slack
        self.levels = slack // self.unit + 1
        self.offset = slack % self.unit
        self.ticks = min(-(-terms.counted // terms.tick), len(case.course.up))
        self.warm_ticks = max(math.ceil(terms.overhead / terms.tick), 1)
        self.dear = np.full(max(self.levels, 0), np.inf)

    def least(self, ahead: _Ahead) -> float:
        """Return the least cost at the first tick, from the values there."""
        return float(ahead[0].idle[-1][-1])

    def end(self) -> _Ahead:
        """Return the values after the last tick: 0 if no work is left, else infinite."""
        done = self._with_end(self.dear.copy(), self.first_done(self.ticks))
        idle = dict.fromkeys([*self.places, -1], done)
        return [_Values(idle, [done] * len(self.place), dict.fromkeys(self.places, done))]

    def sweep(self, begin: int, until: int, ahead: _Ahead) -> Iterator[tuple[int, _Ahead]]:
        """Yield each tick before `until` down to `begin` with its values, from the values of `until`."""
        for tick in range(until - 1, begin - 1, -1):
            ahead = [self._step(tick, ahead), *ahead[: self.warm_ticks]]
            yield tick, ahead

    def first_done(self, tick: int) -> int:
        """Return the first level of slack at which all work is done."""
        left = self.terms.counted - tick * self.terms.tick
        return max(-(-(left - self.offset) // self.unit), 0)

    def egress(self, where: int, place: int) -> float:
        """Return the dollars of moving the checkpoint, or 0 before the first one."""
        return 0.0 if where < 0 else float(self.terms.egress[where, place])

    def price(self, tick: int, choice: Choice) -> float:
        """Return the dollars of a tick of this choice."""
        prices = self.course.spot if choice.tenure is Tenure.INTERRUPTIBLE else self.course.on_demand
        return float(prices[tick, choice.pool]) * self.terms.tick / HOUR

    def start(self, tick: int, choice: Choice) -> float:
        """Return the dollars of the ticks that a start takes."""
        prices = self.course.spot if choice.tenure is Tenure.INTERRUPTIBLE else self.course.on_demand
        return float(prices[tick : tick + self.warm_ticks, choice.pool].sum()) * (self.terms.tick / HOUR)

    def may_start(self, tick: int) -> list[Choice]:
        """Return the starts at a tick that last until they are warm: pools, then on-demand by place."""
        until = tick + self.warm_ticks
        if until > self.ticks:
            return []
        open_ = np.flatnonzero(self.course.up[tick:until].all(axis=0)).tolist()
        asks = [Choice(Tenure.ON_DEMAND, place) for place in self.places]
        return [*(Choice(Tenure.INTERRUPTIBLE, pool) for pool in open_), *asks]

    def target(self, tick: int, where: int) -> int:
        """Return the place where on-demand is rented at a tick."""
        return self.place[fallback(self.course.rows[tick][2], where)]

    def _less(self, values: Grid, seconds: int) -> Grid:
        """Return the values with slack reduced by these seconds; infinite if none is left."""
        shift = seconds // self.unit
        if shift == 0:
            return values
        moved = self.dear.copy()
        moved[shift:] = values[: self.levels - shift] if shift < self.levels else values[:0]
        return moved

    def _step(self, tick: int, ahead: _Ahead) -> _Values:
        starts, asks = self._starts(tick, ahead)
        idle = {where: self._idle(tick, where, ahead[0].idle[where], starts, asks) for where in [*self.places, -1]}
        done = self.first_done(tick)
        run: list[Grid] = []
        for pool, place in enumerate(self.place):
            if not self.course.up[tick, pool]:
                run.append(idle[place])
                continue
            stays = ahead[0].run[pool] + self.price(tick, Choice(Tenure.INTERRUPTIBLE, pool))
            run.append(self._with_end(np.minimum(stays, idle[place], out=stays), done))
        ask: dict[int, Grid] = {}
        for place in self.places:
            stays = ahead[0].ask[place] + self.price(tick, Choice(Tenure.ON_DEMAND, place))
            ask[place] = self._with_end(np.minimum(stays, idle[place], out=stays), done)
        return _Values(idle, run, ask)

    def _idle(self, tick: int, where: int, after: Grid, starts: dict[int, Grid], asks: dict[int, Grid]) -> Grid:
        """Return the best of waiting and of every start from a place."""
        best = self._less(after, self.terms.tick)
        best = best.copy() if best is after else best
        for place, start in starts.items():
            np.minimum(best, start + self.egress(where, place), out=best)
        target = self.target(tick, where)
        if target in asks:
            np.minimum(best, asks[target] + self.egress(where, target), out=best)
        return self._with_end(best, self.first_done(tick))

    def _starts(self, tick: int, ahead: _Ahead) -> tuple[dict[int, Grid], dict[int, Grid]]:
        """Return by place the cost of the best start in one of its pools, and of a start on demand."""
        starts: dict[int, Grid] = {}
        asks: dict[int, Grid] = {}
        for choice in self.may_start(tick):
            after, place = ahead[self.warm_ticks - 1], self.place[choice.pool]
            if choice.tenure is Tenure.ON_DEMAND:
                asks[place] = self._less(after.ask[place], self.terms.overhead) + self.start(tick, choice)
                continue
            start = self._less(after.run[choice.pool], self.terms.overhead) + self.start(tick, choice)
            starts[place] = np.minimum(starts[place], start) if place in starts else start
        return starts, asks

    @staticmethod
    def _with_end(values: Grid, done: int) -> Grid:
        values[done:] = 0.0
        return values


class _Walk:
    """Goes forward through the programme along the least cost."""

    def __init__(self, back: _Backward) -> None:
        self._back = back
        self._slack = back.slack
        self._runs, self._where = NOTHING, -1
        self._begun_until = 0

    def is_done(self, tick: int) -> bool:
        """Whether all work is done at the beginning of a tick."""
        return self._level(self._slack) >= self._back.first_done(tick) and tick >= self._begun_until

    def choose(self, tick: int, after: _Ahead) -> Choice:
        """Return the choice of a tick, and let the tick pass. `after` are the values of the next tick."""
        if tick < self._begun_until:
            return self._runs
        back = self._back
        ways = {NOTHING: self._at(after[0].idle[self._where], back.terms.tick)}
        for choice in back.may_start(tick):
            ways[choice] = self._start(tick, choice, after)
        if self._goes_on(tick):
            ways[self._runs] = back.price(tick, self._runs) + self._at(self._running(self._runs, after[0]), 0)
        best = min(ways, key=lambda choice: (ways[choice], choice != self._runs))
        if best == NOTHING:
            self._slack -= back.terms.tick
        elif best != self._runs or not self._goes_on(tick):
            self._slack -= back.terms.overhead
            self._begun_until, self._where = tick + back.warm_ticks, back.place[best.pool]
        self._runs = best
        return best

    def _goes_on(self, tick: int) -> bool:
        runs = self._runs
        return runs.tenure is Tenure.ON_DEMAND or (
            runs.tenure is Tenure.INTERRUPTIBLE and bool(self._back.course.up[tick, runs.pool])
        )

    def _start(self, tick: int, choice: Choice, after: _Ahead) -> float:
        back, place = self._back, self._back.place[choice.pool]
        if choice.tenure is Tenure.ON_DEMAND and back.target(tick, self._where) != place:
            return math.inf
        values = self._running(choice, after[back.warm_ticks - 1])
        return back.start(tick, choice) + back.egress(self._where, place) + self._at(values, back.terms.overhead)

    def _running(self, choice: Choice, values: _Values) -> Grid:
        return values.run[choice.pool] if choice.tenure is Tenure.INTERRUPTIBLE else values.ask[choice.pool]

    def _at(self, values: Grid, spent: int) -> float:
        level = self._level(self._slack - spent)
        return float(values[level]) if level >= 0 else math.inf

    def _level(self, slack: int) -> int:
        return (slack - self._back.offset) // self._back.unit
