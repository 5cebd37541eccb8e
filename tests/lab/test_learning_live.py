"""The same case tick by tick through the whole plan() and through the bench's rules: the same choices."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from agent.decide.deadline import hazards
from agent.lab.deadline import deadline_jobs, learning_rule, slack_rules
from agent.lab.deadline.one_pool import Rule
from agent.lab.jobs import tick_engine
from agent.lab.jobs.job_terms import HOUR, JobCase
from strategies.deadline import DeadlineParams
from tests.lab.one_pool_cases import lived, over
from tests.lab.planned_job import GAP, OVERHEAD, PARAMS, Planned

LATER = timedelta(minutes=20)


def case(seed: int) -> JobCase:
    rng = np.random.default_rng(seed)
    hours = rng.choice([0.2, 0.5, 1.0, 2.0, 4.0], 40)
    up = [bool(place % 2) for place, length in enumerate(hours) for _ in range(max(int(length * 3600 / GAP), 1))]
    return deadline_jobs.case(over(up, GAP, 0.2, 0.4), deadline_jobs.Setting(8 * HOUR, 10 * HOUR, OVERHEAD))


def both(params: DeadlineParams, rule: Rule, seed: int) -> tuple[tick_engine.Run, tick_engine.Run]:
    """Return the results of the whole plan and of the rule for a case that asks for every choice and can be met."""
    job = case(seed)
    by_plan, by_rule = lived(Planned(params).choose, job), lived(rule, job)
    assert len({*by_rule.choices}) == 3, "the case must ask for every choice"
    assert not by_plan.is_late(job.terms)
    return by_plan, by_rule


@pytest.mark.parametrize("seed", range(6))
def test_the_whole_plan_chooses_as_the_kernel_does_tick_by_tick(seed: int) -> None:
    by_plan, by_rule = both(PARAMS, learning_rule.rule(hazards.SHIPPED), seed)
    assert by_plan.choices == by_rule.choices


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("numbers", [{"slack_share": 0.1}, {"pace": 0.9}, {"slack_share": 0.15, "return_slack": LATER}])
def test_the_whole_plan_chooses_by_slack_as_the_bench_does_tick_by_tick(numbers: dict[str, Any], seed: int) -> None:
    # The bench's reserve is the time to the next look.
    params = PARAMS.model_copy(update={"learn": False, "reserve": timedelta(seconds=GAP), **numbers})
    by_plan, by_rule = both(params, slack_rules.rule(params), seed)
    assert by_plan.choices == by_rule.choices
