"""Records changes of workloads in the operator's files: new names, runs that begin, specs, and slots that are gone."""

from collections.abc import Sequence
from datetime import datetime

import structlog

from agent.act.orders import begun_runs
from agent.decide.operators import guard_runs, reload, slotless_leases
from agent.domain.record.event_kind import EventKind
from agent.domain.record.expiring_record import ExpiringRecord
from agent.domain.record.lease import Lease
from agent.domain.work.workload import Workload
from agent.ledger.memory import Recollection
from agent.ledger.store import Ledger
from agent.ledger.transaction import Transaction

log = structlog.get_logger("gpubid.workloads")


async def record(ledger: Ledger, workloads: Sequence[Workload], now: datetime) -> None:
    """Move leases, intents, holds, tallies, demands and runs to a renamed workload, and begin due runs.

    Record the spec of a new lease. Hold a lease whose slot no workload has.

    Raises:
        LedgerError: the ledger could not be written.
    """
    known = ledger.recollection(now)
    stepped = [(lease, _stepped(lease, workloads, known)) for lease in known.leases]
    renamed: tuple[tuple[ExpiringRecord, ExpiringRecord], ...] = (
        *reload.renamed_holds(known.holds, workloads).items(),
        *reload.renamed_tallies(known.tallies, workloads).items(),
    )
    moved = reload.renamed_intents(known.intents, workloads)
    demands = reload.renamed_demands(known.hand_demands, workloads, now)
    runs = guard_runs.due(known.guard_runs, workloads, now)
    is_same = all(before is after or before == after for before, after in stepped)
    if is_same and not renamed and not moved and not demands and not runs:
        return
    async with ledger.transaction() as tx:
        for before, after in stepped:
            _write(tx, before, after, now)
        for intent in moved:
            tx.move_intent(intent)
        for demand in demands:
            tx.keep_hand_demand(demand)
        begun = [run for run in runs if run.begun_at == now]
        # An open lease still does the work of its own run, and reports that.
        taken = {after.slot for _, after in stepped if after.is_open}
        idle = [run for run in begun if run.slot not in taken]
        begun_runs.write(tx, runs, begun, guard_runs.from_nothing(idle, known.progress, now))
        for old, new in renamed:
            tx.lift_expiring(old.place)
            tx.add_expiring(new)


def _stepped(lease: Lease, workloads: Sequence[Workload], known: Recollection) -> Lease:
    return slotless_leases.held(reload.under_present_name(lease, workloads, known.guard_runs), workloads)


def _write(tx: Transaction, before: Lease, after: Lease, now: datetime) -> None:
    tx.update_lease(after)
    if after.is_held and not before.is_held:
        log.warning(EventKind.ORPHAN_SEEN, lease=after.lease_id, slot=str(after.slot), verdict="hold")
        tx.append_event(slotless_leases.event(after, now))
