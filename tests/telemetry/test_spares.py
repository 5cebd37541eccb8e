"""Slots that stay empty because they would not pay are counted apart from those that are missing."""

from prometheus_client import CollectorRegistry

from agent.domain.work.decision import SPARE, Hold, Reason
from agent.telemetry.metric_updates import Metrics
from tests.support import builders


def shown(registry: CollectorRegistry) -> float | None:
    return registry.get_sample_value("gpubid_slots_spare", {"workload": "train"})


def test_an_empty_slot_that_would_not_pay_is_spare_until_it_is_filled() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry, ["vast"], ["train"])
    assert shown(registry) == 0
    work = builders.workload(slots=3)
    spare = Hold(builders.slot("train", 2), Reason(SPARE, "why"))
    missing = Hold(builders.slot("train", 1), Reason("no_offer", "why"))
    metrics.see_spares(builders.fleet(workloads=(work,)), [spare, missing])
    assert shown(registry) == 1
    held = builders.lease(1, slot=builders.slot("train", 2))
    metrics.see_spares(builders.fleet(workloads=(work,), leases=(held,)), [spare, missing])
    assert shown(registry) == 0
