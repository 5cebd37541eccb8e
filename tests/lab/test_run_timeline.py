"""The timeline of a run, tick by tick, is the scored run: over one pool, over several, and of slots kept warm."""

import json
from pathlib import Path

import pytest

from agent.domain.market.tenure import Tenure
from agent.lab.availability import availability_problem as availability
from agent.lab.deadline import deadline_jobs
from agent.lab.deadline import deadline_problem as deadline
from agent.lab.engine import run_timeline
from agent.lab.jobs import trace_windows
from agent.lab.pools import pools_jobs
from agent.lab.pools import pools_problem as pools


def folder(tmp_path: Path) -> Path:
    for number in range(2):
        up = [int((tick % 20 < 10) is (number == 0)) for tick in range(300)]
        prices = {"spot_price": 1.0 + number / 10, "on_demand_price": 3.0}
        row = {"pool": f"us-east-1{'ab'[number]}", "gap_seconds": 600, "start": "2026-01-01T00:00:00Z", "available": up}
        (tmp_path / f"{number}.json").write_text(json.dumps(row | prices))
    return tmp_path


def is_whole(told: run_timeline.Timeline, lane: run_timeline.Lane) -> None:
    assert len(lane.done) == len(lane.tenures) + 1
    assert list(lane.done) == sorted(lane.done)
    assert lane.done[-1] == pytest.approx(told.work)


def test_one_pool(tmp_path: Path) -> None:
    setting = deadline_jobs.Setting.of_hours(8, 12, 0.2)
    made = deadline.DeadlineProblem(folder(tmp_path), 12, 12, (setting,), trace_windows.OWN)
    case = made.cases()[0]
    told = made.timeline(made.strategies(), case)
    assert [lane.strategy for lane in told.lanes] == list(made.strategies())
    for lane in told.lanes:
        assert lane.dollars == pytest.approx(made.score(lane.strategy, case).cost)
        is_whole(told, lane)
        held = zip(told.bands[0].is_up, lane.tenures, strict=False)
        assert all(is_up for is_up, tenure in held if tenure is Tenure.INTERRUPTIBLE)


def test_several_pools_with_moves(tmp_path: Path) -> None:
    job = pools_jobs.Job(8, 12, 0.2)
    made = pools.PoolsProblem(folder(tmp_path), ((),), (job,), pools_jobs.Windows(12, 12))
    case = made.cases()[0]
    assert case.group == "us-east-1a + us-east-1b, 12 h allowed, 0.2 h a start"
    told = made.timeline(["eager", "stay", "rate", "optimum"], case)
    assert [lane.strategy for lane in told.lanes] == ["eager", "rate"]
    assert [band.pool for band in told.bands] == ["us-east-1a", "us-east-1b"]
    for lane in told.lanes:
        assert lane.dollars == pytest.approx(made.score(lane.strategy, case).cost)
        is_whole(told, lane)
    # Capacity goes from one pool to the other every ten ticks.
    assert told.lanes[0].moves[:2] == (10, 20)


def test_slots_kept_warm(tmp_path: Path) -> None:
    made = availability.AvailabilityProblem(folder(tmp_path), 6, 6)
    case = made.cases()[0]
    told = made.timeline(["on_demand", "spothedge_1", "hedged", "optimum"], case)
    assert [shelf.strategy for shelf in told.shelves] == ["on_demand", "spothedge_1", "hedged"]
    assert [len(band.is_up) for band in told.bands] == [case.steps - 1] * 2
    for shelf in told.shelves:
        scored = made.score(shelf.strategy, case)
        assert shelf.dollars == pytest.approx(scored.cost)
        enough = [warm >= told.slots for warm in shelf.warm[told.unjudged :]]
        assert sum(enough) / len(enough) == pytest.approx(scored.figures["availability"], abs=1 / len(enough))
        hours = sum(shelf.on_demand[told.unjudged :]) * told.gap
        assert hours == pytest.approx(scored.figures["on_demand_hours"], abs=3 * told.gap)
        assert all(
            warm <= sum(held)
            for warm, held in zip(shelf.warm, zip(shelf.interruptible, shelf.on_demand, strict=True), strict=True)
        )
    # Of all there are, only a few can be read on one page.
    assert len(made.timeline(made.strategies(), case).shelves) == len(availability.SHOWN)
