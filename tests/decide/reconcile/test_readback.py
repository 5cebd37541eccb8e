"""Whether the instance is as ordered."""

from typing import Any

import pytest

from agent.decide.reconcile import billed_times, readback
from agent.domain.market import gpu
from agent.domain.market.instance import InstanceState
from agent.domain.market.tenure import Tenure
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import LeaseState
from tests.support import builders

ASKED = readback.of_lease(builders.lease())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tenure": Tenure.ON_DEMAND}, "it is on_demand"),
        ({"host_id": "h9"}, "it is on host h9"),
        ({"gpu_rate": builders.per_hour("0.2202")}, "it costs $0.2202/h"),
        ({"gpus": 2}, "it has 2 GPUs instead of 1"),
        ({"gpu": gpu.model("GTX 1080")}, "it has GTX 1080 instead of RTX 4090"),
        ({"disk_gb": 40.0}, "its disk has 40 GB"),
        ({"disk_gb": 10.0}, "its disk has 10 GB"),
    ],
    ids=str,
)
def test_what_differs_is_said(changes: dict[str, Any], said: str) -> None:
    assert readback.difference(ASKED, builders.instance(**changes)).startswith(said)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"gpu_rate": builders.per_hour("0.2201")},
        {"gpu_rate": builders.per_hour("0.10")},
        {"disk_gb": 20.5},
        {"gpu": gpu.model("RTX 4090 24GB")},
        {"gpu": gpu.model("")},
    ],
    ids=str,
)
def test_cheaper_and_rounded_is_no_difference(changes: dict[str, Any]) -> None:
    assert readback.difference(ASKED, builders.instance(**changes)) == ""


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        ("nv1", ""),
        (None, ""),
        ("nv2", "it mounts network volume nv2 instead of nv1"),
        ("", "it mounts network volume none"),
    ],
)
def test_a_rent_without_its_network_volume_is_not_as_ordered(shown: str | None, said: str) -> None:
    work = builders.workload(requirements=builders.requirements(network_volume="nv1"))
    found = readback.difference(readback.of_lease(builders.lease(), work), builders.instance(network_volume=shown))
    assert found.startswith(said)
    assert bool(found) is bool(said)
    assert readback.difference(ASKED, builders.instance(network_volume=shown)) == ""


def test_what_an_intent_does_not_know_is_not_compared() -> None:
    vague = readback.of_intent(builders.intent(tenure=None, host_id="", price=None, disk_gb=0.0))
    row = builders.instance(tenure=Tenure.ON_DEMAND, gpu_rate=builders.per_hour(9), disk_gb=999.0)
    assert readback.difference(vague, row) == ""
    exact = readback.of_intent(builders.intent(disk_gb=20.0, gpu=builders.RTX_4090, gpus=1))
    assert readback.difference(exact, builders.instance()) == ""
    assert readback.difference(exact, builders.instance(tenure=Tenure.ON_DEMAND)) != ""
    assert readback.difference(exact, builders.instance(gpu_rate=builders.per_hour("0.40"))).startswith("it costs $0.4")
    assert readback.difference(exact, builders.instance(disk_gb=200.0)).startswith("its disk has 200 GB")
    assert readback.difference(exact, builders.instance(gpus=2)) == "it has 2 GPUs instead of 1"
    assert readback.difference(exact, builders.instance(gpu=gpu.model("A40"))) == "it has A40 instead of RTX 4090"


@pytest.mark.parametrize(
    ("state", "reason", "is_done"),
    [
        (InstanceState.LOADING, billed_times.LEFTOVER, True),
        (InstanceState.RUNNING, billed_times.LEFTOVER, True),
        (InstanceState.PAUSED, billed_times.LEFTOVER, False),
        (InstanceState.FAILED, billed_times.LEFTOVER, False),
        (InstanceState.UNKNOWN, billed_times.LEFTOVER, False),
        (InstanceState.RUNNING, "ordered", False),
    ],
)
def test_a_leftover_that_starts_was_rented_and_counts_once_as_not_as_ordered(
    state: InstanceState, reason: str, *, is_done: bool
) -> None:
    """A market that called each rent refused and did it had one rented every three minutes."""
    left = builders.lease(state=LeaseState.RELEASING, end_reason=reason)
    fact = readback.refused_and_done(left, builders.instance(state=state), None)
    assert (fact is not None and fact.kind is EventKind.LEASE_MISMATCHED) is is_done
    if fact is not None:
        assert fact.after.state is LeaseState.RELEASING
        assert readback.refused_and_done(fact.after, builders.instance(state=state), None) is None
