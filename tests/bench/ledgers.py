"""The ledger with 100,000 ended and 1,000 open leases on both engines: start-up, memory, and its share of a cycle.

Each figure is of a process of its own that opens the ledger as the daemon does. The share of a cycle is the state that
a cycle reads, 1,000 leases metered in one commit, and the two commits of an order. The processes run by turns.
"""

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import psutil  # type: ignore[import-untyped]

from agent.clock import SteppedClock
from agent.domain.record.intent import IntentState
from agent.domain.record.lease import LeaseState
from agent.ledger import ledger_move, storage
from agent.ledger.server_address import ServerAddress
from agent.ledger.store import Ledger
from tests.bench import report
from tests.ledger.values import NOW, intent, lease
from tests.support import engines, postgres

ENDED, OPEN = 100_000, 1_000
BATCH = 5_000
ROUNDS, CYCLES = 3, 5
SCHEMA = "bench"
MEGABYTE = 1e6


async def fill(file: Path) -> None:
    """Make a ledger file with the ended and the open leases."""
    ledger = await Ledger.open(storage.of(file), clock=SteppedClock(NOW))
    for first in range(0, ENDED, BATCH):
        async with ledger.transaction() as tx:
            for number in range(first, first + BATCH):
                begun = lease(number)
                tx.open_lease(begun)
                over = {"state": LeaseState.ENDED, "ended_at": NOW, "end_reason": "released"}
                tx.update_lease(msgspec.structs.replace(begun, **over))
    async with ledger.transaction() as tx:
        for number in range(ENDED, ENDED + OPEN):
            tx.open_lease(lease(number))
    await ledger.close()


async def once(file: Path, url: str) -> dict[str, float]:
    """Open a ledger in this process, and return the seconds to open it, those of a cycle's share, and megabytes."""
    clock = SteppedClock(NOW)
    process = psutil.Process()
    before = process.memory_info().rss
    began = time.perf_counter()
    ledger = await Ledger.open(storage.of(file, ServerAddress(url, SCHEMA) if url else None), clock=clock)
    start = time.perf_counter() - began
    cycles = [await cycle(ledger, clock) for _ in range(CYCLES)]
    grown = process.memory_info().rss - before
    await ledger.close()
    return {"start-up": start, "cycle": min(cycles), "memory": grown / MEGABYTE}


async def cycle(ledger: Ledger, clock: SteppedClock) -> float:
    """Do the ledger's share of a cycle, and return its seconds."""
    clock.advance(60)
    began = time.perf_counter()
    known = ledger.recollection(clock.now())
    async with ledger.transaction() as tx:
        for each in known.leases:
            tx.update_lease(msgspec.structs.replace(each, accrued_until=clock.now()))
    ordered = intent(time.time_ns(), recorded_at=clock.now())
    async with ledger.transaction() as tx:
        tx.record_intent(ordered)
    async with ledger.transaction() as tx:
        tx.advance_intent(ordered.intent_id, IntentState.SENT, at=clock.now())
    took = time.perf_counter() - began
    async with ledger.transaction() as tx:
        tx.advance_intent(ordered.intent_id, IntentState.REJECTED, at=clock.now(), outcome="a bench")
    return took


def measured(file: Path, url: str) -> dict[str, float]:
    """Measure in a process of its own."""
    words = [sys.executable, "-m", "tests.bench.ledgers", str(file)]
    # Its errors are shown: a machine that is too busy to commit in time ends it.
    done = subprocess.run(words, input=url, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def measure() -> bool:
    """Print each figure as PostgreSQL : SQLite; nothing is bounded."""
    if not postgres.is_here():
        return report.line("ledger on PostgreSQL", "not measured", "PostgreSQL is not installed (make tools)")
    with tempfile.TemporaryDirectory(prefix="gpubid-bench-") as place, engines.serving() as url:
        file, moved = Path(place, "file", "ledger.sqlite"), Path(place, "moved", "ledger.sqlite")
        file.parent.mkdir()
        asyncio.run(fill(file))
        shutil.copytree(file.parent, moved.parent)
        ledger_move.move(storage.of(moved), storage.of(moved, ServerAddress(url, SCHEMA)), NOW)
        served, filed = [], []
        for _ in range(ROUNDS):
            filed.append(measured(file, ""))
            served.append(measured(moved, url))
    for figure, unit in (("start-up", "s"), ("cycle", "s"), ("memory", "MB")):
        theirs, ours = (min(each[figure] for each in rounds) for rounds in (filed, served))
        name = f"ledger of {ENDED:,} ended and {OPEN:,} open leases: {figure}"
        report.line(name, f"PostgreSQL : SQLite = {ours / theirs:.2f}", f"{ours:.3g} {unit} : {theirs:.3g} {unit}")
    return True


if __name__ == "__main__":
    print(json.dumps(asyncio.run(once(Path(sys.argv[1]), sys.stdin.read()))))
