"""Carries out a person's endings, and records the order: a full disk delays neither.

Invariants:
1. Endings are sent even if the ledger cannot be written.
2. A release that waits for its turn is due from the order on, so that a crash forgets none.
3. An order that could be recorded neither before its endings nor after them is an error, so that nobody relies on it.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from agent.act.endings import begun_releases
from agent.act.executor import MOST_AT_ONCE, Executor
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.intent import Intent
from agent.domain.record.lease import Lease
from agent.domain.work.decision import Pause, Release
from agent.domain.work.workload import Workload
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.store import Ledger
from agent.ledger.transaction import Transaction

_WITHOUT_LEAD = frozenset({Code.UNLED, Code.DEPOSED})
"""Errors of a daemon that sends nothing any more, endings included."""
Write = Callable[[Transaction], None]
"""Records an order; it may be called again after a commit that failed."""


async def carry_out(
    ledger: Ledger, executor: Executor, workloads: Sequence[Workload], wanted: Sequence[Release | Pause], write: Write
) -> list[Intent]:
    """Record an order with `write`, send the endings that it `wanted`, and return their intents as they ended.

    Raises:
        LedgerError: it could not be written down; endings were sent all the same. UNLED, DEPOSED: nothing was sent.
    """
    unwritten = await _unwritten(ledger, write)
    if unwritten is not None and not wanted:
        raise unwritten
    executor.hasten()
    unsent: LedgerError | None = None
    try:
        return await executor.run(wanted, {work.name: work for work in workloads})
    except LedgerError as error:
        unsent = error if error.code in _WITHOUT_LEAD else None
        raise
    finally:
        if unwritten is not None:
            await _write_late(ledger, write, len(wanted), unsent)


def note(
    tx: Transaction, wanted: Sequence[Release | Pause], who: str, now: datetime, known: Mapping[str, Lease]
) -> None:
    """Record that a person ordered these endings; `known` are the open leases of the ledger, by id.

    Releases that wait for others are due from now on: a crash before their turn would forget them, although the ledger
    says that they were ordered.
    """
    for order in wanted[MOST_AT_ONCE:]:
        held = known.get(order.lease.lease_id)
        if isinstance(order, Release) and held is not None:
            begun_releases.begin(tx, order, held, now)
    for order in wanted:
        lease = order.lease
        tx.append_event(
            Event(
                at=now,
                kind=EventKind.OPERATOR_ORDERED,
                workload=lease.slot.workload,
                slot=lease.slot.index,
                lease_id=lease.lease_id,
                market=lease.market,
                host_id=lease.host_id,
                reason_code=order.reason.code,
                reason=f"{order.reason.sentence} ({who})",
            )
        )


async def _write_late(ledger: Ledger, write: Write, sent: int, unsent: LedgerError | None) -> None:
    error = await _unwritten(ledger, write)
    if error is not None and unsent is not None:
        fix = "the order is not written down either: give it again once a daemon leads"
        raise LedgerError(unsent.code, f"{unsent.sentence}; {fix}")
    if error is not None:
        raise LedgerError(
            error.code,
            f"{sent} order(s) were sent to the market but not written down: {error.sentence}; give the order again "
            "when the ledger can be written, or the slot may be rented again",
        )


async def _unwritten(ledger: Ledger, write: Write) -> LedgerError | None:
    """Write, twice if need be, because the first failure frees the ballast; return the error of the second."""
    error: LedgerError | None = None
    for _ in range(2):
        try:
            async with ledger.transaction() as tx:
                write(tx)
        except LedgerError as failure:
            error = failure
        else:
            return None
    return error
