"""One pool is the least number of pools: `hedged` chooses over it as `deadline` does, in the bench and in the plan."""

import os
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from agent.decide.deadline import hazards
from agent.domain.market.tenure import Tenure
from agent.lab.deadline import deadline_jobs, learning_rule
from agent.lab.jobs import tick_engine
from agent.lab.jobs.job_terms import HOUR, Flags, JobCase
from agent.lab.pools import own_kernel
from agent.lab.traces import trace_files
from strategies.hedged_rules import deadline_on_one_market
from strategies.hedged_rules.params import HedgedParams
from tests.lab.one_pool_cases import lived, over
from tests.lab.planned_job import GAP, OVERHEAD, Planned

RECORDED = os.environ.get("GPUBID_TRACES")
RECORDS = ("aws-2022", "aws-2022-11-28", "aws-2023", "aws-2023-02-27", "gcp-h100-2025")
NUMBERS = HedgedParams(
    reserve=timedelta(0),
    start_delay=timedelta(seconds=OVERHEAD),
    return_after=timedelta(0),
    return_gain=0.0,
    headroom=0.0,
)


def spells(seed: int) -> list[bool]:
    hours = np.random.default_rng(seed).choice([0.2, 0.5, 1.0, 2.0, 4.0], 40)
    return [bool(place % 2) for place, length in enumerate(hours) for _ in range(max(int(length * HOUR / GAP), 1))]


def job(up: list[bool], gap: int = GAP, overhead: int = OVERHEAD, hours: int = 8) -> JobCase:
    setting = deadline_jobs.Setting(hours * HOUR, round(hours * 1.25 * HOUR), overhead)
    return deadline_jobs.case(over(up, gap, 0.2, 0.4), setting)


@pytest.mark.parametrize("seed", range(4))
def test_the_bench_over_one_pool_chooses_as_deadline_does(seed: int) -> None:
    case = job(spells(seed))
    alone = tick_engine.play(case, own_kernel.policy(case.terms))
    assert alone.choices == lived(learning_rule.rule(hazards.SHIPPED), case).choices
    assert {choice.tenure for choice in alone.choices} == {None, Tenure.INTERRUPTIBLE, Tenure.ON_DEMAND}


@pytest.mark.parametrize("seed", range(4))
def test_the_plan_on_one_market_chooses_as_deadline_does(seed: int) -> None:
    case = job(spells(seed))
    hedged = lived(Planned(NUMBERS).choose, case)
    assert hedged.choices == lived(Planned(deadline_on_one_market.numbers(NUMBERS)).choose, case).choices
    assert not hedged.is_late(case.terms)
    assert {choice.tenure for choice in hedged.choices} == {None, Tenure.INTERRUPTIBLE, Tenure.ON_DEMAND}


@pytest.mark.nightly
@pytest.mark.skipif(not RECORDED, reason="GPUBID_TRACES names no folder of recorded traces")
@pytest.mark.parametrize("record", RECORDS)
def test_the_bench_chooses_alike_over_recorded_windows(record: str) -> None:
    tenures: set[Tenure | None] = set()
    for trace in trace_files.folder(Path(RECORDED or "") / record):
        up: Flags = trace.available > 0
        for first in range(0, len(up) - 22 * HOUR // trace.gap_seconds, len(up) // 3):
            window = up[first : first + 22 * HOUR // trace.gap_seconds].tolist()
            case = job(window, trace.gap_seconds, 720, hours=16)
            alone = tick_engine.play(case, own_kernel.policy(case.terms))
            assert alone.choices == lived(learning_rule.rule(hazards.SHIPPED), case).choices, (trace.pool, first)
            tenures |= {choice.tenure for choice in alone.choices}
    assert tenures == {None, Tenure.INTERRUPTIBLE, Tenure.ON_DEMAND}
