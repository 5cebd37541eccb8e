"""`deadline` over a window: the live kernel, tick by tick, with its observations of the window so far."""

from agent.decide.deadline import hazards, single_pool_policy
from agent.domain.market.tenure import Tenure
from agent.lab.deadline.one_pool import Rule
from agent.lab.jobs.job_terms import HOUR
from agent.lab.jobs.tick_engine import Sight


def rule(pool: hazards.Hazards) -> Rule:
    """Return a rule that starts from these hazards and learns only from its own sights. It is for one run only."""
    return _Learner(pool).choose


class _Learner:
    def __init__(self, pool: hazards.Hazards) -> None:
        self._pool = pool
        self._belief: hazards.Belief | None = None
        self._horizon: single_pool_policy.Policy | None = None
        self._prices = (0.0, 0.0)

    def choose(self, at: Sight) -> Tenure | None:
        """Return the kernel's choice for this tick, and remember the observation."""
        hours = at.terms.tick / HOUR
        if self._belief is None:
            self._belief = hazards.first(self._pool, is_up=at.up[0], age=hazards.FIRST_AGE_HOURS)
        else:
            self._belief = hazards.observe(self._pool, self._belief, is_up=at.up[0], hours=hours)
        standing = _standing(at, hours)
        return self._for(at, standing).choose(standing, self._belief)

    def _for(self, at: Sight, standing: single_pool_policy.JobState) -> single_pool_policy.Policy:
        """Return the horizon at the prices of this tick."""
        prices = at.spot[0], at.on_demand[0]
        if self._horizon is None or prices != self._prices:
            ratio = prices[0] / prices[1] if prices[1] else 1.0
            setting = single_pool_policy.setting(standing, at.terms.deadline / HOUR, at.terms.work / HOUR, ratio)
            self._horizon, self._prices = single_pool_policy.of(setting, self._pool), prices
        return self._horizon


def _standing(at: Sight, hours: float) -> single_pool_policy.JobState:
    overhead = at.terms.overhead / HOUR
    return single_pool_policy.JobState(
        left=at.looks * hours,  # a tick that the deadline cuts short does not count
        todo=at.todo / HOUR,
        tenure=at.runs.tenure,
        warming=at.warm / HOUR,
        start_on_demand=overhead,
        start_interruptible=overhead,
        gap=hours,
    )
