"""A slot that is done, that its demand does not want or that a person stopped is not missing, so no alert says so."""

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from agent.domain.record import hold
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.slot_demand import Demand, DemandFrom
from agent.domain.work.order import Order
from agent.pass_metrics import Figures
from agent.telemetry.metric_updates import Metrics
from tests.support import builders
from tests.support.builders import NOW
from tests.support.queue_page import served
from tests.support.world import MINUTE, rehearsed, work


def unmet(registry: CollectorRegistry) -> float:
    """Return the slots of `train` that are missing, as the recording rule counts them."""
    wanted, *others = (
        registry.get_sample_value(f"gpubid_slots_{name}", {"workload": "train"})
        for name in ("wanted", "running", "held", "spare", "waiting")
    )
    assert wanted is not None
    return wanted - sum(count or 0 for count in others)


def test_finished_slots_are_not_wanted() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry, ["vast"], ["train"])
    marks = tuple(OperatorHold(Word.DONE, hold.of_slot(builders.slot("train", index)), NOW, "x") for index in (0, 2))
    works = (builders.workload(slots=5),)
    for holds, wanted in (((), 5), (marks, 3), ((OperatorHold(Word.DONE, hold.of_workload("train"), NOW, "x"),), 0)):
        metrics.see_fleet(builders.fleet(workloads=works, holds=holds))
        assert registry.get_sample_value("gpubid_slots_wanted", {"workload": "train"}) == wanted


async def test_slots_that_a_demand_does_not_want_wait(tmp_path: Path) -> None:
    async with served() as page:
        page.tasks = "4"
        asked = work(slots=4, demand=Demand(0, DemandFrom.HTTP, page.url, per_slot=4))
        async with rehearsed(tmp_path, workloads=(asked,), poll=MINUTE) as world:
            registry = CollectorRegistry()
            figures = Figures(Metrics(registry, ["vast"], ["train"]))
            figures.see(world.app, await world.cycle())
            await world.app.demand.settle()
            figures.see(world.app, await world.cycle())
            assert unmet(registry) == 1, "the one slot that it wants is missing until it runs"
            await world.until_running(30, slots=1)
            figures.see(world.app, await world.cycle())
            assert registry.get_sample_value("gpubid_slots_waiting", {"workload": "train"}) == 3
            assert unmet(registry) == 0


@pytest.mark.parametrize(
    ("orders", "held"),
    [
        ([Order("pause", "train")], 2),
        ([Order("drain", "train"), Order("release", "train/0")], 1),
        ([Order("lock", "train"), Order("release", "train/0")], 1),
        ([Order("kill", "train/0")], 1),
        ([Order("kill", str(hold.EVERYTHING))], 2),
        ([Order("drain", "market:vast")], 0),
    ],
    ids=lambda orders: orders if isinstance(orders, int) else "-".join(each.verb for each in orders),
)
async def test_slots_that_a_person_stopped_are_not_missing(tmp_path: Path, orders: list[Order], held: int) -> None:
    async with rehearsed(tmp_path, workloads=(work(slots=2),), poll=MINUTE) as world:
        await world.until_running(30)
        registry = CollectorRegistry()
        figures = Figures(Metrics(registry, ["vast"], ["train"]))
        for each in orders:
            await world.app.say(each, "me")
        figures.see(world.app, await world.cycle(minutes=3))
        assert registry.get_sample_value("gpubid_slots_held", {"workload": "train"}) == held
        assert unmet(registry) == 0
