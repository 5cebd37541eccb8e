"""The true state of the market, for tests and the control API, and the output of containers."""

import datetime as dt
from typing import Any

from agent.simulator.instances import program
from agent.simulator.instances.rented import Rented
from agent.simulator.vast.model import Contract
from agent.simulator.vast.world_interface import Stage


def as_json(world: Stage) -> dict[str, Any]:
    """Return the whole truth in JSON shapes, without the calls, which only the surface sees."""
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


def log_lines(contract: Rented, now: float, *, is_stamped: bool = False) -> list[str]:
    """Return a container's log: a line at its start, one a minute since (at most a thousand), and its own lines.

    The log of a stopped container is that of its last run. Lines of real processes have times only with `is_stamped`.
    """
    if contract.process is not None:
        return [f"{_stamp(at)} {text}" if is_stamped else text for at, text in contract.process.printed()[1]]
    if contract.running_since is None and contract.ran is None:
        return [] if contract.first_started is None else [f"{contract.image}: stopped"]
    start, end = (contract.running_since, now) if contract.running_since is not None else contract.ran or (now, now)
    lines = [f"{_stamp(start)} started {contract.image}"]
    if contract.onstart:
        lines += [f"+ {line[:200]}" for line in contract.onstart.splitlines()[:5]]
    hangs_after = program.seconds_to_hang(contract, program.worked_before(contract, start, end))
    minutes = int(min(end - start, hangs_after) // 60)
    first = max(1, minutes - 999)
    stamped = [(start + 60 * n, f"step {n}") for n in range(first, minutes + 1)]
    stamped = sorted(stamped + program.lines(contract, start, end), key=lambda line: line[0])
    lines += [f"{_stamp(at)} {text}" for at, text in stamped]
    return lines if contract.running_since is not None else [*lines, f"{contract.image}: stopped"]


def _stamp(at: float) -> str:
    return dt.datetime.fromtimestamp(at, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
