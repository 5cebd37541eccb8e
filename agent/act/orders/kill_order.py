"""A person's stop of all spending: it holds at once, and is recorded as soon as the ledger can be written."""

from collections.abc import Sequence
from datetime import datetime

import structlog

from agent.decide.operators import operator_holds
from agent.domain.record import hold
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind, LoggedKind
from agent.domain.record.hold import DISKS, EVERYTHING, OperatorHold, Word
from agent.ledger.ledger_errors import LedgerError
from agent.ledger.store import Ledger
from agent.ledger.transaction import Transaction

log = structlog.get_logger("gpubid.kill")


async def begin(ledger: Ledger, now: datetime, who: str, *, keep_disks: bool = False) -> None:
    """Let nothing be rented, raised or started until `end`; a stop that cannot be recorded is owed to the ledger."""
    ledger.owed = operator_holds.killed(ledger.recollection(now).holds, now, who, keeps_disks=keep_disks)
    try:
        await settle(ledger, now)
    except LedgerError as error:
        log.error(LoggedKind.KILL_UNWRITTEN, code=error.code.value, reason=error.sentence)


async def settle(ledger: Ledger, now: datetime) -> None:
    """Record a stop that the ledger could not record before.

    Raises:
        LedgerError: it could not be written down; it holds all the same.
    """
    if not ledger.owed:
        return
    async with ledger.transaction() as tx:
        # Another task may have recorded or lifted it while this one waited.
        owed = ledger.owed
        if owed:
            _write(tx, owed, now)
    _forget(ledger, owed)


async def record_carried_out(ledger: Ledger, now: datetime) -> None:
    """Record a stop that was just carried out.

    Raises:
        LedgerError: it could not be written down. Without this sentence a person would believe that the stop survives a
            restart, also if nothing is left to end.
    """
    try:
        await settle(ledger, now)
    except LedgerError as error:
        sentence = (
            f"all spending is stopped, but that is not written down, and a restart forgets it: {error.sentence}; give "
            "`gpubid kill` again when the ledger can be written"
        )
        raise LedgerError(error.code, sentence) from None


async def end(ledger: Ledger, now: datetime, who: str) -> None:
    """End a stop of all spending.

    Raises:
        LedgerError: it could not be written down; the stop holds on.
    """
    async with ledger.transaction() as tx:
        owed = ledger.owed
        for target in (EVERYTHING, DISKS):
            tx.lift_expiring(hold.place_of(Word.KILL, target))
        tx.append_event(Event(at=now, kind=EventKind.OPERATOR_LIFTED, reason_code="lift", reason=f"lifted by {who}"))
    _forget(ledger, owed)


def _write(tx: Transaction, owed: Sequence[OperatorHold], now: datetime) -> None:
    tx.lift_expiring(hold.place_of(Word.KILL, DISKS))
    for each in owed:
        tx.add_expiring(each)
    stopped = f"all spending stopped by {owed[0].ground}"
    tx.append_event(Event(at=now, kind=EventKind.OPERATOR_HALTED, reason_code="kill", reason=stopped))


def _forget(ledger: Ledger, owed: Sequence[OperatorHold]) -> None:
    """Clear the kill that was just recorded; one that was given meanwhile is still owed."""
    if ledger.owed is owed:
        ledger.owed = ()
