"""The next tenure for work with a deadline (none, interruptible or on-demand), by the expected cost of finishing.

Invariants:
1. While on-demand can still be in time, no choice makes it late, whatever happens to capacity.
2. The choice depends only on the job's state and the belief.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from agent.decide.deadline import hazards as pools
from agent.decide.deadline import single_pool_dp, sized_cache
from agent.domain.market.tenure import Tenure

STEP_HOURS = 1 / 6
"""Hours between two decisions of the programme. Finer steps change no choice; steps longer than the time between looks
are of no use."""
MOST_STEPS = 600
MOST_SLACK = 48.0
"""Hours of slack that a table covers. With more slack the choice is made as if the deadline were nearer."""
SHORT_SLACK, WAIT_GAIN = 0.1, 0.01
"""With less slack than this share of the remaining work, waiting must save at least this many hours of on-demand.

The costs assume that the model of the pool is known after the next step, so they expect too much of waiting. The share
is that of LEVI's rule (arXiv 2605.09764)."""
MOST_BYTES = 256 << 20
"""Bytes of tables kept at once. A table for 70 hours takes about 30 MB and a fifth of a second, one for 9 hours 4
MB."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Costs:
    """The expected cost of finishing, by the next choice, in hours of on-demand; infinite if the choice may be late."""

    wait: float
    on_demand: float
    interruptible: float

    def of(self, tenure: Tenure | None) -> float:
        """Return the expected cost with this tenure next, or with none."""
        if tenure is None:
            return self.wait
        return self.interruptible if tenure is Tenure.INTERRUPTIBLE else self.on_demand


@dataclass(frozen=True, slots=True)
class JobState:
    """The state of a job, in hours: time until the deadline, work left, the running tenure, the overhead of each start.

    `warming` is the remaining time of the running lease's start, `gap` the time until the next look.
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


class Policy:
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

    def choose(self, at: JobState, belief: pools.Belief) -> Tenure | None:
        """Return the tenure to hold until the next look, or None to wait."""
        if at.tenure is Tenure.INTERRUPTIBLE and belief.is_up and at.warming <= 0 and self._setting.ratio <= 1:
            # Working capacity at the lower price is never left: every other choice remains possible after it is lost.
            return at.tenure if at.slack >= at.start_on_demand - _ROUNDING else _last(at)
        if at.tenure is Tenure.ON_DEMAND and not belief.is_up and at.slack >= at.warming - _ROUNDING:
            # It was rented because waiting cost more, and the longer capacity is away, the less likely it comes back.
            return at.tenure
        found = self.costs(at, belief)
        is_short = at.slack < SHORT_SLACK * at.todo
        return best(at, replace(found, wait=found.wait + WAIT_GAIN) if is_short else found)

    def costs(self, at: JobState, belief: pools.Belief) -> Costs:
        """Return the expected cost of each choice; absent interruptible capacity costs infinitely much."""
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


tables = sized_cache.SizedCache[tuple[single_pool_dp.Setting, pools.Hazards], Policy](
    lambda key: Policy(*key), MOST_BYTES
)


def of(setting: single_pool_dp.Setting, hazards: pools.Hazards) -> Policy:
    """Return the horizon of a setting; equal settings share a table while it is kept."""
    return tables.get((setting, hazards))


def setting(at: JobState, span: float, work: float, ratio: float) -> single_pool_dp.Setting:
    """Return the setting of a job with `work` hours in `span` hours, rounded so that many jobs share a table.

    `ratio` is the interruptible price over the on-demand price. Work that is done faster than it was planned leaves
    more slack than the job began with.
    """
    slack = min(max(span - work, at.slack - _ROUNDING, 0.0), MOST_SLACK)
    reach = _up(min(span, work + slack), 1.0)
    return single_pool_dp.Setting(
        step=max(STEP_HOURS, reach / MOST_STEPS, at.gap),
        span=reach,
        slack=_up(slack, 1.0),
        start_on_demand=_up(at.start_on_demand, 1 / 60),
        start_interruptible=_up(at.start_interruptible, 1 / 60),
        ratio=round(ratio / _RATIO) * _RATIO,
    )


def best(at: JobState, found: Costs) -> Tenure | None:
    """Return the cheapest tenure. Of equal ones the present one wins. If none is surely in time, the last resort."""
    cheapest, tenure = found.of(at.tenure), at.tenure
    ways = ((found.wait, None), (found.on_demand, Tenure.ON_DEMAND), (found.interruptible, Tenure.INTERRUPTIBLE))
    for cost, way in ways:
        if cost < cheapest:
            cheapest, tenure = cost, way
    return _last(at) if cheapest == math.inf else tenure


def _last(at: JobState) -> Tenure:
    """Return the tenure that may still be in time: the running one if only that can be, else on-demand."""
    is_alone = at.tenure is not None and at.start_on_demand > at.slack >= at.warming
    return at.tenure if is_alone and at.tenure is not None else Tenure.ON_DEMAND


def _up(hours: float, unit: float) -> float:
    return math.ceil(hours / unit - _ROUNDING) * unit


_RATIO = 0.02
"""Ratios of prices are rounded to this step; each step has its own table."""
