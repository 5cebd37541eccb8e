"""A person's stop of all spending: it holds at once, and is recorded as soon as the ledger can be written."""

from collections.abc import Sequence
from datetime import datetime

import structlog

from agent.decide.operators import kill_hold
from agent.domain.record.cooldown import Cooldown
from agent.domain.record.event import Event
from agent.ledger.ledger_errors import LedgerError
from agent.ledger.store import Ledger
from agent.ledger.transaction import Transaction

log = structlog.get_logger("gpubid.halting")


async def begin(ledger: Ledger, now: datetime, who: str, *, keep_disks: bool = False) -> None:
    """Let nothing be rented, raised or started until `end`; a stop that cannot be recorded is owed to the ledger."""
    until = kill_hold.until(ledger.recollection(now).cooldowns, now, keep_disks=keep_disks)
    kinds = (kill_hold.EVERYTHING, kill_hold.KEEPS_DISKS) if keep_disks else (kill_hold.EVERYTHING,)
    ledger.owed = tuple(Cooldown(*kind, until, f"a kill by {who}") for kind in kinds)
    try:
        await settle(ledger, now)
    except LedgerError as error:
        log.error("kill.unwritten", code=error.code.value, reason=error.sentence)


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


async def end(ledger: Ledger, now: datetime, who: str) -> None:
    """End a stop of all spending.

    Raises:
        LedgerError: it could not be written down; the stop holds on.
    """
    async with ledger.transaction() as tx:
        owed = ledger.owed
        tx.lift_cooldown(*kill_hold.EVERYTHING)
        tx.lift_cooldown(*kill_hold.KEEPS_DISKS)
        tx.append_event(Event(at=now, kind="operator.lifted", reason_code="lift", reason=f"lifted by {who}"))
    _forget(ledger, owed)


def _write(tx: Transaction, owed: Sequence[Cooldown], now: datetime) -> None:
    tx.lift_cooldown(*kill_hold.KEEPS_DISKS)
    for rest in owed:
        tx.add_cooldown(rest.scope, rest.key, rest.until, rest.code)
    stopped = f"all spending stopped by {owed[0].code}"
    tx.append_event(Event(at=now, kind="operator.halted", reason_code="kill", reason=stopped))


def _forget(ledger: Ledger, owed: Sequence[Cooldown]) -> None:
    """Owe no more what was just settled; a kill that was given meanwhile is still owed."""
    if ledger.owed is owed:
        ledger.owed = ()
