"""One slot with a deadline on one market: `deadline` decides, with the numbers of `hedged`.

One place is the least number of places, so its kernel is that of one pool: hazards by age, and the pool's own evidence.
"""

from collections.abc import Sequence

from agent.decide.strategy import Proposal, View
from strategies.deadline import Deadline, DeadlineParams
from strategies.hedged_rules.params import HedgedParams

SHARED = (
    *("reserve", "start_delay", "headroom", "ceiling", "raise_headroom", "least_gain"),
    *("return_after", "return_gain", "lower_after", "lower_step"),
)
"""The numbers that both strategies have, with one meaning."""
SEVERAL = 2


def propose(view: View, params: HedgedParams) -> Sequence[Proposal] | None:
    """Return the proposals of `deadline`; None for other work, or as soon as several markets were looked at."""
    is_one = len(view.workload.places) == 1 and len(view.by_market) < SEVERAL
    if view.task is None or not is_one or not params.weigh_markets:
        return None
    return Deadline().propose(view, numbers(params))


def numbers(params: HedgedParams) -> DeadlineParams:
    """Return the numbers of `deadline` that say what those of `hedged` say; the others as shipped."""
    return DeadlineParams(**{name: getattr(params, name) for name in SHARED})
