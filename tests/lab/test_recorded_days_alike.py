"""Live equals bench on recorded days: the whole plan() and the lab's rules choose alike, tick by tick.

A recorded market has no hosts, so a pool is shown to the plan as a few hosts at one price, or as one for a service.

One difference is meant: the daemon counts what a move costs by itself (`voluntary_move.MOVE_WORTH_HOURS`, and loading
while the old lease runs), so with little work left it finishes on demand where the bench still returns to a bid.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from agent.decide.deadline import hazards
from agent.decide.service import availability_dial
from agent.domain.market.tenure import Tenure
from agent.lab.availability import availability_ticks, live_dial, own_rule, span
from agent.lab.deadline import deadline_jobs, learning_rule
from agent.lab.jobs import tick_engine
from agent.lab.jobs.job_terms import HOUR, Course, Flags, JobCase, Terms, Window
from agent.lab.pools import own_kernel
from agent.lab.traces import trace_files
from agent.lab.traces.trace_files import Trace
from tests.lab import planned_job, planned_pools, planned_service
from tests.lab.one_pool_cases import lived, over
from tests.lab.planned_service import COLD, GAIN, POOLS, PRICES, STEP

RECORDED = os.environ.get("GPUBID_TRACES")
GAP = 600
"""The seconds of a tick: only records of ten minutes are played, so that ticks and starts never make a tie."""
TICKS = 61
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not RECORDED, reason="GPUBID_TRACES names no folder of recorded traces"),
]
RECORDS = ("aws-2022", "aws-2022-11-28", "gcp-h100-2025")


def pools(record: str) -> tuple[Trace, ...]:
    """The pools of a record that come and go."""
    found = trace_files.folder(Path(RECORDED or "") / record)
    return tuple(each for each in found if each.gap_seconds == GAP and 0 < (each.available > 0).mean() < 1)


def stretches(up: Flags, count: int = 3) -> Iterator[Flags]:
    """Yield a few stretches in which capacity comes and goes, each from a tick at which all pools have some."""
    first = 0
    for _ in range(count):
        ends = len(up) - TICKS
        begins = [at for at in range(first, ends) if up[at].all() and not up[at : at + TICKS].all(axis=0).any()]
        if not begins:
            return
        yield up[begins[0] : begins[0] + TICKS]
        first = begins[0] + TICKS


def first_difference(one: tick_engine.Run, other: tick_engine.Run) -> int | None:
    """Return the first tick with different choices, or None."""
    pairs = zip(one.choices, other.choices, strict=False)
    return next((tick for tick, (mine, theirs) in enumerate(pairs) if mine != theirs), None)


def is_late_return(job: JobCase, by_rule: tick_engine.Run, tick: int) -> bool:
    """Return whether the bench leaves on-demand for a bid at a tick with at most half an hour of work left."""
    before, now = by_rule.choices[tick - 1], by_rule.choices[tick]
    left = tick_engine.play(job, tick_engine.Planned((*by_rule.choices[:tick], *[tick_engine.NOTHING] * 99)))
    todo = job.terms.work - left.in_time
    return (before.tenure, now.tenure) == (Tenure.ON_DEMAND, Tenure.INTERRUPTIBLE) and todo <= HOUR / 2


@pytest.mark.parametrize("record", RECORDS)
def test_deadline_chooses_alike_in_one_pool(record: str) -> None:
    compared, tenures, finished = 0, set(), 0
    for trace in pools(record):
        for up in stretches((trace.available > 0)[:, None]):
            window = over([bool(each) for each in up[:, 0]], GAP, 0.2, 0.4)
            job = deadline_jobs.case(window, deadline_jobs.Setting(8 * HOUR, 10 * HOUR, planned_job.OVERHEAD))
            by_rule = lived(learning_rule.rule(hazards.SHIPPED), job)
            by_plan = lived(planned_job.Planned(planned_job.PARAMS).choose, job)
            parted = first_difference(by_plan, by_rule)
            if parted is not None:
                assert is_late_return(job, by_rule, parted), (trace.pool, parted)
                finished += 1
            compared += 1
            tenures |= {choice.tenure for choice in by_rule.choices}
    assert compared >= 3
    assert finished <= compared / 5
    assert tenures == {None, Tenure.INTERRUPTIBLE, Tenure.ON_DEMAND}


@pytest.mark.parametrize("record", RECORDS)
def test_hedged_chooses_alike_over_two_pools(record: str) -> None:
    found, compared, tenures = pools(record), 0, set()
    for one, other in zip(found[::2], found[1::2], strict=False):
        for up in stretches(np.stack([one.available > 0, other.available > 0], axis=1)):
            spot = np.tile([0.25, 0.20], (TICKS, 1))
            terms = Terms(planned_pools.MARKETS, GAP, 8 * HOUR, 10 * HOUR, planned_pools.OVERHEAD, np.zeros((2, 2)))
            course = Course(up, spot, np.full(up.shape, planned_pools.ASK))
            job = JobCase("recorded", "cluster", "group", terms, Window(planned_pools.MARKETS, GAP, 0, course))
            by_kernel = tick_engine.play(job, own_kernel.Wander(terms))
            by_plan = tick_engine.play(job, planned_pools.Planned(terms))
            assert by_plan.choices == by_kernel.choices, (one.pool, other.pool, compared)
            compared += 1
            tenures |= {choice.tenure for choice in by_kernel.choices}
    assert compared >= 2
    assert tenures >= {Tenure.INTERRUPTIBLE, Tenure.ON_DEMAND}


@pytest.mark.parametrize("target", [None, 0.99])
@pytest.mark.parametrize("record", RECORDS)
def test_a_service_weighs_and_chooses_alike(record: str, target: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    setting, looks = span.Setting(slots=1), GAP // int(STEP.total_seconds())
    up = np.stack([each.available > 0 for each in pools(record)[: len(POOLS)]])[:, : 36 * HOUR // GAP]
    day = span.Span(
        group="recorded",
        first=0,
        pools=POOLS,
        capacity=up.astype(np.int64).repeat(looks, axis=1),
        prices=np.repeat(np.array(PRICES)[:, None], up.shape[1] * looks, axis=1),
        on_demand_price=planned_service.ASK,
        step_seconds=STEP.total_seconds(),
        cold_steps=COLD,
        begins_hours=0.0,
    )
    dial = None if target is None else live_dial.begun(day, setting, target, availability_dial.LAW, None)
    planned = planned_service.Planned(**({"short_worth": 24.0} if target is None else {"target": target}))
    rule = own_rule.Hedged(day, setting, worth=24.0 if dial is None else dial, least_gain=GAIN)
    both = planned_service.Both(rule, planned, planned_service.Asked(monkeypatch))
    availability_ticks.run(lambda *_: both, day, setting)
    assert both.compared > 50
    assert planned.losses > 0
    if dial is not None:
        times = [[(each.wanted, each.short) for each in time.stretches] for time in (planned.warm["train"], dial.time)]
        assert times[0] == times[1]
