"""The truth: the market as it really is, for tests and the control API, and what containers print."""

import datetime as dt
from typing import TYPE_CHECKING, Any

from agent.simulator.model import Container, Contract

if TYPE_CHECKING:
    from agent.simulator.world import World


def as_json(world: "World") -> dict[str, Any]:
    """Give the whole truth in JSON shapes, but for the calls that only the surface has seen."""
    total = world.charged_total()
    return {
        "now": world.now,
        "credit": world.credit,
        "contracts": [_contract(contract) for contract in world.contracts.values()],
        "billing_now": world.billing_now(),
        "charged_total": total,
    }


def _contract(contract: Contract) -> dict[str, Any]:
    return {
        "id": contract.contract_id,
        "offer_id": contract.slice.offer_id,
        "label": contract.label,
        "machine_id": contract.slice.machine_id,
        "num_gpus": contract.slice.num_gpus,
        "is_bid": contract.is_bid,
        "bid": contract.bid,
        "status": contract.status,
        "stop_cause": contract.stop_cause.value if contract.stop_cause else None,
        "created": contract.created,
        "started": contract.first_started,
        "ended": contract.ended,
        "end_cause": contract.end_cause.value if contract.end_cause else None,
        "charged": dict(contract.charged),
    }


def log_lines(contract: Contract, now: float) -> list[str]:
    """Give what a container printed: one line at its start and one a minute since, at most a thousand."""
    if contract.first_started is None or contract.running_since is None:
        return [] if contract.first_started is None else [f"{contract.image}: stopped"]
    lines = [f"{_stamp(contract.running_since)} started {contract.image}"]
    if contract.onstart:
        lines += [f"+ {line[:200]}" for line in contract.onstart.splitlines()[:5]]
    if contract.container is Container.RUNNING:
        minutes = int((now - contract.running_since) // 60)
        first = max(1, minutes - 999)
        lines += [f"{_stamp(contract.running_since + 60 * n)} step {n}" for n in range(first, minutes + 1)]
    return lines


def _stamp(at: float) -> str:
    return dt.datetime.fromtimestamp(at, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
