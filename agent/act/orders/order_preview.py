"""The preview of an order for a person to confirm: each lease that it concerns, and its cost now and afterwards."""

from collections.abc import Mapping
from typing import Any

from agent.act.orders import operator_orders, order_grounds
from agent.act.orders.operator_orders import Meaning
from agent.act.orders.order_error import OrderError
from agent.act.orders.order_grounds import Grounds
from agent.decide.operators import operator_holds
from agent.domain import money
from agent.domain.record import hold
from agent.domain.record.hold import Word
from agent.domain.record.intent import Intent
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.work.decision import Pause
from agent.domain.work.only_copy import may_leave
from agent.domain.work.order import Order
from agent.markets import registered_markets

GOES_ON = "goes on"
BEING_RELEASED = "is being released"
CHANGED = "leases_changed"
"""The code of an order whose leases changed since a person confirmed it."""


def shown(order: Order, grounds: Grounds) -> dict[str, Any]:
    """Return the order as a sentence, its leases with dollars an hour, and how many orders for them are in doubt.

    Raises:
        OrderError: it cannot be understood or matches nothing.
    """
    doubts = [intent for intent in grounds.known.intents if intent.is_open and intent.kind.is_paying]
    if order.is_of_everything:
        sentence, rows = _of_all(order, grounds)
    else:
        meaning = operator_orders.read(order, "", grounds)
        sentence, rows = meaning.sentence, _of_target(meaning, grounds)
        doubts = [intent for intent in doubts if _is_concerned(intent, meaning, rows)]
    return {"sentence": sentence, "leases": [_row(lease, action) for lease, action in rows], "in_doubt": len(doubts)}


def named(preview: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the leases that a person confirms, without those whose release is under way."""
    return tuple(row["lease"] for row in preview["leases"] if row["action"] != BEING_RELEASED)


def refuse_changed(order: Order, grounds: Grounds) -> None:
    """Refuse an order that now concerns other leases than a person was shown; a kill of everything always acts.

    Raises:
        OrderError: `leases_changed`, with the leases that came and went; nothing was done.
    """
    if order.leases is None or order.is_of_everything:
        return
    rows = {row["lease"]: row for row in shown(order, grounds)["leases"] if row["action"] != BEING_RELEASED}
    before = set(order.leases)
    changes = [f"{row['slot']} has {lease} now" for lease, row in rows.items() if lease not in before]
    changes += [f"{lease} is gone or being released" for lease in order.leases if lease not in rows]
    if changes:
        raise OrderError(CHANGED, f"the leases changed since they were shown: {', '.join(changes)}; nothing was done")


def _of_target(meaning: Meaning, grounds: Grounds) -> list[tuple[Lease, str]]:
    actions = {
        ending.lease.lease_id: _after_pause(ending.lease, grounds) if isinstance(ending, Pause) else "release"
        for ending in meaning.decisions
    }
    mine = [
        lease
        for lease in grounds.known.leases
        if lease.is_open and (lease.lease_id in actions or meaning.target in hold.including(lease))
    ]
    return [(lease, _action(lease, actions.get(lease.lease_id, GOES_ON))) for lease in mine]


def _is_concerned(intent: Intent, meaning: Meaning, rows: list[tuple[Lease, str]]) -> bool:
    """Return whether an order in doubt is for the target, or for a slot of its leases."""
    market, slot = hold.of_market(intent.market), intent.slot
    targets = {*operator_holds.of_slot(slot), market, hold.Target(hold.TargetKind.HOST, str(intent.host))}
    return meaning.target in targets or any(lease.slot == slot for lease, _ in rows)


def _of_all(order: Order, grounds: Grounds) -> tuple[str, list[tuple[Lease, str]]]:
    leases = [lease for lease in grounds.known.leases if lease.is_open]
    if order.verb != Word.KILL:
        going = [(lease, _action(lease, GOES_ON)) for lease in leases]
        return "end the kill: the daemon may rent again what the configuration asks for", going
    action = "pause" if order.keep_disks else "release"
    rows = [
        (lease, _under_kill(lease, _of_kill(lease) if order.keep_disks else action, grounds))
        for lease in leases
        if lease.bills is not Bills.NOTHING
    ]
    return f"{action} every lease, and rent nothing until `gpubid kill --lift`", rows


def _under_kill(lease: Lease, action: str, grounds: Grounds) -> str:
    is_down = action == "pause" and order_grounds.is_stopped(lease, grounds)
    return _action(lease, GOES_ON if is_down else action)


def _action(lease: Lease, action: str) -> str:
    return BEING_RELEASED if lease.state is LeaseState.RELEASING else action


def _of_kill(lease: Lease) -> str:
    """Return what a kill that keeps disks does: where a market cannot pause, it releases (rule 20)."""
    return "pause" if registered_markets.record(lease.market).rules.can_pause else "release"


def _after_pause(lease: Lease, grounds: Grounds) -> str:
    """Return what a pause comes to: where a market cannot pause, a release, unless the disk is needed (rule 11)."""
    if _of_kill(lease) == "pause":
        return "pause"
    work = next((each for each in grounds.workloads if each.name == lease.slot.workload), None)
    return "release" if work is None or may_leave(lease, work) else GOES_ON


def _row(lease: Lease, action: str) -> dict[str, Any]:
    after = {"release": money.FREE, BEING_RELEASED: money.FREE, "pause": lease.disk_rate}.get(
        action, lease.billing_rate
    )
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
