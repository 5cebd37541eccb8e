"""The true state of this market, for tests and the control API."""

from typing import Any

from agent.simulator.dstack.model import Run
from agent.simulator.dstack.world import World


def as_json(world: World) -> dict[str, Any]:
    """Return the whole state as JSON. Runs have the keys that contracts have on the other markets."""
    total = world.charged_total()
    return {
        "now": world.now,
        "credit": None,
        "contracts": [_run(run) for run in world.runs.values()],
        "billing_now": [run.uuid for run in world.live_contracts() if run.machine is not None],
        "charged_total": total,
    }


def _run(run: Run) -> dict[str, Any]:
    machine = run.machine
    return {
        "id": run.uuid,
        "number": run.contract_id,
        "name": run.name,
        "label": run.label,
        "machine_id": machine.machine_id if machine is not None else None,
        "gpu": machine.kind.gpu if machine is not None else None,
        "num_gpus": machine.kind.count if machine is not None else 0,
        "region": machine.kind.region if machine is not None else None,
        "is_bid": machine is not None and machine.kind.is_spot,
        "bid": None,
        "price": machine.kind.cents / 100 if machine is not None else 0.0,
        "status": run.status,
        "machine": machine.status if machine is not None else None,
        "container": run.container.value,
        "created": run.created,
        "started": run.first_started,
        "ended": run.ended,
        "end_cause": run.reason,
        "charged": dict(run.charged),
    }
