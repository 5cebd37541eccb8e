"""The finite-horizon dynamic programme behind `multi_pool_policy`: the least cost of finishing over one or two tiers.

A state has the regime and age of each tier's capacity, the lease, the place of the checkpoint, and the slack: time left
less work left. A lease that works keeps the slack. Waiting spends a stage of it, and a start spends its overhead.

Invariants:
1. Each hour of slack below zero costs `LATE` times the on-demand price, so that no saving is worth a missed deadline.
2. A table depends only on its key. All jobs with equal keys may share it.
3. A stage is computed when a job first looks at it, from the stages below it. A job that has begun looks at few.
"""

import bisect
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agent.decide.deadline import sized_cache
from agent.decide.deadline.regimes import DOWN, MOST, STATES, UP, Array, Regimes

LATE = 20.0
SPARE = 2
MOST_BYTES = 200_000_000
"""Bytes of tables kept at once. One table takes up to about 100 MB, and a daemon has 1 GB for everything."""
KEPT_HOURS = 2.0
"""Every stage is kept while at most this many hours are left, then one per hour. Costs between kept stages are
interpolated linearly."""
_EXACT = 1e-9
Values = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Tier:
    """Pools that can replace each other: $/h, the chance that another has capacity after a loss, and their number."""

    price: float
    spare: float
    count: int


@dataclass(frozen=True, slots=True)
class TableKey:
    """The key of a table: `overhead`, `stage`, `look`, `left`, `slack` in hours.

    `egress[i][j]` is the cost in dollars of moving from tier i to tier j. `ask` is in $/h. `look` is the time between
    two observations; a hazard strikes at most once in it. `grain` is the number of levels of slack in a stage.
    """

    regimes: Regimes
    tiers: tuple[Tier, ...]
    egress: tuple[tuple[float, ...], ...]
    ask: float
    overhead: float
    stage: float
    look: float
    left: float
    slack: float
    grain: int

    @property
    def has_egress(self) -> bool:
        """Whether the place of the checkpoint matters."""
        return any(map(any, self.egress))


class Chain:
    """The chances of each state of one tier (regime * 4 + age) after a stage, with a lease of ours and without."""

    def __init__(self, key: TableKey, tier: Tier) -> None:
        """Build `free` (states, states), and `keeps` and `loses` of a lease; a row of both together adds up to one."""
        regimes, stage = key.regimes, key.stage
        aged = -math.expm1(-stage / regimes.young_hours)
        shape = (regimes.count, STATES, STATES)
        free, keeps, loses = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        for state in range(STATES):
            a_look = np.minimum(regimes.rates[:, state] * key.look, MOST)
            ends = 1.0 - (1.0 - a_look) ** (stage / key.look)
            old = UP + 1 if state < DOWN else DOWN + 1
            if state < DOWN:
                keeps[:, state, state] += (1.0 - ends) * (1.0 - aged)
                keeps[:, state, old] += (1.0 - ends) * aged
                loses[:, state, UP + 1] += ends * tier.spare
                loses[:, state, DOWN] += ends * (1.0 - tier.spare)
                ends, other = ends * (1.0 - tier.spare), DOWN
            else:
                ends, other = 1.0 - (1.0 - ends) ** tier.count, UP
            free[:, state, other] += ends
            free[:, state, state] += (1.0 - ends) * (1.0 - aged)
            free[:, state, old] += (1.0 - ends) * aged
        turns = regimes.turns(stage)
        self.free, self.keeps, self.loses = (_with_turns(each, turns) for each in (free, keeps, loses))


def _with_turns(chances: Array, turns: Array) -> Values:
    size = chances.shape[0] * STATES
    turned: Values = np.einsum("zij,zw->ziwj", chances, turns).reshape(size, size).astype(np.float32)
    return turned


class Table:
    """Expected cost to the end, by stages left, the lease and its place, the state of each tier, and slack.

    `values[n]`, for each n of `kept` that was reached, is (held, states of the first tier, ... of the last, slack). The
    first axis has no lease by location, then on-demand by location, then each tier. If no move costs anything, there is
    one location.
    """

    def __init__(self, key: TableKey) -> None:
        """Begin with the costs after the last stage."""
        self.key = key
        self.chains = [Chain(key, tier) for tier in key.tiers]
        self.step = key.stage / key.grain
        self.below = math.ceil((key.overhead + key.stage) / self.step) + 1
        levels = self.below + math.ceil(key.slack / self.step) + SPARE
        self.levels: Array = np.arange(-self.below, levels - self.below, dtype=np.float64) * self.step
        tiers = len(key.tiers)
        self.places = list(range(tiers)) if key.has_egress else [0] * tiers
        self.locations = max(self.places) + 1
        shape = (2 * self.locations + tiers, *[len(chain.free) for chain in self.chains], levels)
        late = np.maximum(-self.levels, 0.0) * LATE * key.ask
        self.values: dict[int, Values] = {0: np.broadcast_to(late.astype(np.float32), shape).copy()}
        self.kept = [0, *_kept_stages(key)]

    def reach(self, left: float) -> None:
        """Compute the stages that a job with `left` hours to go looks at, as far as they are unknown."""
        reached, last = self.kept[len(self.values) - 1], self.around(left / self.key.stage)[1] - 1
        values = self.values[reached]
        for stage in range(reached + 1, last + 1):
            values = self._stage(stage, values)
            if stage == self.kept[len(self.values)]:
                self.values[stage] = values

    @property
    def size(self) -> int:
        """Return the bytes of its values."""
        return len(self.values) * self.values[0].nbytes

    def around(self, stages: float) -> tuple[int, int, float]:
        """Return the kept stages before and after a number of stages, and the distance to the second.

        The table keeps the values after the first stage of each.
        """
        place = max(bisect.bisect_right(self.kept, stages - 1.0 + _EXACT) - 1, 0)
        low = self.kept[place]
        high = self.kept[min(place + 1, len(self.kept) - 1)]
        part = (stages - 1.0 - low) / (high - low) if high > low else 0.0
        return low + 1, high + 1, min(max(part, 0.0), 1.0)

    def expect(self, values: Values, spared: int | None = None) -> Values:
        """Return the expectation over the tiers' states after a stage, all but the spared one."""
        for tier, chain in enumerate(self.chains):
            if tier != spared:
                values = _apply(values, chain.free, tier - len(self.chains) - 1)
        return values

    def hours(self, stage: int, slack: Array) -> Array:
        """Return the most hours of the stage that are worked: after the work is finished, nothing is paid."""
        return np.clip(stage * self.key.stage - slack, 0.0, self.key.stage)

    def _stage(self, stage: int, after: Values) -> Values:
        key, places = self.key, self.locations
        worked = self.hours(stage, self.levels).astype(np.float32)
        begun = np.minimum(np.maximum(stage * key.stage - self.levels, 0.0) + key.overhead, key.stage).astype(
            np.float32
        )
        ask = np.float32(key.ask)
        free = self.expect(after[: 2 * places])
        held = [self._up(self._held(after, tier), tier) for tier in range(len(key.tiers))]
        starts = [
            self._started(each) + np.float32(tier.price) * begun for each, tier in zip(held, key.tiers, strict=True)
        ]
        before = np.empty_like(after)
        for place in range(places):
            best, asked = before[place], self._started(free[places + place]) + ask * begun
            np.minimum(_less(free[place], key.grain, self._late), asked, out=best)
            for tier, start in enumerate(starts):
                up = self._up(best, tier)
                move = key.egress[place][tier] if key.has_egress else 0.0
                np.minimum(up, start + np.float32(move), out=up)
            np.minimum(free[places + place] + ask * worked, best, out=before[places + place])
        for tier, stays in enumerate(held):
            mine = before[2 * places + tier]
            mine[...] = before[self.places[tier]]
            up = self._up(mine, tier)
            np.minimum(stays + np.float32(key.tiers[tier].price) * worked, up, out=up)
        before[..., np.searchsorted(self.levels, stage * key.stage - _EXACT) :] = 0.0
        return before

    def _held(self, after: Values, tier: int) -> Values:
        """Return the expectation with a lease in a tier, without the cost of the stage."""
        chain, axis = self.chains[tier], tier - len(self.chains) - 1
        kept = _apply(after[2 * self.locations + tier], chain.keeps, axis)
        lost = _apply(after[self.places[tier]], chain.loses, axis)
        return self.expect(kept + lost, spared=tier)

    @property
    def _late(self) -> float:
        """The cost of one level of slack below the lowest."""
        return LATE * self.key.ask * self.step

    def _started(self, values: Values) -> Values:
        """Return the values after a start has spent its overhead of slack."""
        levels = self.key.overhead / self.step
        whole = int(levels + _EXACT)
        part = np.float32(max(levels - whole, 0.0))
        less = _less(values, whole, self._late)
        if part < _EXACT:
            return less
        mixed: Values = (1 - part) * less
        mixed += part * _less(values, whole + 1, self._late)
        return mixed

    def _up(self, values: Values, tier: int) -> Values:
        """Return a view of the values in which a tier has capacity; its states are by regime and age there."""
        axis = values.ndim - len(self.chains) - 1 + tier
        shape = (*values.shape[:axis], self.key.regimes.count, STATES, *values.shape[axis + 1 :])
        up: Values = values.reshape(shape)[(*[slice(None)] * (axis + 1), slice(DOWN))]
        return up

    def at(self, values: Array, slack: float) -> float:
        """Return the value at a slack between two levels; above the highest level, the value of that level."""
        level = min(slack / self.step + self.below, len(values) - 1 - 1e-3)
        if level < 0:
            return float(values[0]) - level * self._late
        low = int(level)
        return float(values[low] * (low + 1 - level) + values[low + 1] * (level - low))


def _less(values: Values, levels: int, late: float) -> Values:
    """Return the values with this many levels less of slack."""
    if levels == 0:
        return values
    moved = np.empty_like(values)
    moved[..., levels:] = values[..., :-levels]
    moved[..., :levels] = values[..., :1] + (late * np.arange(levels, 0, -1)).astype(np.float32)
    return moved


def _apply(values: Values, chances: Values, axis: int) -> Values:
    """Return the expectation over one axis, (…, states, …)."""
    shape = values.shape
    before, after = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    expected: Values = np.matmul(chances, values.reshape(before, shape[axis], after)).reshape(shape)
    return expected


def _kept_stages(key: TableKey) -> Iterator[int]:
    """Yield the stages whose values are kept, the nearest to the end first."""
    last = math.ceil(key.left / key.stage - _EXACT) + SPARE - 1
    for stage in range(1, last + 1):
        hours, before = stage * key.stage + _EXACT, (stage - 1) * key.stage + _EXACT
        if hours <= KEPT_HOURS or int(hours) > int(before) or stage == last:
            yield stage


def table(key: TableKey, left: float) -> Table:
    """Return the table of a key for a job with `left` hours to go; equal keys share one table while it is kept."""
    found = tables.get(key)
    found.reach(left)
    tables.trim()
    return found


tables = sized_cache.SizedCache(Table, MOST_BYTES)
