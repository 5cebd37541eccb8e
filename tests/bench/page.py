"""Page, feed and metrics with a thousand leases and a million events in the ledger, each beside its lower bound.

`/metrics` is compared with `generate_latest` on the same registry in the same process, the page with rendering the same
template from rows that are in memory already, the feed with encoding its document. Each is the best of its tries in the
same run, taken by turns, in CPU seconds of this process: server, client and the ledger's thread.
"""

import datetime as dt
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import aiohttp
import msgspec
from prometheus_client import generate_latest

from agent.domain.record.lease import LeaseState
from agent.domain.slot import Slot
from agent.pass_metrics import Figures
from agent.telemetry import metric_families
from agent.telemetry.health import Health
from agent.telemetry.metric_updates import Metrics
from agent.web.feed import feed_routes
from agent.web.feed.fleet_document import Sources
from agent.web.feed.live_feed import LiveFeed
from agent.web.page import dashboard
from agent.web.page.pages import Pages
from agent.web.page.visitors import Visitors
from agent.web.request_checks.refusal_log import Refusals
from agent.web.web_server import Server
from tests.bench import report
from tests.support import builders
from tests.support.scene import work
from tests.support.world import POLL, Rehearsed, rehearsed

LEASES = 1_000
EVENTS = 1_000_000
TRIES = 15
MOST_METRICS, MOST_PAGE, MOST_FEED = 2.0, 5.0, 2.0

Once = Callable[[], Awaitable[None]]


async def measure() -> bool:
    """Measure, print, and return whether both bounds hold."""
    with tempfile.TemporaryDirectory(prefix="gpubid-bench-") as made:
        async with rehearsed(Path(made), workloads=(work(slots=LEASES),), poll=POLL) as world:
            world.is_checked = False
            await world.cycle()
            await _fill(world)
            return await _measure(world)


async def _fill(world: Rehearsed) -> None:
    """Write a thousand leases through the ledger, and a million events as copies of one row."""
    now = world.clock.now()
    async with world.app.ledger.transaction() as tx:
        for number in range(1, LEASES + 1):
            lease = builders.lease(number, slot=Slot("train", number - 1), state=LeaseState.RUNNING)
            tx.open_lease(
                msgspec.structs.replace(lease, opened_at=now, state_since=now, accrued_until=now, run_since=now)
            )
    with closing(sqlite3.connect(world.config.ledger, timeout=60)) as raw, raw:
        names = [row[1] for row in raw.execute("PRAGMA table_info(events)") if row[1] != "event_id"]
        columns = ", ".join(names)
        shifted = ", ".join("at + n.value" if name == "at" else name for name in names)
        raw.execute(
            "INSERT INTO events (at, kind, workload, slot, lease_id, intent_id, market, host_id, rule, evidence, "
            "reason_code, reason) "
            "VALUES (?, 'lease.interrupted', 'train', 0, 'vast-1', '', 'vast', 'h', '', '', '', '')",
            (int((now - dt.timedelta(days=30)).timestamp() * 1e6),),
        )
        source = "SELECT * FROM events ORDER BY event_id DESC LIMIT 1"
        numbers = "WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < ?)"
        copied = f"{numbers} INSERT INTO events ({columns}) SELECT {shifted} FROM ({source}), n"  # noqa: S608 - our own
        raw.execute(copied, (EVENTS,))


async def _measure(world: Rehearsed) -> bool:
    registry = metric_families.registry()
    figures = Figures(Metrics(registry, ["vast"], ["train"]))
    done = await world.app.cycle()
    figures.see(world.app, done)
    feed = LiveFeed(world.app)
    pages = Pages(world.app, Visitors(None, world.clock.monotonic), lambda: None, feed)
    health, refusals = Health(world.clock.monotonic), Refusals(world.clock.monotonic)
    server = Server("127.0.0.1", 0, registry, health, [*pages.routes(), *feed_routes.routes(feed)], refusals=refusals)
    host, port = await server.start()
    base = f"http://{host}:{port}"
    now = world.clock.now()
    known = world.app.ledger.recollection(now)
    sources = Sources(world.app.rules, world.app.config, known, world.app.seen, now)
    rows = await dashboard.board(sources, await world.app.ledger.reader(), 1)
    template = pages.template("board.html")
    visitor = {"session": False, "proof": "", "may_log_in": False, "version": "", "path": "/"}
    try:
        async with aiohttp.ClientSession() as client:
            metrics = await _least(
                lambda: _get(client, f"{base}/metrics"), lambda: _called(lambda: generate_latest(registry))
            )
            page = await _least(
                lambda: _get(client, f"{base}/"), lambda: _called(lambda: template.render(rows, **visitor))
            )
            fleet = (await feed.newest()).fleet
            served = await _least(
                lambda: _get(client, f"{base}/api/v1/fleet"), lambda: _called(lambda: msgspec.json.encode(fleet))
            )
            made = await _least(lambda: _anew(feed), lambda: _called(lambda: msgspec.json.encode(fleet)))
    finally:
        await server.close()
    good = _ratio(f"the feed, {LEASES} leases, served", *served, "encoding the same JSON", MOST_FEED)
    good = _ratio(f"the feed, {LEASES} leases, made anew", *made, "encoding the same JSON", None) and good
    good = _ratio(f"/metrics, {LEASES} leases", *metrics, "generate_latest", MOST_METRICS) and good
    return _ratio(f"the page, {EVENTS} events", *page, "rendering the same rows", MOST_PAGE) and good


async def _anew(feed: LiveFeed) -> None:
    feed.changed()
    await feed.newest()


def _ratio(name: str, ours: float, theirs: float, what: str, most: float | None) -> bool:
    """Print one ratio; return whether its bound holds, if it has one."""
    ratio = ours / theirs
    figure, both = f"{ratio:.2f} of {what}", f"{ours * 1000:.1f} against {theirs * 1000:.1f} ms"
    return report.line(name, figure, both, holds=None if most is None else ratio <= most)


async def _get(client: aiohttp.ClientSession, url: str) -> None:
    async with client.get(url) as answer:
        answer.raise_for_status()
        await answer.read()


async def _called(work_: Callable[[], object]) -> None:
    work_()


async def _least(ours: Once, theirs: Once) -> tuple[float, float]:
    """Return the least CPU seconds of each, tried by turns so that a busy machine slows both."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(TRIES):
        for once, kept in zip((ours, theirs), seconds, strict=True):
            began = time.process_time()
            await once()
            kept.append(time.process_time() - began)
    return min(seconds[0]), min(seconds[1])
