"""The true state of this market, for tests and the control API."""

from typing import Any

from agent.simulator.runpod.model import Pod
from agent.simulator.runpod.world import World


def as_json(world: World) -> dict[str, Any]:
    """Return the whole state as JSON. Pods have the keys that contracts have on the other market."""
    total = world.charged_total()
    return {
        "now": world.now,
        "mode": world.mode.value,
        "credit": world.credit,
        "contracts": [_pod(pod) for pod in world.pods.values()],
        "billing_now": [world.fleet.pod_id(number) for number in world.fleet.till.billing()],
        "charged_total": total,
    }


def _pod(pod: Pod) -> dict[str, Any]:
    return {
        "id": pod.pod_id,
        "number": pod.contract_id,
        "label": pod.label,
        "machine_id": pod.host.machine_id,
        "gpu": pod.host.gpu.type_id,
        "cloud": pod.host.cloud.value,
        "num_gpus": pod.gpu_count,
        "is_bid": pod.is_bid,
        "bid": pod.bid,
        "status": pod.status,
        "change": pod.change.value,
        "created": pod.created,
        "started": pod.first_started,
        "ended": pod.ended,
        "end_cause": pod.end_cause,
        "charged": dict(pod.charged),
    }
