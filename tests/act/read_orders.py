"""Orders of a person, read against a ledger with some leases, holds and cooldowns."""

from typing import Any

from agent.act.orders import operator_orders
from agent.act.orders.operator_orders import Meaning
from agent.act.orders.order_grounds import Grounds
from agent.domain.record.expiring_record import ExpiringRecord
from agent.domain.record.lease import Lease
from agent.domain.work.order import Order
from agent.domain.work.workload import WorkloadKind
from tests.act.conftest import Desk
from tests.support import builders

NOW = builders.NOW
RUNS = builders.lease(1)
STRANDED = builders.lease(2, slot=builders.slot("train", 1), is_held=True)


def lifted(meant: Meaning) -> tuple[tuple[str, str], ...]:
    return tuple(each.place for each in meant.lifts)


async def read(
    desk: Desk, order: Order, *rests: ExpiringRecord, leases: tuple[Lease, ...] = (RUNS,), **changes: Any
) -> Meaning:
    """Read an order against a ledger with these leases, holds and cooldowns."""
    async with desk.ledger.transaction() as tx:
        for held in leases:
            tx.open_lease(held)
        for one in rests:
            tx.add_expiring(one)
    works = changes.pop("workloads", (builders.workload(slots=2, kind=WorkloadKind.BATCH),))
    return operator_orders.read(order, "ops", Grounds(works, ("vast",), desk.ledger.recollection(NOW), NOW))
