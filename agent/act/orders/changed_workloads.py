"""Records changes of workloads in the operator's files: new names, runs that begin, and the spec of a new lease."""

from collections.abc import Sequence
from datetime import datetime

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
        for run in runs:
            tx.begin_run(run)
        for event in guard_runs.news(run for run in runs if run.begun_at == now):
            tx.append_event(event)
        for old, new in renamed.items():
            tx.lift_expiring(old.place)
            tx.add_expiring(new)
