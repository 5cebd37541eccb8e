"""Where to run work with a deadline when several pools could have it: one to hold, on-demand, or nothing for now.

Pools are told apart by price into at most two tiers; a finite-horizon programme (`voyage`) over the regimes of both
says what each choice is expected to cost to the end, moves and their egress included.

Invariants:
1. From any standing in which on-demand can still be in time, no choice gives that up, whatever capacity does.
2. The choice depends on the standing and the pools alone.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agent.decide import regimes, voyage
from agent.decide.regimes import Array
from agent.domain.tenure import Tenure

MOST_TIERS = 2
STAGE_HOURS, MOST_STAGES, MOST_LEVELS = 1 / 3, 180, 90
"""A stage of the programme, how many there are at most and how finely slack is told apart: coarser beyond that."""
PRICE_STEP = 1.06
"""Prices this close share a table."""
APART = 0.05
"""Pools in another region count as so much dearer when tiers are made."""
SPARE_IF_UP, SPARE_IF_DOWN, MOST_SPARE = 0.85, 0.15, 0.95
"""How likely another pool of the tier has capacity when the held one is lost, by whether it has it now. Assumed."""
LEAST_RATE = 0.1
"""A move's egress is spread over ten hours at most."""
WAIT_GAIN = 0.002
"""Waiting must gain more than so many hours of on-demand: where it gains nothing, work done is done."""
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """A pool at one look: $/h when interruptible, what is believed of it, dollars of moving the checkpoint there."""

    price: float
    belief: regimes.Belief
    egress: float = 0.0


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a job stands, in hours: left until the deadline, work left, what runs and in which pool.

    Pools are indices, -1 for none; `where` is that of the checkpoint; `warming` is what the start of what runs has yet
    to spend, `gap` the time until the next look; `span` and `room` are the hours allowed and the slack
    that the job began with.
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


@dataclass(frozen=True, slots=True)
class Choice:
    """What to run until the next look; `costs` is what finishing is expected to cost by (tenure, pool), in dollars."""

    tenure: Tenure | None
    pool: int
    costs: Mapping[tuple[Tenure | None, int], float]


@dataclass(frozen=True, slots=True)
class _Tier:
    """Some pools, and the one that stands for them now."""

    pools: tuple[int, ...]
    best: int


def must(at: Standing) -> tuple[Tenure, int] | None:
    """Return what must run now for the deadline's sake, or None where there is a choice; the pool of on-demand is -1.

    Where another start and a fall-back after it no longer fit, only what runs may go on; where the start of a fall-back
    just fits, only what is warmed up may (the last resort of Uniform Progress, NSDI 2024).
    """
    looks = math.floor(at.left / at.gap + _ROUNDING)
    if _looks(at.todo + 2 * at.overhead, at) < looks:
        return None
    holds = at.tenure is Tenure.INTERRUPTIBLE
    if holds and (_looks(at.todo + at.overhead, at) < looks or at.warming <= 0):
        return Tenure.INTERRUPTIBLE, at.pool
    return Tenure.ON_DEMAND, -1


def _looks(hours: float, at: Standing) -> int:
    return math.ceil(hours / at.gap - _ROUNDING)


def choose(
    at: Standing, pools: Sequence[Pool], ask: float, egress: Array, known: regimes.Regimes = regimes.SHIPPED
) -> Choice:
    """Return what to run until the next look; `egress` (pools, pools) in dollars, `ask` in $/h on demand."""
    forced = must(at)
    if forced is not None:
        return Choice(*forced, {})
    tiers = [_stand_in(at, group, pools, ask, known) for group in grouped([pool.price for pool in pools], egress)]
    costs = _costs(at, tiers, pools, ask, egress, known)
    runs = (at.tenure, at.pool if at.tenure is Tenure.INTERRUPTIBLE else -1)
    best = min(costs, key=lambda each: (costs[each] + (WAIT_GAIN * ask if each[0] is None else 0.0), each != runs))
    return Choice(*best, costs)


def grouped(prices: Sequence[float], egress: Array) -> list[tuple[int, ...]]:
    """Return the pools in at most two tiers: those nearest in price, and in one region, are together."""
    groups: list[tuple[int, ...]] = [(pool,) for pool in range(len(prices))]
    while len(groups) > MOST_TIERS:
        pairs = [(one, other) for at, one in enumerate(groups) for other in groups[at + 1 :]]
        one, other = min(pairs, key=lambda pair: _distance(pair[0], pair[1], prices, egress))
        groups = [one + other if group is one else group for group in groups if group is not other]
    return groups


def _distance(one: tuple[int, ...], other: tuple[int, ...], prices: Sequence[float], egress: Array) -> float:
    means = [sum(prices[pool] for pool in group) / len(group) for group in (one, other)]
    apart = APART if egress[one[0], other[0]] > 0 else 0.0
    return abs(math.log(max(means[0], _ROUNDING) / max(means[1], _ROUNDING))) + apart


def _stand_in(at: Standing, group: tuple[int, ...], pools: Sequence[Pool], ask: float, known: regimes.Regimes) -> _Tier:
    """Return a tier: what is held stands for it, else the best pool to start in, else the likeliest to return."""
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
    at: Standing,
    tiers: Sequence[_Tier],
    pools: Sequence[Pool],
    ask: float,
    egress: Array,
    known: regimes.Regimes,
) -> dict[tuple[Tenure | None, int], float]:
    """Return what each choice is expected to cost to the end, in dollars."""
    table = voyage.table(_voyage(at, tiers, pools, ask, egress, known))
    low = max(int(at.left / table.voyage.stage), 1)
    part = max(at.left / table.voyage.stage - low, 0.0)
    looks = [pools[tier.best].belief.vector(known) for tier in tiers]
    near = _Outlook(table, at, tiers, looks, low).costs(pools)
    if part < _ROUNDING or low + 1 > len(table.values):
        return near
    far = _Outlook(table, at, tiers, looks, low + 1).costs(pools)
    return {choice: (1.0 - part) * near[choice] + part * far[choice] for choice in near}


def _voyage(
    at: Standing,
    tiers: Sequence[_Tier],
    pools: Sequence[Pool],
    ask: float,
    egress: Array,
    known: regimes.Regimes,
) -> voyage.Voyage:
    """Return the voyage of a standing, rounded so that many standings share one."""
    stage = max(STAGE_HOURS, at.gap, at.span / MOST_STAGES, at.room / MOST_LEVELS)
    moves = [[round(float(egress[np.ix_(one.pools, other.pools)].mean()), 2) for other in tiers] for one in tiers]
    if any(map(any, moves)):
        moves[_place(at, tiers)] = [round(pools[tier.best].egress, 2) for tier in tiers]
    return voyage.Voyage(
        regimes=known,
        tiers=tuple(_tier(tier, pools) for tier in tiers),
        egress=tuple(tuple(row) for row in moves),
        ask=ask,
        overhead=at.overhead,
        stage=stage,
        look=at.gap,
        left=at.span,
        slack=at.room + stage,
        grain=2 if 2 * at.room <= MOST_LEVELS * stage else 1,
    )


def _tier(tier: _Tier, pools: Sequence[Pool]) -> voyage.Tier:
    price = PRICE_STEP ** round(math.log(max(pools[tier.best].price, _ROUNDING)) / math.log(PRICE_STEP))
    others = [pools[pool].belief.is_up for pool in tier.pools if pool != tier.best]
    none = math.prod(1.0 - (SPARE_IF_UP if is_up else SPARE_IF_DOWN) for is_up in others)
    return voyage.Tier(round(price, 4), round(4 * min(1.0 - none, MOST_SPARE)) / 4, min(len(tier.pools), 3))


def _place(at: Standing, tiers: Sequence[_Tier]) -> int:
    """Return the tier in which the checkpoint lies, the first where there is none yet."""
    return next((place for place, tier in enumerate(tiers) if at.where in tier.pools), 0)


@dataclass(frozen=True, slots=True)
class _Outlook:
    """What each choice costs with so many stages to go, given what is believed of each tier."""

    table: voyage.Table
    at: Standing
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
            (None, -1): table.at(_joint(free) @ flat[place], slack - table.voyage.stage),
            (Tenure.ON_DEMAND, -1): self._held(
                _joint(free) @ flat[asks], slack, table.voyage.ask, is_new=at.tenure is not Tenure.ON_DEMAND
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
            cost = self._held(values, slack, table.voyage.tiers[number].price, is_new=is_new)
            costs[Tenure.INTERRUPTIBLE, tier.best] = cost + (pools[tier.best].egress if is_new else 0.0)
        return costs

    def _held(self, values: Array, slack: float, price: float, *, is_new: bool) -> float:
        """Return what holding something costs: the stage, and what comes after it."""
        stage, overhead = self.table.voyage.stage, self.at.overhead if is_new else 0.0
        hours = min(max(self.stages * stage - slack, 0.0) + overhead, stage)
        return price * hours + self.table.at(values, slack - overhead)


def _joint(chances: Sequence[Array]) -> Array:
    """Return the chances of every pair of states."""
    joint = chances[0]
    for more in chances[1:]:
        joint = np.multiply.outer(joint, more).reshape(-1)
    return joint
