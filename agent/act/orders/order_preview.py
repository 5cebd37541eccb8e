"""What an order would do, for a person to confirm: each lease that it concerns, what it bills now and afterwards."""

from collections.abc import Iterator
from typing import Any

from agent.act.orders import operator_orders
from agent.act.orders.operator_orders import Grounds
from agent.decide.operators import operator_holds
from agent.domain import money
from agent.domain.record.hold import Word
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.work.decision import Pause
from agent.domain.work.order import Order

GOES_ON = "goes on"


def shown(order: Order, grounds: Grounds) -> dict[str, Any]:
    """Return the order as a sentence and its leases with dollars an hour.

    Raises:
        OrderError: it cannot be understood or matches nothing.
    """
    sentence, rows = _of_target(order, grounds) if not order.is_of_everything else _of_all(order, grounds)
    doubts = [intent for intent in grounds.known.intents if intent.is_open and intent.kind.is_paying]
    return {"sentence": sentence, "leases": [_row(lease, action) for lease, action in rows], "in_doubt": len(doubts)}


def _of_target(order: Order, grounds: Grounds) -> tuple[str, list[tuple[Lease, str]]]:
    meaning = operator_orders.read(order, "", grounds)
    actions = {made.lease.lease_id: _name(made) for made in meaning.decisions}
    mine = [
        lease
        for lease in grounds.known.leases
        if lease.is_open and (lease.lease_id in actions or meaning.target in operator_holds.of_lease(lease))
    ]
    return meaning.sentence, [(lease, actions.get(lease.lease_id, GOES_ON)) for lease in mine]


def _of_all(order: Order, grounds: Grounds) -> tuple[str, list[tuple[Lease, str]]]:
    if order.verb != Word.KILL:
        going = [(lease, GOES_ON) for lease in grounds.known.leases if lease.is_open]
        return "end the kill: the daemon may rent again what the configuration asks for", going
    action = "pause" if order.keep_disks else "release"
    rows = list(_billing(grounds, action))
    return f"{action} every lease, and rent nothing until `gpubid kill --lift`", rows


def _billing(grounds: Grounds, action: str) -> Iterator[tuple[Lease, str]]:
    for lease in grounds.known.leases:
        if lease.is_open and lease.bills is not Bills.NOTHING and lease.state is not LeaseState.RELEASING:
            is_down = action == "pause" and operator_holds.is_down(lease)
            yield lease, GOES_ON if is_down else action


def _name(made: object) -> str:
    return "pause" if isinstance(made, Pause) else "release"


def _row(lease: Lease, action: str) -> dict[str, Any]:
    after = {"release": money.FREE, "pause": lease.disk_rate}.get(action, lease.billing_rate)
    return {
        "lease": lease.lease_id,
        "slot": str(lease.slot),
        "state": lease.state.value,
        "market": lease.market,
        "host": lease.host_id,
        "gpu": lease.gpu,
        "gpus": lease.gpus,
        "action": action,
        "dollars_per_hour": lease.billing_rate.dollars,
        "after_dollars_per_hour": after.dollars,
    }
