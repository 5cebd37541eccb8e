"""The sentence that an array's budget stops starts agrees with the reserve that stops them."""

from typing import Any

import pytest

from agent.decide.limits import first_tasks, limits
from agent.decide.limits.limits import Limits
from agent.domain.market import gpu
from agent.domain.market.tenure import Tenure
from agent.domain.record import budget
from agent.domain.record.budget import Budget, Thresholds
from agent.domain.slot import Slot
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.decision import Reason, Rent
from agent.domain.work.workload import Workload, WorkloadKind
from tests.support import builders
from tests.support.builders import per_hour, usd


def array(at_once: int | None = 8, hours: float | None = 10.0, **wants: Any) -> Workload:
    return builders.workload(
        "sweep",
        kind=WorkloadKind.BATCH,
        slots=50,
        array=ArrayTerms(at_once, task_hours=hours),
        max_price=per_hour("0.5"),
        requirements=builders.requirements(**{"gpu_models": (), **wants}),
    )


@pytest.mark.parametrize(
    ("hard", "words"),
    [
        (
            Thresholds(total=usd(12)),
            "at most 2 of 8 slots are live: without gpu each task sets $5.0000 of the budget's",
        ),
        (Thresholds(per_day=usd("39.9"), total=usd(400)), "(max_per_day) aside, which is task_hours at max_price"),
        (Thresholds(per_month=usd(4)), "until 5 tasks are done, no slot begins: "),
    ],
)
def test_a_budget_that_stops_starts_is_named(hard: Thresholds, words: str) -> None:
    assert words in (first_tasks.stopped_starts(array(), hard) or "")


@pytest.mark.parametrize(
    ("work", "hard"),
    [
        (array(), Thresholds(total=usd(40))),
        (array(), Thresholds(per_hour=per_hour(1))),
        (array(None), Thresholds(total=usd(40))),
        (array(hours=None), Thresholds(total=usd(1))),
        (array(gpu_models=(gpu.model("RTX 4090"),)), Thresholds(total=usd(1))),
        (builders.workload(requirements=builders.requirements(gpu_models=())), Thresholds(total=usd(1))),
    ],
    ids=["all fit", "a rate", "purse", "no task_hours", "a named card", "no array"],
)
def test_nothing_is_said_where_it_stops_none_or_another_figure_counts(work: Workload, hard: Thresholds) -> None:
    assert first_tasks.stopped_starts(work, hard) is None


def test_as_many_begin_as_it_says() -> None:
    scope, hard = budget.of_workload("sweep"), Thresholds(total=usd(12))
    fleet = builders.fleet(workloads=(array(),))
    caps, standing, begun = Limits(budgets={scope: Budget(hard, Thresholds())}), limits.committed_by_fleet(fleet), 0
    for index in range(8):
        rent = Rent(
            Slot("sweep", index),
            builders.offer(50 + index),
            Tenure.INTERRUPTIBLE,
            per_hour("0.2"),
            per_hour("0.204"),
            Reason("code", "sentence"),
        )
        if limits.strike(rent, fleet, standing, caps, ()) is None:
            begun, standing = begun + 1, standing.after(rent)
    assert f"at most {begun} of 8" in (first_tasks.stopped_starts(array(), hard) or "")
