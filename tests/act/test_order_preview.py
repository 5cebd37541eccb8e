"""What an order would do, as a person is shown it before it is given."""

from pathlib import Path
from typing import Any

from agent.act.orders import order_preview
from agent.act.orders.operator_orders import Grounds
from agent.clock import SteppedClock
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.order import Order
from agent.ledger.store import Ledger
from tests.support import builders

NOW = builders.NOW
RUNS = builders.lease(1)
STOPPED = builders.lease(2, slot=builders.slot("train", 1), state=LeaseState.PAUSED)


async def grounds(directory: Path, *leases: Lease) -> Grounds:
    """Return grounds on a ledger that holds these leases."""
    ledger = await Ledger.open(directory / "ledger.sqlite", clock=SteppedClock(NOW), fleet_id=builders.FLEET_ID)
    try:
        async with ledger.transaction() as tx:
            for each in leases:
                tx.open_lease(each)
        return Grounds((builders.workload(slots=2),), ("vast",), ledger.recollection(NOW), NOW)
    finally:
        await ledger.close()


def actions(shown: dict[str, Any]) -> dict[str, str]:
    return {row["lease"]: row["action"] for row in shown["leases"]}


async def test_the_end_of_a_kill_ends_no_lease(tmp_path: Path) -> None:
    shown = order_preview.shown(Order("resume", "fleet:all"), await grounds(tmp_path, RUNS, STOPPED))
    assert shown["sentence"].startswith("end the kill: the daemon may rent again")
    assert actions(shown) == {"vast-1": "goes on", "vast-2": "goes on"}
    assert all(row["after_dollars_per_hour"] == row["dollars_per_hour"] for row in shown["leases"])


async def test_a_kill_of_everything_releases_what_bills(tmp_path: Path) -> None:
    shown = order_preview.shown(Order("kill", "fleet:all"), await grounds(tmp_path, RUNS, STOPPED))
    assert shown["sentence"].startswith("release every lease")
    assert actions(shown) == {"vast-1": "release", "vast-2": "release"}
    assert all(row["after_dollars_per_hour"] == 0 for row in shown["leases"])
