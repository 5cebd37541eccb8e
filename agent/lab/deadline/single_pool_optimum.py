"""The exact offline optimum of one job over one window: what could have been paid at least, everything known before.

A dynamic programme backwards over ticks. The state is the tenure that stands, the overhead that its start has yet to
spend, and the work left, in units of the greatest common divisor of all spans, so nothing is rounded. Of the work left
only what can be reached and can still be done in time is looked at: at second t between work - t and allowed - t.
Lateness costs infinitely much. Same semantics as `ticks`.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agent.domain.market.tenure import Tenure
from agent.lab.deadline.deadline_ticks import Setting
from agent.lab.deadline.window import Window

Costs = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Grid:
    """Spans in units: a tick, the work, the allowed time; and the overheads that can be left at a tick's beginning."""

    gap: int
    work: int
    allowed: int
    warmings: tuple[int, ...]

    @classmethod
    def of(cls, setting: Setting, gap: int) -> "_Grid":
        """Return the grid of a setting; the last of `warmings` is that of a fresh start, the first is none."""
        unit = math.gcd(gap, setting.work, setting.allowed, setting.overhead)
        carried = range(setting.overhead, 0, -gap)
        spans = sorted({0, setting.overhead, *carried})
        return cls(gap // unit, setting.work // unit, setting.allowed // unit, tuple(span // unit for span in spans))

    def band(self, tick: int) -> slice:
        """Return the places of the work left that matters at a tick; place `gap` is no work left."""
        least = max(self.work - tick * self.gap, 1)
        most = min(self.work, self.allowed - tick * self.gap)
        return slice(self.gap + least, self.gap + max(most + 1, least))


@dataclass(slots=True)
class _Costs:
    """Dollars to the end by work left: when nothing stands, and for both tenures by the place of the warming."""

    nothing: Costs
    on_demand: list[Costs]
    spot: list[Costs]


def cost(window: Window, setting: Setting) -> float:
    """Return the least dollars at which the job is done in time; infinite where that is impossible."""
    grid = _Grid.of(setting, window.gap_seconds)
    later = _end(grid)
    for tick in range(_ticks(grid, window) - 1, -1, -1):
        later = _earlier(grid, window, tick, later)
    return float(later.nothing[grid.gap + grid.work])


def choices(window: Window, setting: Setting) -> tuple[Tenure | None, ...] | None:
    """Return what to hold in each tick to pay the least, or nothing where the job cannot be done in time.

    Costs are kept at every so many ticks alone and made again in between: those of all ticks would fill the memory.
    """
    grid = _Grid.of(setting, window.gap_seconds)
    ticks = _ticks(grid, window)
    step = math.isqrt(ticks) + 1
    kept, later = {}, _end(grid)
    for tick in range(ticks - 1, -1, -1):
        if (tick + 1) % step == 0 or tick + 1 == ticks:
            kept[tick + 1] = later
        later = _earlier(grid, window, tick, later)
    if not math.isfinite(later.nothing[grid.gap + grid.work]):
        return None
    at, held = _At(grid.gap + grid.work), []
    for first in range(0, ticks, step):
        for tick, costs in enumerate(_between(grid, window, first, min(first + step, ticks), kept), first):
            held.append(_chosen(grid, window, tick, costs, at))
            if at.todo <= grid.gap:
                return tuple(held)
    return tuple(held)


@dataclass(slots=True)
class _At:
    """Where the best run stands: the place of the work left, the tenure, the place of the warming left."""

    todo: int
    tenure: Tenure | None = None
    warming: int = 0


def _ticks(grid: _Grid, window: Window) -> int:
    """Return how many ticks matter."""
    return min(-(-grid.allowed // grid.gap), len(window.is_up))


def _between(grid: _Grid, window: Window, first: int, end: int, kept: dict[int, _Costs]) -> list[_Costs]:
    """Return the costs after each tick of a stretch, from those kept at its end."""
    found = [kept[end]]
    for tick in range(end - 1, first, -1):
        found.append(_earlier(grid, window, tick, found[-1]))
    return found[::-1]


def _chosen(grid: _Grid, window: Window, tick: int, later: _Costs, at: _At) -> Tenure | None:
    """Return the cheapest choice at a tick and let it pass; what stands stays where all is alike."""
    usable = min(grid.gap, grid.allowed - tick * grid.gap)
    hours = window.gap_seconds / 3600
    costs = {Tenure.ON_DEMAND: later.on_demand, **({Tenure.INTERRUPTIBLE: later.spot} if window.is_up[tick] else {})}
    prices = {Tenure.ON_DEMAND: window.on_demand_prices[tick], Tenure.INTERRUPTIBLE: window.spot_prices[tick]}
    ways: dict[Tenure | None, tuple[float, int, int]] = {None: (float(later.nothing[at.todo]), at.todo, 0)}
    for tenure, each in costs.items():
        warming = grid.warmings[at.warming] if tenure is at.tenure else grid.warmings[-1]
        after, todo = grid.warmings.index(max(warming - grid.gap, 0)), at.todo - max(usable - warming, 0)
        ways[tenure] = prices[tenure] * hours + float(each[after][max(todo, 0)]), max(todo, 0), after
    best = min(ways, key=lambda tenure: (ways[tenure][0], tenure is not at.tenure))
    at.tenure, (_, at.todo, at.warming) = best, ways[best]
    return best


def _end(grid: _Grid) -> _Costs:
    """Return the costs after the last tick: nothing where no work is left, infinite elsewhere."""
    ended = np.full(grid.gap + grid.work + 1, np.inf)
    ended[: grid.gap + 1] = 0.0
    return _Costs(ended, [ended] * len(grid.warmings), [ended] * len(grid.warmings))


def _earlier(grid: _Grid, window: Window, tick: int, later: _Costs) -> _Costs:
    """Return the costs at a tick from those at the next."""
    band = grid.band(tick)
    hours = window.gap_seconds / 3600
    nothing = later.nothing[band]
    on_demand = _goes_on(grid, tick, later.on_demand, window.on_demand_prices[tick] * hours)
    spot = _goes_on(grid, tick, later.spot, window.spot_prices[tick] * hours) if window.is_up[tick] else []
    without_spot = np.minimum(nothing, on_demand[-1])
    from_on_demand = np.minimum(nothing, spot[-1]) if spot else nothing
    best = np.minimum(without_spot, spot[-1]) if spot else without_spot
    empty = _filled(grid, band, best)
    return _Costs(
        empty,
        [_filled(grid, band, np.minimum(from_on_demand, each)) for each in on_demand[:-1]] + [empty],
        [_filled(grid, band, np.minimum(without_spot, each)) for each in spot[:-1]] + [empty]
        if spot
        else [empty] * len(grid.warmings),
    )


def _goes_on(grid: _Grid, tick: int, later: list[Costs], price: float) -> list[Costs]:
    """Return, for each warming, the costs of this tick in a tenure and of all after it; the last is a fresh start."""
    band, made = grid.band(tick), []
    # A tick that the deadline cuts short still pays whole, but only what is done before the deadline counts.
    usable = min(grid.gap, grid.allowed - tick * grid.gap)
    for warming in grid.warmings:
        done = max(usable - warming, 0)
        after = grid.warmings.index(max(warming - grid.gap, 0))
        made.append(price + later[after][band.start - done : band.stop - done])
    return made


def _filled(grid: _Grid, band: slice, costs: Costs) -> Costs:
    """Return the costs of a band among all: none where no work is left, infinite outside."""
    whole = np.full(grid.gap + grid.work + 1, np.inf)
    whole[: grid.gap + 1] = 0.0
    whole[band] = costs
    return whole
