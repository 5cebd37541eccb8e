"""The work of held leases that a person calls done: it moves from lost to useful, as that of a judged end does."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from agent.act import record
from agent.decide.reconcile.tasks import credited_work
from agent.decide.reconcile.tasks.credited_work import Finished
from agent.domain.record.hold import Word
from agent.domain.work.decision import Pause, Release
from agent.domain.work.order import Order
from agent.ledger.ledger_errors import LedgerError
from agent.ledger.store import Ledger
from agent.ledger.transaction import Transaction


async def of(ledger: Ledger, order: Order, endings: Iterable[Release | Pause]) -> Sequence[Finished]:
    """Return the finished work of the leases that an order ends; none if it is no `done`.

    None either if the ledger cannot be read: no ending waits for it.
    """
    if order.verb != Word.DONE:
        return ()
    ended = {each.lease.lease_id: each.lease for each in endings if each.lease.interrupted_by is not None}
    try:
        losses = await (await ledger.reader()).lost_work() if ended else []
    except LedgerError:
        return ()
    mine = {lease_id: [loss for loss in losses if loss.lease_id == lease_id] for lease_id in ended}
    found = (credited_work.of_person(lease, mine[lease_id]) for lease_id, lease in ended.items())
    return tuple(each for each in found if each is not None)


def write(tx: Transaction, finished: Iterable[Finished], now: datetime) -> None:
    """Record finished work as useful, and forget its losses."""
    for done in finished:
        record.add_charges(tx, done.lease, credited_work.charges(done, done.lost or 0), now)
        tx.forget_loss(done.lease.lease_id, done.ended_at)
