"""`deadline` with `learn = false` over a window: its two slack rules and its last call, with the live arithmetic.

The reserve is a tick, the time to the next look. A start takes the overhead of the setting. So the live reserves for
starts, polls and prices are not used here.
"""

from datetime import UTC, datetime, timedelta

from agent.decide.deadline import slack
from agent.domain.market.tenure import Tenure
from agent.lab.deadline.one_pool import Rule
from agent.lab.jobs.job_terms import HOUR
from agent.lab.jobs.tick_engine import Sight
from strategies.deadline import DeadlineParams

_NOW = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR = timedelta(hours=1)


def rule(params: DeadlineParams) -> Rule:
    """Return the slack rules with these numbers, as `strategies.deadline` uses them live."""
    spare = params.return_slack / _HOUR

    def choose(at: Sight) -> Tenure | None:
        is_behind = slack.is_behind(at.done, at.terms.work, at.now / at.terms.deadline, params.pace)
        return slack.choose(
            _outlook(at), slack.Look(at.runs.tenure, at.up[0], is_behind, 0.0), params.slack_share, spare
        )

    return choose


def _outlook(at: Sight) -> slack.Outlook:
    gap = at.terms.tick / HOUR
    return slack.Outlook(
        now=_NOW,
        left=at.looks * gap,
        todo=at.todo / HOUR,
        speed=1.0,
        start=0.0,
        restart=at.terms.overhead / HOUR,
        reserve=gap,
    )
