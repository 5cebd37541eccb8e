"""Where to run a deadline job that may use several pools: on one pool, on demand, or nowhere for now.

Pools are one place if a checkpoint moves between them for free and their prices are nearly equal. The place of the
checkpoint is one tier, and all other places are the second. A finite-horizon programme (`multi_pool_dp`) over the
regimes of both tiers gives the expected cost of each choice to the end, with moves and egress. If there is no
checkpoint yet, every place is tried as its place.

Invariants:
1. While on-demand can still be in time, no choice makes it late, whatever happens to capacity.
2. The choice depends only on the job's state and the pools.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agent.decide.deadline import multi_pool_dp, regimes
from agent.decide.deadline.regimes import Array
from agent.domain.market.tenure import Tenure

FINE, COARSE = (1 / 6, 432, 144, 1.1), (1 / 3, 180, 90, 1.02)
"""The shortest stage in hours, the most stages of a job's span, the most stages of its slack, and the factor between
two prices with separate tables. A longer span or more slack makes stages longer. `FINE` is used if no move costs
anything. If moves cost, tables are larger and more numerous, and a difference of a few cents an hour pays for a
move."""
SPARE_STEP, SPARE_STEPS = 0.3, 3
"""The chance that another pool of a tier has capacity when the lease is lost is rounded to `SPARE_STEP`, up to
`SPARE_STEPS` steps."""
SPARE_HOURS, SPARE_HOURS_AWAY = 4.0, 2.0
"""The loss is assumed to come after this many hours at most; for a tier without capacity now, after the second
figure."""
ASK_STEP = 1.02
"""The factor between two on-demand prices with separate tables: live, the cheapest ask moves by a cent all day."""
OVERHEAD_STEP, OVERHEAD_PARTS = 1 / 20, 16
"""The overhead of later starts is rounded up to this many hours, or to this part of the power of two below it: live, it
grows with the work since the last checkpoint, or with all work. The overheads of the lab are such multiples."""
LEAST_LOSSES = 1e-3
LEAST_RATE = 0.1
"""A move's egress is spread over ten hours at most."""
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """A pool at one look: its interruptible $/h, the belief about it, and dollars to move the checkpoint there."""

    price: float
    belief: regimes.Belief
    egress: float = 0.0


@dataclass(frozen=True, slots=True)
class JobState:
    """The state of a job, in hours: time until the deadline, work left, the tenure that runs, and its pool.

    Pools are indices, -1 for none. `where` is the pool of the checkpoint. `warming` is the remaining time of the
    running lease's start, `gap` the time until the next look. `span` and `room` are the time and the slack that the job
    began with, or the present ones if they are more. `look` is the cost in dollars of the next look without a lease; on
    most markets looks are free.
    """

    left: float
    todo: float
    tenure: Tenure | None
    pool: int
    where: int
    warming: float
    overhead: float
    gap: float
    span: float
    room: float
    look: float = 0.0


@dataclass(frozen=True, slots=True)
class MultiPoolParams:
    """The tunable numbers.

    Waiting must save at least `wait_gain` hours of on-demand: if it saves nothing, work done early is safer. A pool
    belongs to a place if it costs at most `near_price` (a share) more than the place's cheapest pool. From now on a
    regime is assumed to last `weather_hours` on average.
    """

    wait_gain: float = 0.002
    near_price: float = 0.1
    weather_hours: float = 24.0


SHIPPED = MultiPoolParams()


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice until the next look; `costs` are the expected dollars to finish, by (tenure, pool)."""

    tenure: Tenure | None
    pool: int
    costs: Mapping[tuple[Tenure | None, int], float]


@dataclass(frozen=True, slots=True)
class _Tier:
    """A group of pools, and the one that represents them now."""

    pools: tuple[int, ...]
    best: int


def forced_choice(at: JobState) -> tuple[Tenure, int] | None:
    """Return the tenure and pool that the deadline forces now, or None if there is a choice; on-demand has pool -1.

    If another start and a fall-back after it no longer fit, only the running lease may go on. If even the start of a
    fall-back only just fits, the lease may go on only if it is warmed up (the last resort of Uniform Progress, NSDI
    2024).
    """
    looks = math.floor(at.left / at.gap + _ROUNDING)
    if _looks(at.todo + 2 * at.overhead, at) < looks:
        return None
    holds = at.tenure is Tenure.INTERRUPTIBLE
    if holds and (_looks(at.todo + at.overhead, at) < looks or at.warming <= 0):
        return Tenure.INTERRUPTIBLE, at.pool
    return Tenure.ON_DEMAND, -1


def _looks(hours: float, at: JobState) -> int:
    return math.ceil(hours / at.gap - _ROUNDING)


def choose(
    at: JobState,
    pools: Sequence[Pool],
    ask: float,
    egress: Array,
    known: regimes.Regimes = regimes.SHIPPED,
    numbers: MultiPoolParams = SHIPPED,
) -> Choice:
    """Return the choice until the next look; `egress` (pools, pools) is in dollars, `ask` in $/h on demand."""
    forced = forced_choice(at)
    if forced is not None:
        return Choice(*forced, {})
    known = regimes.lasting(known, numbers.weather_hours)
    found = places([pool.price for pool in pools], egress, numbers.near_price)
    costs: dict[tuple[Tenure | None, int], float] = {}
    for tiers in _ways(at, found, pools, ask, known):
        for choice, cost in _costs(at, tiers, pools, ask, egress, known).items():
            costs[choice] = min(cost, costs.get(choice, math.inf))
    runs = (at.tenure, at.pool if at.tenure is Tenure.INTERRUPTIBLE else -1)
    gain = numbers.wait_gain * ask + at.look
    best = min(costs, key=lambda each: (costs[each] + (gain if each[0] is None else 0.0), each != runs))
    return Choice(*best, costs)


def places(prices: Sequence[float], egress: Array, near: float = SHIPPED.near_price) -> list[tuple[int, ...]]:
    """Return the pools by place.

    Within a place moves are free both ways, and prices differ by at most `near` (a share).
    """
    found: list[tuple[int, ...]] = []
    for pool in sorted(range(len(prices)), key=lambda each: prices[each]):
        alike = (
            number
            for number, (first, *_) in enumerate(found)
            if egress[pool, first] == egress[first, pool] == 0.0 and prices[pool] <= (1.0 + near) * prices[first]
        )
        number = next(alike, None)
        if number is None:
            found.append((pool,))
        else:
            found[number] += (pool,)
    return found


def _ways(
    at: JobState, found: list[tuple[int, ...]], pools: Sequence[Pool], ask: float, known: regimes.Regimes
) -> list[tuple[_Tier, ...]]:
    """Return the tiers of each calculation: the checkpoint's place and the others.

    Without a checkpoint each place is tried.
    """
    if len(found) == 1 and len(pools) > 1:  # one place: its best pool, and the others
        best = _stand_in(at, found[0], pools, ask, known).best
        found = [(best,), tuple(pool for pool in found[0] if pool != best)]
    here = [place for place in found if at.where in place] or found
    is_one_way = len(found) <= 2  # noqa: PLR2004 - with two places, either order gives the same tiers
    ways = [[place, *_others(place, found)] for place in (found[:1] if is_one_way else here)]
    return [tuple(_stand_in(at, tier, pools, ask, known) for tier in way) for way in ways]


def _others(here: tuple[int, ...], found: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    others = tuple(pool for place in found if place is not here for pool in place)
    return [others] if others else []


def _stand_in(at: JobState, group: tuple[int, ...], pools: Sequence[Pool], ask: float, known: regimes.Regimes) -> _Tier:
    """Return a tier of pools with the one that represents it.

    That is the pool with a lease, else the best one to start in, else the one whose capacity is likeliest to return.
    """
    if at.tenure is Tenure.INTERRUPTIBLE and at.pool in group:
        return _Tier(group, at.pool)

    def cost(pool: int) -> float:
        rate = pools[pool].belief.rate(known)
        return pools[pool].price + rate * at.overhead * ask + pools[pool].egress * max(rate, LEAST_RATE)

    ready = [pool for pool in group if pools[pool].belief.is_up]
    if ready:
        return _Tier(group, min(ready, key=cost))
    return _Tier(group, max(group, key=lambda pool: pools[pool].belief.rate(known)))


def _costs(
    at: JobState,
    tiers: Sequence[_Tier],
    pools: Sequence[Pool],
    ask: float,
    egress: Array,
    known: regimes.Regimes,
) -> dict[tuple[Tenure | None, int], float]:
    """Return the expected cost of each choice to the end, in dollars."""
    table = multi_pool_dp.table(_table_key(at, tiers, pools, ask, egress, known), at.left)
    low, high, part = table.around(at.left / table.key.stage)
    looks = [pools[tier.best].belief.vector(known) for tier in tiers]
    near = _Outlook(table, at, tiers, looks, low).costs(pools)
    if part < _ROUNDING:
        return near
    far = _Outlook(table, at, tiers, looks, high).costs(pools)
    return {choice: (1.0 - part) * near[choice] + part * far[choice] for choice in near}


def _table_key(
    at: JobState,
    tiers: Sequence[_Tier],
    pools: Sequence[Pool],
    ask: float,
    egress: Array,
    known: regimes.Regimes,
) -> multi_pool_dp.TableKey:
    """Return the key of a job's state, rounded so that many states share one.

    Prices are rounded to the nearest step, and the overhead of later starts is rounded up. What a start now takes, and
    what the deadline forces, are calculated from the exact figures.
    """
    moves = [[round(float(egress[np.ix_(one.pools, other.pools)].mean()), 2) for other in tiers] for one in tiers]
    shortest, stages, levels, price_step = COARSE if any(map(any, moves)) else FINE
    stage = max(shortest, at.gap, at.span / stages, at.room / levels)
    return multi_pool_dp.TableKey(
        regimes=known,
        tiers=tuple(_tier(tier, pools, known, price_step) for tier in tiers),
        egress=tuple(tuple(row) for row in moves),
        ask=_nearest(ask, ASK_STEP),
        overhead=_overhead(at.overhead),
        stage=stage,
        look=at.gap,
        left=at.span,
        slack=at.room + stage,
        grain=2 if 2 * at.room <= levels * stage else 1,
    )


def _tier(tier: _Tier, pools: Sequence[Pool], known: regimes.Regimes, price_step: float) -> multi_pool_dp.Tier:
    price = _nearest(pools[tier.best].price, price_step)
    best = pools[tier.best].belief
    hours = min(1.0 / max(best.rate(known), LEAST_LOSSES), SPARE_HOURS) if best.is_up else SPARE_HOURS_AWAY
    none = math.prod(1.0 - pools[pool].belief.later(known, hours) for pool in tier.pools if pool != tier.best)
    spare = SPARE_STEP * min(round((1.0 - none) / SPARE_STEP), SPARE_STEPS)
    return multi_pool_dp.Tier(round(price, 4), round(spare, 2), min(len(tier.pools), 3))


def _nearest(price: float, step: float) -> float:
    """Return the nearest power of `step`."""
    return step ** round(math.log(max(price, _ROUNDING)) / math.log(step))


def _overhead(hours: float) -> float:
    """Return an overhead, rounded up."""
    step = max(OVERHEAD_STEP, 2.0 ** math.floor(math.log2(max(hours, _ROUNDING))) / OVERHEAD_PARTS)
    return math.ceil(hours / step - _ROUNDING) * step


def _place(at: JobState, tiers: Sequence[_Tier]) -> int:
    """Return the index of the checkpoint's tier; 0 if there is no checkpoint yet."""
    return next((place for place, tier in enumerate(tiers) if at.where in tier.pools), 0)


@dataclass(frozen=True, slots=True)
class _Outlook:
    """The cost of each choice with `stages` to go, given the beliefs about the tiers."""

    table: multi_pool_dp.Table
    at: JobState
    tiers: Sequence[_Tier]
    looks: Sequence[Array]
    stages: int

    def costs(self, pools: Sequence[Pool]) -> dict[tuple[Tenure | None, int], float]:
        """Return dollars by choice."""
        at, table, place = self.at, self.table, self.table.places[_place(self.at, self.tiers)]
        slack = at.left - at.todo - (at.warming if at.tenure is not None else 0.0)
        after = table.values[self.stages - 1]
        flat = after.reshape(len(after), -1, after.shape[-1])
        free = [look @ chain.free for look, chain in zip(self.looks, table.chains, strict=True)]
        asks = table.locations + place
        costs = {
            (None, -1): table.at(_joint(free) @ flat[place], slack - table.key.stage),
            (Tenure.ON_DEMAND, -1): self._held(
                _joint(free) @ flat[asks], slack, table.key.ask, is_new=at.tenure is not Tenure.ON_DEMAND
            ),
        }
        for number, tier in enumerate(self.tiers):
            if not pools[tier.best].belief.is_up:
                continue
            kept, lost = (
                _joint([each if other != number else self.looks[number] @ chances for other, each in enumerate(free)])
                for chances in (table.chains[number].keeps, table.chains[number].loses)
            )
            values = kept @ flat[2 * table.locations + number] + lost @ flat[table.places[number]]
            is_new = at.tenure is not Tenure.INTERRUPTIBLE or at.pool != tier.best
            cost = self._held(values, slack, table.key.tiers[number].price, is_new=is_new)
            costs[Tenure.INTERRUPTIBLE, tier.best] = cost + (pools[tier.best].egress if is_new else 0.0)
        return costs

    def _held(self, values: Array, slack: float, price: float, *, is_new: bool) -> float:
        """Return the cost of a choice that rents: the stage, and the expected cost after it."""
        stage, overhead = self.table.key.stage, self.at.overhead if is_new else 0.0
        hours = min(max(self.stages * stage - slack, 0.0) + overhead, stage)
        return price * hours + self.table.at(values, slack - overhead)


def _joint(chances: Sequence[Array]) -> Array:
    """Return the chances of every pair of states."""
    joint = chances[0]
    for more in chances[1:]:
        joint = np.multiply.outer(joint, more).reshape(-1)
    return joint
