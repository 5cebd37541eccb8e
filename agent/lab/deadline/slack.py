"""`deadline` with `learn = false` over a window: its two rules of slack and its net, by the arithmetic it has live.

The reserve is a tick, the time to the next look; a start takes the overhead of the setting, so what keeps time free for
starts, polls and prices live has no part here.
"""

from datetime import UTC, datetime, timedelta

from agent.decide import pacing
from agent.domain.tenure import Tenure
from agent.lab.deadline.ticks import Rule, Standing
from strategies.deadline import DeadlineParams

_NOW = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR = timedelta(hours=1)


def rule(params: DeadlineParams) -> Rule:
    """Return the rules of slack on these numbers."""
    back = params.return_slack / _HOUR

    def choose(at: Standing) -> Tenure | None:
        outlook = _outlook(at)
        if outlook.is_last_call:
            return Tenure.ON_DEMAND
        if at.tenure is Tenure.INTERRUPTIBLE:
            return at.tenure
        is_behind = pacing.is_behind(at.done, at.setting.work, at.now / at.setting.allowed, params.pace)
        if at.tenure is Tenure.ON_DEMAND:
            is_back = at.is_up and outlook.slack > back + outlook.restart and not is_behind
            return Tenure.INTERRUPTIBLE if is_back else at.tenure
        if at.is_up and outlook.may_try(0.0):
            return Tenure.INTERRUPTIBLE
        is_short = is_behind or outlook.is_short(params.slack_share) or not outlook.may_try(0.0)
        return Tenure.ON_DEMAND if is_short else None

    return choose


def _outlook(at: Standing) -> pacing.Outlook:
    gap = at.gap / 3600
    return pacing.Outlook(
        now=_NOW,
        left=at.left // at.gap * gap,
        todo=at.todo / 3600,
        speed=1.0,
        start=0.0,
        restart=at.setting.overhead / 3600,
        reserve=gap,
    )
