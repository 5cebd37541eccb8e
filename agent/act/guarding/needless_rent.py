"""A rent that its bucket makes needless: its run is done, or the bucket has a later one."""

from agent.act.guarding import finished_run
from agent.act.guarding.guard_launch import GuardLaunch
from agent.decide.operators import guard_runs
from agent.domain.record.intent import Intent
from agent.ledger.store import Ledger


async def recorded(
    ledger: Ledger, intent: Intent, launch: GuardLaunch, *, has_worked: bool, is_behind: bool = False
) -> bool:
    """Record that the slot of a rent is done, or has a later run, and return whether it does not rent.

    `has_worked` says whether its present run had a lease before, `is_behind` whether the ledger may lack later runs.

    Raises:
        LedgerError: the ledger could not be written.
    """
    known = ledger.recollection(intent.recorded_at).guard_runs
    present, later = guard_runs.last(known).get(intent.slot), None
    if present is not None and present.run == intent.guard_run:
        goes_on = has_worked or (is_behind and guard_runs.is_by_file(present, known))
        later = guard_runs.beyond(present, launch.kept, intent.recorded_at, goes_on=goes_on)
    finished = launch.finished if later is None else later.finished
    if later is None and not finished:
        return False
    async with ledger.transaction() as tx:
        if later is not None:
            tx.take_run(later.run)
            tx.append_event(later.event)
        if finished:
            finished_run.note(tx, intent.slot, finished, intent.recorded_at)
    return True
