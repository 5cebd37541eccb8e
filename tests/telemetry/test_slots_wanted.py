"""A slot that is done is wanted no more, so that no alert says that it is missing."""

from prometheus_client import CollectorRegistry

from agent.domain.record import hold
from agent.domain.record.hold import OperatorHold, Word
from agent.telemetry.metric_updates import Metrics
from tests.support import builders
from tests.support.builders import NOW


def test_finished_slots_are_not_wanted() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry, ["vast"], ["train"])
    marks = tuple(OperatorHold(Word.DONE, hold.of_slot(builders.slot("train", index)), NOW, "x") for index in (0, 2))
    works = (builders.workload(slots=5),)
    for holds, wanted in (((), 5), (marks, 3), ((OperatorHold(Word.DONE, hold.of_workload("train"), NOW, "x"),), 0)):
        metrics.see_fleet(builders.fleet(workloads=works, holds=holds))
        assert registry.get_sample_value("gpubid_slots_wanted", {"workload": "train"}) == wanted
