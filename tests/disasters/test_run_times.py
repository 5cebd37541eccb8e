"""Disasters while windows close and running times end: nothing is paid twice, lost, or released that may not be."""

import dataclasses
import datetime as dt
from collections.abc import Iterator

import pytest
import structlog

from agent.domain.work.run_times.run_window import Outside, WindowRule
from agent.domain.work.run_times.running_limit import AtLimit, LimitOf, RunningLimit
from agent.domain.work.workload import Workload
from tests.disasters import seed_runs, stage
from tests.disasters.points.slots import Slots
from tests.disasters.story import Work

TWO_HOURS = dt.timedelta(hours=2)
SEEDS = range(200_001, 200_021)
LIMITS = (
    RunningLimit(TWO_HOURS),
    RunningLimit(TWO_HOURS, then=AtLimit.DONE),
    RunningLimit(TWO_HOURS, LimitOf.LEASE, AtLimit.MOVE),
    RunningLimit(TWO_HOURS, LimitOf.LEASE, AtLimit.RELEASE),
)
_workload = stage.workload


def timed(work: Work, seed: int) -> Workload:
    """Return a workload of a story with windows, a running time, or both."""
    made, turn = _workload(work), seed + len(work.name) + work.slots
    hours = WindowRule("0 */3 * * *", TWO_HOURS)
    if made.deadline is None and turn % 3:
        made = dataclasses.replace(made, windows=(hours,), outside=list(Outside)[turn % 2])
    return made if turn % 2 else dataclasses.replace(made, max_running=(LIMITS[seed % len(LIMITS)],))


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    seed_runs.quietly()
    yield
    # A process that logs nothing would fail the next test that reads the log.
    structlog.reset_defaults()


@pytest.mark.nightly
@pytest.mark.parametrize("seed", SEEDS)
def test_every_point_but_the_sixth_holds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge of the sixth point, that every slot runs, knows no window."""
    monkeypatch.setattr(stage, "workload", lambda work: timed(work, seed))
    monkeypatch.setattr(Slots, "judge", lambda *_, **__: ())
    assert seed_runs.lived(seed).broken is None
