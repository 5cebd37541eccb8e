"""Deadline jobs over a market in memory: none late that on-demand from the start, with the same delays, would meet."""

import dataclasses
import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta

import pytest

from agent import tuning
from agent.decide.strategy import Tuned
from agent.lab import trial

JOBS = 1000
SLICE = range(0, JOBS, 25)


def tuned(**changes: object) -> dict[str, Tuned]:
    """Return the shipped strategies, `deadline` with these numbers changed."""
    found = tuning.load()
    chosen = found["deadline"]
    params = chosen.params.model_validate({**chosen.params.model_dump(), **changes})
    return {**found, "deadline": dataclasses.replace(chosen, params=params)}


def lived(number: int, strategies: dict[str, Tuned]) -> tuple[trial.Setting, trial.Lived, trial.Lived]:
    """Return a job, and what became of it under `deadline` and under on-demand from its start."""
    setting = trial.drawn(f"job-{number}")
    mine, base = (trial.live(setting, name, strategies) for name in ("deadline", "ondemand"))
    return setting, mine, base


def avoidably_late(numbers: Iterable[int]) -> list[int]:
    """Return the jobs that were late although on-demand from their start would have been in time."""
    strategies = tuned()
    found = ((number, *lived(number, strategies)) for number in numbers)
    return [number for number, job, mine, base in found if mine.is_late(job) and not base.is_late(job)]


def test_a_slice_of_the_thousand_jobs_is_never_late_where_on_demand_is_not() -> None:
    assert avoidably_late(SLICE) == []


@pytest.mark.nightly
def test_a_thousand_jobs_are_never_late_where_on_demand_is_not() -> None:
    parts = [range(first, JOBS, 8) for first in range(8)]
    with ProcessPoolExecutor(os.process_cpu_count() if hasattr(os, "process_cpu_count") else os.cpu_count()) as pool:
        late = [number for found in pool.map(avoidably_late, parts) for number in found]
    assert late == []


def test_the_trials_can_be_failed_and_do_spend_slack() -> None:
    careless = tuned(learn=False, reserve=timedelta(0), start_delay=timedelta(0), slack_share=0.0)
    jobs = [lived(number, careless) for number in range(12)]
    assert any(mine.is_late(job) and not base.is_late(job) for job, mine, base in jobs)
    careful = [lived(number, tuned()) for number in range(12)]
    assert sum(mine.dollars for _, mine, _ in careful) < sum(base.dollars for _, _, base in careful)
    assert any(mine.losses for _, mine, _ in careful)


def test_equal_seeds_give_equal_lives() -> None:
    strategies = tuned()
    assert lived(3, strategies) == lived(3, strategies)
