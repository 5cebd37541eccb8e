"""What to hold next for work with a deadline: wait, interruptible or on-demand, by what finishing is expected to cost.

Invariants:
1. From any standing in which on-demand can still be in time, no choice gives that up, whatever capacity does.
2. The choice depends on the standing and the belief alone.
"""

import math
from dataclasses import dataclass

import numpy as np

from agent.decide.deadline import hazards as pools
from agent.decide.deadline import single_pool_dp, sized_cache
from agent.domain.market.tenure import Tenure

STEP_HOURS = 1 / 6
"""How far apart the programme decides: finer changes no choice, coarser than the looks themselves is of no use."""
MOST_STEPS = 600
MOST_SLACK = 48.0
"""More slack than this is not reckoned with: a choice is then made as if the deadline were nearer."""
MOST_BYTES = 256 << 20
"""Of tables kept at once: one for 70 hours takes some 30 MB and a fifth of a second, one for 9 hours 4 MB."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Costs:
    """What finishing is expected to cost by what is done next, in hours of on-demand; infinite where it may be late."""

    wait: float
    on_demand: float
    interruptible: float

    def of(self, tenure: Tenure | None) -> float:
        """Return what holding this, or nothing, is expected to cost."""
        if tenure is None:
            return self.wait
        return self.interruptible if tenure is Tenure.INTERRUPTIBLE else self.on_demand


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a job stands, in hours: left until the deadline, work left, what runs, and the overhead of each start.

    `warming` is what the start of what runs has yet to spend, `gap` until the next look.
    """

    left: float
    todo: float
    tenure: Tenure | None
    warming: float
    start_on_demand: float
    start_interruptible: float
    gap: float

    @property
    def slack(self) -> float:
        """Hours that may be spent without progress."""
        return self.left - self.todo


class Horizon:
    """The choices for jobs of one setting over a pool of these hazards; its table is built with it."""

    def __init__(self, setting: single_pool_dp.Setting, hazards: pools.Hazards) -> None:
        """Build the table."""
        self.hazards = hazards
        self._setting = setting
        self._table = single_pool_dp.build(setting, hazards)

    @property
    def size(self) -> int:
        """How many bytes its table takes."""
        return self._table.up.nbytes + self._table.down.nbytes

    def choose(self, at: Standing, belief: pools.Belief) -> Tenure | None:
        """Return what to hold until the next look."""
        if at.tenure is Tenure.INTERRUPTIBLE and belief.is_up and at.warming <= 0 and self._setting.ratio <= 1:
            # What works at the lower price is never left: whatever else is done can be done as well after it is lost.
            return at.tenure if at.slack >= at.start_on_demand - _ROUNDING else _last(at)
        if at.tenure is Tenure.ON_DEMAND and not belief.is_up and at.slack >= at.warming - _ROUNDING:
            # It was rented because waiting was worth less, and capacity that stays away comes back less and less.
            return at.tenure
        return best(at, self.costs(at, belief))

    def costs(self, at: Standing, belief: pools.Belief) -> Costs:
        """Return what each choice is expected to cost; interruptible capacity that is not there cannot be chosen."""
        slack = min(at.slack, self._setting.slack)
        weights = belief.weights(self.hazards).astype(np.float32)
        table = self._table.at(at.todo + slack, is_up=belief.is_up, age_bin=self.hazards.bin(belief.age))

        def cost(doing: int, spent: float, spare: float) -> float:
            if spare < -_ROUNDING or slack - spent < -_ROUNDING:
                return math.inf
            return self._table.cost(table[doing], max(slack - spent, 0.0), weights)

        demand = at.warming if at.tenure is Tenure.ON_DEMAND else at.start_on_demand
        bid = at.warming if at.tenure is Tenure.INTERRUPTIBLE else at.start_interruptible
        fallback = slack - at.start_on_demand
        return Costs(
            cost(single_pool_dp.WAIT, 0.0, fallback - at.gap),
            cost(single_pool_dp.ON_DEMAND, demand, 0.0),
            cost(single_pool_dp.INTERRUPTIBLE, bid, fallback - min(bid, at.gap)) if belief.is_up else math.inf,
        )


tables = sized_cache.Shelf[tuple[single_pool_dp.Setting, pools.Hazards], Horizon](lambda key: Horizon(*key), MOST_BYTES)


def of(setting: single_pool_dp.Setting, hazards: pools.Hazards) -> Horizon:
    """Return the horizon of a setting; equal ones share a table while it is kept."""
    return tables.get((setting, hazards))


def setting(at: Standing, span: float, work: float, ratio: float) -> single_pool_dp.Setting:
    """Return the setting of a job of so much work in `span` hours: rounded, so that few tables answer for all.

    `ratio` is the interruptible price over that of on-demand.
    """
    slack = min(max(span - work, 0.0), MOST_SLACK)
    reach = _up(min(span, work + slack), 1.0)
    return single_pool_dp.Setting(
        step=max(STEP_HOURS, reach / MOST_STEPS, at.gap),
        span=reach,
        slack=_up(slack, 1.0),
        start_on_demand=_up(at.start_on_demand, 1 / 60),
        start_interruptible=_up(at.start_interruptible, 1 / 60),
        ratio=round(ratio / _RATIO) * _RATIO,
    )


def best(at: Standing, found: Costs) -> Tenure | None:
    """Return the cheapest; among equals what stands, and on-demand where nothing is sure to be in time."""
    cheapest, tenure = found.of(at.tenure), at.tenure
    ways = ((found.wait, None), (found.on_demand, Tenure.ON_DEMAND), (found.interruptible, Tenure.INTERRUPTIBLE))
    for cost, way in ways:
        if cost < cheapest:
            cheapest, tenure = cost, way
    return _last(at) if cheapest == math.inf else tenure


def _last(at: Standing) -> Tenure:
    """Return what may yet be in time: what runs, when it alone can be, else on-demand."""
    is_alone = at.tenure is not None and at.start_on_demand > at.slack >= at.warming
    return at.tenure if is_alone and at.tenure is not None else Tenure.ON_DEMAND


def _up(hours: float, unit: float) -> float:
    return math.ceil(hours / unit - _ROUNDING) * unit


_RATIO = 0.02
"""Prices are told apart by so much of on-demand's: a table for each."""
