"""kill -9 between any two statements of a commit leaves all of it or nothing."""

# ruff: noqa: ASYNC221 - a test may wait for its own files and programs

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent.clock import SteppedClock
from agent.ledger.file import ledger_check
from agent.ledger.store import Ledger

PROGRAM = """
import asyncio, os, signal, sys
from pathlib import Path
import sqlalchemy as sa
from agent.clock import SteppedClock
from agent.domain.record.event import Event
from agent.domain.record.intent import IntentState
from agent.domain.money import Usd
from agent.domain.market.tenure import Tenure
from agent.ledger.store import Ledger
from agent.ledger.tables.spend_rows import SpendEntry
from tests.ledger.values import NOW, intent, lease

async def main(path, when, number):
    ledger = await Ledger.open(path, clock=SteppedClock(NOW))
    async with ledger.transaction() as tx:
        tx.record_intent(intent())
        tx.advance_intent("n1", IntentState.SENT, at=NOW)
    count = 0
    def kill(*_):
        nonlocal count
        count += 1
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)
    if when == "statement":
        ledger._wire._connection.connection.driver_connection.set_trace_callback(kill)
    else:
        sa.event.listen(ledger._wire._engine, when, kill)
    async with ledger.transaction() as tx:
        tx.advance_intent("n1", IntentState.CONFIRMED, at=NOW, instance_id="i1", lease_id="l1")
        tx.open_lease(lease())
        tx.append_event(Event(NOW, "lease.opened", lease_id="l1"))
        tx.add_spend(SpendEntry("l1", "train", "vast", Tenure.INTERRUPTIBLE, NOW.date(), gpu=Usd(7)))
    print("committed", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
"""

STATEMENTS = 6  # BEGIN, the four of the transaction and COMMIT


@pytest.mark.parametrize(
    ("when", "number"),
    [("statement", number) for number in range(1, STATEMENTS + 2)] + [("commit", 1), ("commit", 2)],
)
async def test_a_killed_writer_leaves_nothing_half_done(
    path: Path, clock: SteppedClock, when: str, number: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path), when, str(number)], capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    is_committed = "committed" in done.stdout
    # One commit only: what follows it never comes, and the process dies after it has said so.
    assert is_committed == ((when, number) in {("statement", STATEMENTS + 1), ("commit", 2)})
    ledger = await Ledger.open(path, clock=clock)
    try:
        known = ledger.recollection()
        assert [held.intent_id for held in known.intents] == ([] if is_committed else ["n1"])
        assert [held.lease_id for held in known.leases] == (["l1"] if is_committed else [])
        assert known.total.today.micros == (7 if is_committed else 0)
        reader = await ledger.reader()
        assert len(await reader.events()) == int(is_committed)
        assert ledger_check.verify(path).findings == ()
    finally:
        await ledger.close()
