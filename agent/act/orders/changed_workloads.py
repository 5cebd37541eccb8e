"""Records changes of workloads in the operator's files: new names, runs that begin, and the spec of a new lease."""

from collections.abc import Sequence
from datetime import datetime

from agent.act.orders import begun_runs
from agent.decide.operators import guard_runs, reload
from agent.domain.work.workload import Workload
from agent.ledger.store import Ledger


async def record(ledger: Ledger, workloads: Sequence[Workload], now: datetime) -> None:
    """Move leases, holds and runs to a renamed workload, begin due runs, and record the spec of a new lease.

    Raises:
        LedgerError: the ledger could not be written.
    """
    known = ledger.recollection(now)
    stepped = [(lease, reload.under_present_name(lease, workloads, known.guard_runs)) for lease in known.leases]
    renamed = reload.renamed_holds(known.holds, workloads)
    runs = guard_runs.due(known.guard_runs, workloads, now)
    if not renamed and not runs and all(before is after or before == after for before, after in stepped):
        return
    async with ledger.transaction() as tx:
        for _, after in stepped:
            tx.update_lease(after)
        begun = [run for run in runs if run.begun_at == now]
        # An open lease still does the work of its own run, and reports that.
        taken = {after.slot for _, after in stepped if after.is_open}
        idle = [run for run in begun if run.slot not in taken]
        begun_runs.write(tx, runs, begun, guard_runs.from_nothing(idle, known.progress, now))
        for old, new in renamed.items():
            tx.lift_expiring(old.place)
            tx.add_expiring(new)
