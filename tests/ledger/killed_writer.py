"""A program that commits one turn and kills itself: `python -m tests.ledger.killed_writer LEDGER WHEN NUMBER`.

WHEN is "statement" or "commit", which is the statement of that name; it dies before the one of that NUMBER, or after
the commit.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from agent.clock import SteppedClock
from agent.domain.market.tenure import Tenure
from agent.domain.money import Usd
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.intent import IntentState
from agent.ledger.store import Ledger
from agent.ledger.tables.spend_rows import SpendEntry
from tests.ledger.values import NOW, intent, lease


async def write(path: Path, when: str, number: int) -> None:
    """Record a sent intent, then confirm it with its lease, an event and spend, and die on the way."""
    ledger = await Ledger.open(path, clock=SteppedClock(NOW))
    async with ledger.transaction() as tx:
        tx.record_intent(intent())
        tx.advance_intent("n1", IntentState.SENT, at=NOW)
    count = 0

    def kill(statement: str) -> None:
        nonlocal count
        count += when == "statement" or statement == "COMMIT"
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    connection = ledger._tables._connection
    connection.connection.driver_connection.set_trace_callback(kill)  # type: ignore[union-attr]
    async with ledger.transaction() as tx:
        tx.advance_intent("n1", IntentState.CONFIRMED, at=NOW, instance_id="i1", lease_id="l1")
        tx.open_lease(lease())
        tx.append_event(Event(NOW, EventKind.LEASE_OPENED, lease_id="l1"))
        tx.add_spend(SpendEntry("l1", "train", "vast", Tenure.INTERRUPTIBLE, NOW.date(), gpu=Usd(7)))
    print("committed", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
