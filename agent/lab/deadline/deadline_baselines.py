"""Published rules for one job with a deadline, written from their papers, for comparison with gpubid's own.

Sources: on-demand, greedy and Uniform Progress from Wu et al., "Can't Be Late: Optimizing Spot Instance Savings under
Deadlines", NSDI 2024; the slack rule from LEVI, arXiv 2605.09764.
"""

from collections.abc import Callable, Mapping

from pydantic import Field

from agent.decide.strategy import Params
from agent.domain.market.tenure import Tenure
from agent.lab.deadline.one_pool import Guarded, Rule
from agent.lab.jobs.job_terms import Terms
from agent.lab.jobs.tick_engine import Policy, Sight
from agent.lab.jobs.uniform_progress import OnDemand, Uniform


class LeviParams(Params):
    """The numbers of LEVI, as published."""

    slack_share: float = Field(default=0.1, ge=0, le=2)
    """Without interruptible capacity, go on demand when slack is below this share of the remaining work."""
    spare_ticks: int = Field(default=2, ge=0, le=36)
    """Ticks of slack kept besides that share."""


def greedy(at: Sight) -> Tenure | None:
    """Run interruptible capacity whenever it is there, and on-demand only when the deadline forces it."""
    return Tenure.INTERRUPTIBLE if at.up[0] else None


def levi(params: LeviParams) -> Rule:
    """Run interruptible capacity whenever it is there, else on-demand as soon as slack is short, and stay."""

    def choose(at: Sight) -> Tenure | None:
        if at.up[0]:
            return Tenure.INTERRUPTIBLE
        slack = at.left - at.todo
        is_short = slack < params.slack_share * at.todo + params.spare_ticks * at.terms.tick
        return Tenure.ON_DEMAND if is_short or at.runs.tenure is Tenure.ON_DEMAND else None

    return choose


PLAIN: Mapping[str, Callable[[Terms], Policy]] = {
    "on_demand": OnDemand,
    "greedy": lambda _: Guarded(greedy),
    "uniform_progress": Uniform,
}
NUMBERED: Mapping[str, Params] = {"levi": LeviParams()}
"""Published rules with numbers, and their published numbers."""


def policy(strategy: str, params: Params | None, terms: Terms) -> Policy:
    """Return a published rule with these numbers, under the last resort that all of them share."""
    return Guarded(levi(params)) if isinstance(params, LeviParams) else PLAIN[strategy](terms)
