"""One report of spend and of savings at the limit of lines, with the prices of a busy market: its time and its memory.

Time is compared with reading the same columns of as many rows by `sqlite3` alone. It is the least of its tries in CPU
seconds of this process, the ledger's thread among them. Memory is what Python has at its peak, in a try of its own.
"""

import asyncio
import datetime as dt
import sqlite3
import tempfile
import time
import tracemalloc
from contextlib import closing
from pathlib import Path

from agent.domain.slot import Slot
from agent.ledger.reader import Reader
from agent.web.reading import spend_reports
from tests.bench import report
from tests.support import builders
from tests.support.world import POLL, Rehearsed, rehearsed

LEASES = 1_000
DAYS = 2 * spend_reports.MOST_LINES // LEASES
"""Twice as many days as one report reads."""
HOSTS = 1_500
PRICES = 400_000
"""Raw prices of one model: more than two weeks have at the quota of Vast.ai's searches, for all models together."""
TRIES = 3
MOST_SECONDS, MOST_MEGABYTES = 3.0, 64.0
ROUTES = ("/spend", "/savings")
ROWS = """
    SELECT spend.lease_id, spend.day, spend.workload, spend.market, spend.tenure, spend.gpu, spend.disk, spend.traffic,
        paid, loading, restoring, useful, lost, paused_disk, leases.gpu, gpus, dlperf, opened_at, ended_at, ask
    FROM spend LEFT JOIN leases USING (lease_id) LEFT JOIN phases USING (lease_id, day, tenure)
    ORDER BY spend.day DESC, lease_id LIMIT ?
"""
SPENT = """
    INSERT INTO spend (lease_id, day, tenure, workload, market, gpu, disk, traffic, running_seconds, useful_seconds)
    SELECT lease_id, days.day, 'interruptible', 'train', 'vast', 9000000, 30000, 0, 86400, 80000 FROM leases, days
    WHERE lease_id NOT IN (SELECT lease_id FROM spend)
"""
PHASES = """
    INSERT INTO phases (lease_id, day, tenure, paid, loading, restoring, useful, lost, paused_disk)
    SELECT lease_id, days.day, 'interruptible', 86400000000, 0, 0, 80000000000, 6400000000, 0 FROM leases, days
    WHERE lease_id NOT IN (SELECT lease_id FROM phases)
"""


async def measure() -> bool:
    """Measure, print, and return whether the bounds hold."""
    with tempfile.TemporaryDirectory(prefix="gpubid-bench-") as made:
        async with rehearsed(Path(made), poll=POLL) as world:
            world.is_checked = False
            await world.cycle()
            await _fill(world)
            async with world.app.ledger.archive() as reader:
                return all([await _measure(world, reader, route) for route in ROUTES])


async def _fill(world: Rehearsed) -> None:
    """Write a thousand leases through the ledger; their days and the prices of their card as rows."""
    now = world.clock.now()
    async with world.app.ledger.transaction() as tx:
        for number in range(1, LEASES + 1):
            tx.open_lease(builders.lease(number, slot=Slot("train", number - 1)))
    with closing(sqlite3.connect(world.config.ledger, timeout=60)) as raw, raw:
        days = [((now.date() - dt.timedelta(days=day)).isoformat(),) for day in range(DAYS)]
        raw.execute("CREATE TEMP TABLE days (day)")
        raw.executemany("INSERT INTO days VALUES (?)", days)
        raw.execute(SPENT)
        raw.execute(PHASES)
        first, step = int((now - dt.timedelta(days=14)).timestamp() * 1e6), 14 * 86_400_000_000 // PRICES
        each = ((str(n % HOSTS), first + n * step, builders.RTX_4090, 300_000 + n % 9_973) for n in range(PRICES))
        raw.executemany("INSERT OR REPLACE INTO prices VALUES ('vast', ?, 1, ?, ?, ?, 150000)", each)


async def _measure(world: Rehearsed, reader: Reader, route: str) -> bool:
    query, now = {"by": "lease"}, world.clock.now()
    ours, theirs = [], []
    for _ in range(TRIES):
        began = time.process_time()
        told = await spend_reports.answer(reader, route, query, now)
        ours.append(time.process_time() - began)
        began = time.process_time()
        await asyncio.to_thread(_read, world.config.ledger)
        theirs.append(time.process_time() - began)
    tracemalloc.start()
    await spend_reports.answer(reader, route, query, now)
    megabytes = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    seconds, least = min(ours), min(theirs)
    name = f"{route} by lease, {told['most_lines']:,} lines" + (f", {PRICES:,} prices" if route == "/savings" else "")
    compared = f"{least:.2f} s for the rows alone; at most {MOST_SECONDS:g} s, {MOST_MEGABYTES:g} MB"
    holds = seconds <= MOST_SECONDS and megabytes <= MOST_MEGABYTES
    return report.line(name, f"{seconds:.2f} s CPU, {megabytes:.0f} MB", compared, holds=holds)


def _read(ledger: Path) -> None:
    with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as raw:
        raw.execute(ROWS, (spend_reports.MOST_LINES,)).fetchall()
