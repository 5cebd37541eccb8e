"""Write down that a person stopped all spending, and that the stop is over."""

from datetime import datetime

from agent.decide import halt
from agent.domain.event import Event
from agent.ledger.store import Ledger


async def begin(ledger: Ledger, now: datetime, who: str, *, keep_disks: bool = False) -> None:
    """Let nothing be rented, raised or started until `end`.

    Raises:
        LedgerError: it could not be written down.
    """
    until = halt.until(ledger.recollection(now).cooldowns, now, keep_disks=keep_disks)
    async with ledger.transaction() as tx:
        tx.add_cooldown(*halt.EVERYTHING, until, f"a kill by {who}")
        if keep_disks:
            tx.add_cooldown(*halt.KEEPS_DISKS, until, f"a kill by {who}")
        else:
            tx.lift_cooldown(*halt.KEEPS_DISKS)
        tx.append_event(
            Event(at=now, kind="operator.halted", reason_code="kill", reason=f"all spending stopped by {who}")
        )


async def end(ledger: Ledger, now: datetime, who: str) -> None:
    """End a stop of all spending.

    Raises:
        LedgerError: it could not be written down.
    """
    async with ledger.transaction() as tx:
        tx.lift_cooldown(*halt.EVERYTHING)
        tx.lift_cooldown(*halt.KEEPS_DISKS)
        tx.append_event(Event(at=now, kind="operator.lifted", reason_code="lift", reason=f"lifted by {who}"))
