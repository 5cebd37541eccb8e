"""Published rules for one job with a deadline, written from their papers; what gpubid's own is compared with.

Sources: on-demand, greedy and Uniform Progress from Wu et al., "Can't Be Late: Optimizing Spot Instance Savings under
Deadlines", NSDI 2024; the slack rule from LEVI, arXiv 2605.09764.
"""

import math
from collections.abc import Mapping

from pydantic import Field

from agent.decide.strategy import Params
from agent.domain.market.tenure import Tenure
from agent.lab.deadline.deadline_ticks import Rule, Standing


class LeviParams(Params):
    """The numbers of LEVI, as published."""

    slack_share: float = Field(default=0.1, ge=0, le=2)
    """Without interruptible capacity, go on demand when slack is below this share of the remaining work."""
    spare_ticks: int = Field(default=2, ge=0, le=36)
    """Ticks of slack kept beside that share."""


def guarded(rule: Rule) -> Rule:
    """Return a rule under the last resort that all of the published ones share."""

    def choose(at: Standing) -> Tenure | None:
        left = at.left // at.gap
        overhead = at.setting.overhead
        if at.tenure is not Tenure.INTERRUPTIBLE and math.ceil((at.todo + 2 * overhead) / at.gap) >= left:
            return Tenure.ON_DEMAND
        if math.ceil((at.todo + overhead) / at.gap) >= left:
            is_warm = at.tenure is Tenure.INTERRUPTIBLE and at.is_up and at.warming == 0
            return Tenure.INTERRUPTIBLE if is_warm else Tenure.ON_DEMAND
        return rule(at)

    return choose


def on_demand(at: Standing) -> Tenure | None:
    """Never be interrupted."""
    del at
    return Tenure.ON_DEMAND


def greedy(at: Standing) -> Tenure | None:
    """Hold interruptible capacity whenever it is there; on-demand only when the deadline forces it."""
    return Tenure.INTERRUPTIBLE if at.is_up else None


def uniform_progress(at: Standing) -> Tenure | None:
    """Follow the straight line from start to deadline; return from on-demand only when well above it."""
    work, allowed, overhead = at.setting.work, at.setting.allowed, at.setting.overhead
    if at.tenure is Tenure.ON_DEMAND:
        is_ahead = at.done * allowed > work * (at.now + 2 * overhead)
        return Tenure.INTERRUPTIBLE if at.is_up and is_ahead else Tenure.ON_DEMAND
    if at.is_up:
        return Tenure.INTERRUPTIBLE
    return Tenure.ON_DEMAND if at.done * allowed < work * at.now else None


def levi(params: LeviParams) -> Rule:
    """Take interruptible capacity whenever it is there, else on-demand as soon as slack is short, and stay."""

    def choose(at: Standing) -> Tenure | None:
        if at.is_up:
            return Tenure.INTERRUPTIBLE
        slack = at.left - at.todo
        is_short = slack < params.slack_share * at.todo + params.spare_ticks * at.gap
        return Tenure.ON_DEMAND if is_short or at.tenure is Tenure.ON_DEMAND else None

    return choose


PLAIN: Mapping[str, Rule] = {
    "on_demand": guarded(on_demand),
    "greedy": guarded(greedy),
    "uniform_progress": guarded(uniform_progress),
}
NUMBERED: Mapping[str, Params] = {"levi": LeviParams()}
"""Published rules with numbers in them, and those they were published with."""


def rule(strategy: str, params: Params | None) -> Rule:
    """Return a published rule on these numbers, under the last resort."""
    return guarded(levi(params)) if isinstance(params, LeviParams) else PLAIN[strategy]
