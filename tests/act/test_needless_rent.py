"""A rent for a run that the bucket has already: the slot is done, or takes another run, in one commit."""

from datetime import timedelta
from pathlib import Path

import pytest

from agent.act.guarding import needless_rent
from agent.act.guarding.guard_launch import GuardLaunch
from agent.clock import SteppedClock
from agent.decide.operators import guard_runs
from agent.domain.record.guard_run import GuardRun
from agent.domain.work.run_claim import KeptRun, RunClaim
from agent.ledger.store import Ledger
from tests.support import builders

NOW = builders.NOW
PRESENT = GuardRun(builders.TRAIN_0, 1, "train", "spec", NOW)
BEFORE = RunClaim(1, "spec", NOW - timedelta(days=3))
"""The claim of a ledger that was lost."""


@pytest.mark.parametrize(
    ("number", "finished", "run", "is_done"),
    [(1, "exit code 0", 1, True), (3, "exit code 0", 3, True), (3, "", 3, False)],
)
async def test_a_run_that_the_bucket_knows_is_taken_once(
    tmp_path: Path, number: int, finished: str, run: int, *, is_done: bool
) -> None:
    ledger = await Ledger.open(tmp_path / "ledger.sqlite", clock=SteppedClock(NOW))
    async with ledger.transaction() as tx:
        tx.begin_run(PRESENT)
    kept = KeptRun(number, BEFORE, finished)
    launch = GuardLaunch("", 1, "", manifest_exists=False, url="", sha256="", kept=kept)
    assert await needless_rent.recorded(ledger, builders.intent(guard_run=1), launch, has_worked=False)
    known = ledger.recollection(NOW)
    assert guard_runs.last(known.guard_runs)[PRESENT.slot].run == run
    assert bool([hold for hold in known.holds if hold.target.name == str(PRESENT.slot)]) is is_done
    await ledger.close()
