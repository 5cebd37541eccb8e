"""Slots that run are not all useful: ready, idle, stalled and held are counted apart, by workload."""

from prometheus_client import CollectorRegistry

from agent.domain.work.ready_sign import Readiness, ReadySign
from agent.telemetry.metric_updates import Metrics
from tests.support import builders
from tests.support.builders import ago, slot
from tests.support.expiring import held


def test_ready_idle_stalled_and_held_slots() -> None:
    registry = CollectorRegistry()
    work = builders.workload(slots=4, ready=Readiness(ReadySign.PORT, port=80))
    leases = (
        builders.lease(1, slot=slot(index=0)),
        builders.lease(2, slot=slot(index=1), ready_since=ago(minutes=50), stalled_since=ago(minutes=9)),
        builders.lease(3, slot=slot(index=2), ready_since=ago(minutes=50), idle_since=ago(minutes=20)),
    )
    waits = held("held", "slot:train/3")
    Metrics(registry, ["vast"], ["train"]).see_fleet(builders.fleet(workloads=(work,), leases=leases, holds=(waits,)))

    def value(name: str) -> float | None:
        return registry.get_sample_value(f"gpubid_slots_{name}", {"workload": "train"})

    assert [value(name) for name in ("running", "ready", "idle", "stalled", "held")] == [3, 2, 1, 1, 1]
