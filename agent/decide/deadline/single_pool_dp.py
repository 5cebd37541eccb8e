"""The expected cost of finishing a job in time, for each next choice: a finite-horizon dynamic programme.

The state has the hours left, the slack (hours left less work left), the tenure held, and the model of the pool. It also
has whether capacity is there, and for how long. In each step capacity may be lost or come back by the model's hazards.
A start spends its overhead of slack. A late end costs infinitely much, so the deadline is hard. Formulation: strategies
over bins of age with a hard deadline, as in finite-horizon semi-Markov decision processes (Puterman, "Markov Decision
Processes", 1994, chapters 4 and 11); the models of a pool are weighed by their posterior after each is solved (QMDP:
Littman, Cassandra, Kaelbling 1995).

Costs are in hours of on-demand: dollars over the on-demand price.
"""

import bisect
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agent.decide.deadline.hazards import Hazards

Costs = npt.NDArray[np.float32]

NEVER = np.float32(1e9)
"""An infinite cost."""
MOST = 1e4
"""No job costs so many hours of on-demand. A choice that does may be late in some course of events and is never
made."""
LEAST_CHANCE = 2e-5
"""Least chance of losing capacity in a step. `NEVER` times this is over `MOST`, so the deadline is hard for any
pool."""
CLOSE, KEPT = 12, 4
"""Every step is kept while at most `CLOSE` are left, then every `KEPT`th: the differences between choices change
slowly."""
GROWTH = 1.06
"""The factor from one node of slack to the next, above the dense nodes."""
WAIT, ON_DEMAND, INTERRUPTIBLE = range(3)
"""Indices of the choices in the first axis of the costs."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The key of a table: spans in hours, `ratio` the interruptible price over the on-demand price.

    `span` is the most hours left, and `slack` the most slack, that the table covers.
    """

    step: float
    span: float
    slack: float
    start_on_demand: float
    start_interruptible: float
    ratio: float


@dataclass(frozen=True, eq=False)
class CostTable:
    """Expected costs to the end: `up` (steps, 3, bins, nodes, models) with capacity, `down` (steps, 2, ...) without."""

    setting: Setting
    nodes: tuple[float, ...]
    up: Costs
    down: Costs

    def at(self, left: float, *, is_up: bool, age_bin: int) -> Costs:
        """Return the costs (choices, nodes, models) with `left` hours to go and capacity of this age."""
        kept = self.up if is_up else self.down
        steps = min(_place(left / self.setting.step), len(kept) - 1.0)
        before = int(steps + _SHARE)
        share = np.float32(steps - before)
        earlier: Costs = kept[before, :, age_bin]
        return earlier if share < _SHARE else _mixed(share, kept[before + 1, :, age_bin], earlier)

    def cost(self, of: Costs, slack: float, weights: Costs) -> float:
        """Return the expected cost from those of one choice (nodes, models); infinite if it could be late."""
        node = min(bisect.bisect_right(self.nodes, slack + _ROUNDING) - 1, len(self.nodes) - 2)
        low, high = (of[node : node + 2] @ weights).tolist()
        if low > MOST:
            return math.inf
        here = self.nodes[node]
        found: float = low + (high - low) * min((slack - here) / (self.nodes[node + 1] - here), 1.0)
        return found


def build(setting: Setting, hazards: Hazards) -> CostTable:
    """Return the expected costs under each model of a pool; about a third of a second for 70 hours."""
    return _Programme(setting, hazards).solved()


class _Programme:
    """The backward steps over arrays (doing, bins, nodes, models)."""

    def __init__(self, setting: Setting, hazards: Hazards) -> None:
        self._setting, step = setting, setting.step
        self._nodes = _nodes(setting)
        self._loses = np.maximum(_chance(hazards.loss_rates * step), np.float32(LEAST_CHANCE))
        self._returns = _chance(hazards.return_rates * step)
        widths = np.diff((*hazards.edges, np.inf))
        self._ages: Costs = np.minimum(step / widths, 1.0).astype(np.float32)[:, None, None]
        self._waits = _Shift(self._nodes, step)
        self._on_demand = _Shift(self._nodes, setting.start_on_demand)
        self._interruptible = _Shift(self._nodes, setting.start_interruptible)
        self._shape = (len(hazards.edges), len(self._nodes), len(hazards.factors))

    def solved(self) -> CostTable:
        """Return the costs of each choice at the kept steps."""
        kept = math.ceil(_place(self._setting.span / self._setting.step) - _SHARE) + 1
        steps = kept - 1 if kept - 1 <= CLOSE else CLOSE + (kept - 1 - CLOSE) * KEPT
        up = np.empty((kept, 3, *self._shape), np.float32)
        down = np.empty((kept, 2, *self._shape), np.float32)
        held_up, held_down = np.zeros((3, *self._shape), np.float32), np.zeros((2, *self._shape), np.float32)
        up[0] = down[0] = 0.0
        for step in range(1, steps + 1):
            does_up, does_down = self._does(held_up, held_down)
            done = int(np.searchsorted(self._nodes, step * self._setting.step - _ROUNDING))
            for costs in (does_up, does_down):
                costs[:, :, done:] = 0.0
            place = _place(step)
            if place == int(place):
                up[int(place)], down[int(place)] = does_up, does_down
            held_up, held_down = self._best(does_up, does_down)
        return CostTable(self._setting, tuple(self._nodes.tolist()), up, down)

    def _does(self, up: Costs, down: Costs) -> tuple[Costs, Costs]:
        """Return the costs of each choice for a step, without a start, from the costs of the tenures held after it."""
        lost = down[(WAIT, ON_DEMAND, WAIT), :1]  # after a loss of interruptible capacity nothing is held
        after_up = _mixed(self._loses, lost, self._aged(up))
        after_down = _mixed(self._returns, up[: len(down), :1], self._aged(down))
        after_up[INTERRUPTIBLE] += np.float32(self._setting.step * self._setting.ratio)
        for after in (after_up, after_down):
            after[WAIT] = self._waits.apply(after[WAIT])
            after[ON_DEMAND] += np.float32(self._setting.step)
            np.copyto(after, NEVER, where=after > MOST)
        return after_up, after_down

    def _best(self, up: Costs, down: Costs) -> tuple[Costs, Costs]:
        """Return the least costs by the tenure held: none, on-demand, interruptible."""
        starts_up, starts_down = self._on_demand.apply(up[ON_DEMAND]), self._on_demand.apply(down[ON_DEMAND])
        bids = self._interruptible.apply(up[INTERRUPTIBLE])
        held_up, held_down = np.empty_like(up), np.empty_like(down)
        unbid = np.minimum(up[WAIT], starts_up)
        np.minimum(unbid, bids, out=held_up[0])
        np.minimum(up[WAIT], up[ON_DEMAND], out=held_up[1])
        np.minimum(held_up[1], bids, out=held_up[1])
        np.minimum(unbid, up[INTERRUPTIBLE], out=held_up[2])
        np.minimum(down[WAIT], starts_down, out=held_down[0])
        np.minimum(down[WAIT], down[ON_DEMAND], out=held_down[1])
        return held_up, held_down

    def _aged(self, costs: Costs) -> Costs:
        aged = np.empty_like(costs)
        younger = aged[:, :-1]
        np.subtract(costs[:, 1:], costs[:, :-1], out=younger)
        younger *= self._ages[:-1]
        younger += costs[:, :-1]
        aged[:, -1] = costs[:, -1]
        return aged


class _Shift:
    """Costs after some slack is spent, interpolated linearly between nodes; infinite below zero slack."""

    def __init__(self, nodes: npt.NDArray[np.float64], hours: float) -> None:
        wanted = nodes - hours
        # The nodes rise, so the late ones come first.
        self._late = int(np.count_nonzero(wanted < -_ROUNDING))
        self._is_same = hours == 0
        self._low = np.clip(np.searchsorted(nodes, wanted + _ROUNDING, "right") - 1, 0, len(nodes) - 2)
        share = (wanted - nodes[self._low]) / (nodes[self._low + 1] - nodes[self._low])
        share[np.abs(share) < _SHARE] = 0.0
        self._share: Costs = np.clip(share, 0.0, 1.0).astype(np.float32)[:, None]

    def apply(self, costs: Costs) -> Costs:
        """Return costs (..., nodes, models) after the slack is spent."""
        if self._is_same:
            return costs
        low = costs.take(self._low, axis=-2)
        shifted: Costs = costs.take(self._low + 1, axis=-2)
        shifted -= low
        shifted *= self._share
        shifted += low
        np.copyto(shifted, NEVER, where=low > MOST)
        shifted[..., : self._late, :] = NEVER
        return shifted


def _place(steps: float) -> float:
    """Return the place of a number of steps left among the kept steps."""
    return steps if steps <= CLOSE else CLOSE + (steps - CLOSE) / KEPT


def _mixed(share: Costs | np.float32, event: Costs, none: Costs) -> Costs:
    """Return `share` of the first costs plus the rest of the second."""
    mixed: Costs = event - none
    mixed *= share
    mixed += none
    return mixed


def _nodes(setting: Setting) -> npt.NDArray[np.float64]:
    """Return the nodes of slack: dense where a start may no longer fit, sparse above."""
    dense = np.arange(0, 6 * setting.step + _ROUNDING, setting.step / 10)
    count = max(math.ceil(math.log(max(setting.slack, 2 * dense[-1]) / dense[-1]) / math.log(GROWTH)), 1)
    sparse = dense[-1] * GROWTH ** np.arange(1, count + 1)
    return np.concatenate((dense, sparse)).round(9)


def _chance(expected: npt.NDArray[np.float64]) -> Costs:
    """Return the chance of at least one event, (bins, 1, models)."""
    return -np.expm1(-expected).astype(np.float32)[:, None, :]


_ROUNDING = 1e-9
_SHARE = 1e-4
