"""Deadline jobs over a market in memory: none late that on-demand from the start, with the same delays, would meet."""

import dataclasses
import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta

import pytest

from agent import strategy_files
from agent.decide.strategy import Tuned
from tests.lab import trial

JOBS = 1000
SLICE = range(0, JOBS, 50)


def tuned(**changes: object) -> dict[str, Tuned]:
    """Return the shipped strategies, `deadline` with these numbers changed."""
    found = strategy_files.load()
    chosen = found["deadline"]
    params = chosen.params.model_validate({**chosen.params.model_dump(), **changes})
    return {**found, "deadline": dataclasses.replace(chosen, params=params)}


def lived(number: int, strategy: str, strategies: dict[str, Tuned]) -> trial.Lived:
    """Return what became of a job under a strategy."""
    return trial.live(trial.drawn(f"job-{number}"), strategy, strategies)


def is_avoidably_late(number: int, strategies: dict[str, Tuned]) -> bool:
    """Return whether a job is late under `deadline` although on-demand from its start is in time."""
    job = trial.drawn(f"job-{number}")
    # Whoever is in time need not be compared.
    return lived(number, "deadline", strategies).is_late(job) and not lived(number, "ondemand", strategies).is_late(job)


def avoidably_late(numbers: Iterable[int]) -> list[int]:
    """Return the jobs that were late although on-demand from their start would have been in time."""
    strategies = tuned()
    return [number for number in numbers if is_avoidably_late(number, strategies)]


@pytest.mark.nightly
def test_a_slice_of_the_thousand_jobs_is_never_late_where_on_demand_is_not() -> None:
    assert avoidably_late(SLICE) == []


@pytest.mark.nightly
def test_a_thousand_jobs_are_never_late_where_on_demand_is_not() -> None:
    parts = [range(first, JOBS, 8) for first in range(8)]
    with ProcessPoolExecutor(os.process_cpu_count() if hasattr(os, "process_cpu_count") else os.cpu_count()) as pool:
        late = [number for found in pool.map(avoidably_late, parts) for number in found]
    assert late == []


@pytest.mark.nightly
def test_the_trials_can_be_failed_and_do_spend_slack() -> None:
    careless = tuned(learn=False, reserve=timedelta(0), start_delay=timedelta(0), slack_share=0.0)
    assert any(is_avoidably_late(number, careless) for number in range(12))
    careful, base = ([lived(number, name, tuned()) for number in range(12)] for name in ("deadline", "ondemand"))
    assert sum(job.dollars for job in careful) < sum(job.dollars for job in base)
    assert any(job.losses for job in careful)


@pytest.mark.parametrize("strategy", ["deadline", "ondemand"])
def test_equal_seeds_give_equal_lives(strategy: str) -> None:
    strategies = tuned()
    assert lived(3, strategy, strategies) == lived(3, strategy, strategies)
