"""`deadline` with `learn = false` over a window: its two rules of slack and its net, by the arithmetic it has live.

The reserve is a tick, the time to the next look; a start takes the overhead of the setting, so what keeps time free for
starts, polls and prices live has no part here.
"""

from datetime import UTC, datetime, timedelta

from agent.decide.deadline import slack
from agent.domain.market.tenure import Tenure
from agent.lab.deadline.deadline_ticks import Rule, Standing
from strategies.deadline import DeadlineParams

_NOW = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR = timedelta(hours=1)


def rule(params: DeadlineParams) -> Rule:
    """Return the rules of slack on these numbers, as `strategies.deadline` asks them live."""
    spare = params.return_slack / _HOUR

    def choose(at: Standing) -> Tenure | None:
        is_behind = slack.is_behind(at.done, at.setting.work, at.now / at.setting.allowed, params.pace)
        return slack.choose(_outlook(at), slack.Look(at.tenure, at.is_up, is_behind, 0.0), params.slack_share, spare)

    return choose


def _outlook(at: Standing) -> slack.Outlook:
    gap = at.gap / 3600
    return slack.Outlook(
        now=_NOW,
        left=at.left // at.gap * gap,
        todo=at.todo / 3600,
        speed=1.0,
        start=0.0,
        restart=at.setting.overhead / 3600,
        reserve=gap,
    )
