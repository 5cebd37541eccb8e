"""kill -9 between any two statements of a commit leaves all of it or nothing."""

import os
import signal
from pathlib import Path

import pytest

from agent.clock import SteppedClock
from agent.ledger.file import ledger_check
from agent.ledger.store import Ledger
from tests.support import launch

pytestmark = pytest.mark.only_sqlite

ROOT = Path(__file__).parents[2]
STATEMENTS = 6  # BEGIN, the four of the transaction and COMMIT


@pytest.mark.parametrize(
    ("when", "number"),
    [("statement", number) for number in range(1, STATEMENTS + 2)] + [("commit", 1), ("commit", 2)],
)
async def test_a_killed_writer_leaves_nothing_half_done(
    path: Path, clock: SteppedClock, when: str, number: int
) -> None:
    words = (str(path), when, str(number))
    writer = await launch.start("tests.ledger.killed_writer", *words, folder=ROOT, environment=os.environ)
    out, err = await writer.communicate()
    assert writer.returncode == -signal.SIGKILL, err
    is_committed = b"committed" in out
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
