"""The same case tick by tick through the whole plan() and through the bench's rules: the same choices."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from agent.decide import plan
from agent.decide.deadline import availability, hazards
from agent.decide.limits import limits
from agent.decide.pricing import useful_hour
from agent.decide.strategy import Tuned
from agent.domain.fleet import Fleet
from agent.domain.market.capacity import Capacity
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.record.lease import Lease
from agent.domain.work.deadline import Deadline as By
from agent.domain.work.deadline import Progress
from agent.domain.work.decision import Rent
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload
from agent.lab.deadline import deadline_jobs, learning_rule, slack_rules
from agent.lab.deadline.one_pool import Rule
from agent.lab.jobs import tick_engine
from agent.lab.jobs.job_terms import HOUR, JobCase, Terms
from strategies.deadline import Deadline, DeadlineParams
from tests.lab.one_pool_cases import lived, over
from tests.support import builders

GAP = 600
OVERHEAD = 185
"""Seconds; no sum of ticks and starts makes slack equal to two starts, where the net's `<` and the kernel's meet."""
NOTHING, LATER = timedelta(0), timedelta(minutes=20)
PARAMS = DeadlineParams(
    reserve=NOTHING, start_delay=NOTHING, return_after=NOTHING, return_gain=0.0, return_slack=NOTHING, headroom=0.0
)
LOADING = timedelta(hours=useful_hour.loading_hours(builders.workload().image_gb, 800.0))
CHECKPOINT = Checkpoint(NOTHING, NOTHING, 0.0, CheckpointPlace.REMOTE)


class Planned:
    """A rule that asks the whole plan(): it builds the fleet of the job's present state."""

    def __init__(self, params: DeadlineParams) -> None:
        """Begin with nothing seen."""
        self._tuned: Mapping[str, Tuned] = {"deadline": builders.tuned(Deadline(), params, "deadline")}
        self._capacity: dict[str, Capacity] = {}

    def choose(self, at: tick_engine.Sight) -> Tenure | None:
        """Return the choice in the decision of the only slot."""
        fleet = _fleet(at, self._capacity)
        self._capacity = availability.watched(self._capacity, fleet)
        (made,) = plan.plan(_fleet(at, self._capacity), self._tuned, limits.Limits()).decisions
        return made.tenure if isinstance(made, Rent) else at.runs.tenure


def _fleet(at: tick_engine.Sight, capacity: dict[str, Capacity]) -> Fleet:
    now = builders.NOW + timedelta(seconds=at.now)
    return builders.fleet(
        now=now,
        workloads=(_workload(at.terms),),
        markets={"vast": builders.view(offers=tuple(_offers(at)), listed_at=now)},
        leases=_leases(at),
        progress={"train": Progress("train", at.done / HOUR, now, builders.NOW)},
        capacity=capacity,
    )


def _workload(terms: Terms) -> Workload:
    by = builders.NOW + timedelta(seconds=terms.deadline)
    restart = timedelta(seconds=terms.overhead) - LOADING
    deadline = By(terms.work / HOUR, by, restart=restart)
    return builders.workload(
        strategy="deadline", deadline=deadline, checkpoint=CHECKPOINT, max_price=builders.per_hour("0.45")
    )


def _offers(at: tick_engine.Sight) -> list[Offer]:
    floor = builders.per_hour("0.20") if at.up[0] else None
    return [builders.offer(number, floor=floor) for number in (1, 2)]


def _leases(at: tick_engine.Sight) -> tuple[Lease, ...]:
    tenure = at.runs.tenure
    if tenure is None:
        return ()
    rate = builders.per_hour("0.20" if tenure is Tenure.INTERRUPTIBLE else "0.40")
    return (builders.lease(9, tenure=tenure, gpu_rate=rate),)


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
