"""Disasters while demands grow, shrink and fall silent: nothing is paid twice, lost, or released that may not be."""

import dataclasses
import datetime as dt
import random
from collections.abc import Iterator

import pytest
import structlog

from agent.domain.slot_demand import Demand, DemandFrom
from agent.domain.work.workload import Workload, WorkloadKind
from agent.observe.demand import demand_sources
from agent.observe.demand.demand_sources import DemandUnknownError
from tests.disasters import draw, seed_runs, stage
from tests.disasters.points.slots import Slots
from tests.disasters.story import Work

SEEDS = range(200_101, 200_121)
TERMS = Demand(0, DemandFrom.HTTP, "http://queue.test/", shrink_after=dt.timedelta(minutes=3))
_workload = stage.workload


def demanded(work: Work) -> Workload:
    """Return a workload of a story, with a demand if it is a service."""
    made = _workload(work)
    if made.kind is not WorkloadKind.SERVICE:
        return made
    return dataclasses.replace(made, slots=made.slots + 2, demand=TERMS)


class Queue:
    """Whoever owns the queue: long at one number of tasks, and now and then away for long."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(f"{seed}/queue")
        self._tasks, self._left = 0, 0
        self.asked = 0

    async def tasks(self, _: Demand) -> int:
        """Answer as `demand_sources.tasks` does."""
        self.asked += 1
        if not self._left:
            self._tasks, self._left = self._dice.choice((-1, 0, 0, 1, 2, 3, 10**9)), self._dice.randint(1, 30)
        self._left -= 1
        if self._tasks < 0:
            raise DemandUnknownError("it answers 503")
        return self._tasks


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    seed_runs.quietly()
    yield
    # A process that logs nothing would fail the next test that reads the log.
    structlog.reset_defaults()


@pytest.mark.nightly
@pytest.mark.parametrize("seed", SEEDS)
def test_every_point_but_the_sixth_holds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge of the sixth point, that every slot runs, knows no demand."""
    queue = Queue(seed)
    monkeypatch.setattr(stage, "workload", demanded)
    monkeypatch.setattr(demand_sources, "tasks", queue.tasks)
    monkeypatch.setattr(Slots, "judge", lambda *_, **__: ())
    assert seed_runs.lived(seed).broken is None
    assert queue.asked or "service" not in {work.kind for work in draw.story(seed).works}, "nobody asked"
