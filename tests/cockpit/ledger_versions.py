"""Every committed version of a ledger, read beside the daemon that writes it, with the time at which it held.

SQLite counts commits in the index of its journal (https://sqlite.org/walformat.html, `iChange`). The count is looked at
every few milliseconds, and each new version is read at once. So it is known which versions an instant may have had, and
whether one of them came and went unread.
"""

import datetime as dt
import itertools
import mmap
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

import sqlalchemy as sa

from agent.domain.market.price import PriceSample
from agent.domain.record.account import Line
from agent.domain.record.event import Event
from agent.domain.record.shadow_account import Counted
from agent.ledger import connection_thread, fill_memory
from agent.ledger.file import connection
from agent.ledger.memory import Memory
from agent.ledger.tables import decisions, event_rows, price_history, schema, spend_lines
from agent.ledger.tables.decisions import RecordedDecision

LOOK_SECONDS = 0.003
DAY = dt.timedelta(days=1)
KEPT_SECONDS = 120.0
"""Versions are kept for so long after they ended."""
HEADER = struct.Struct("=48s48s")
COUNT = struct.Struct("=8xI")
EVENTS = 30
MOST_PRICES = 2_000
MOST_DECISIONS = 60
SLACK_SECONDS = 0.2
"""The daemon carries its clock on from the machine's by monotonic seconds: the two may differ by so much. Assumed."""


@dataclass(slots=True)
class Version:
    """One committed version: its content, its number, and the instants between which it may have been current.

    `since` and `until` are seconds since the epoch; `until` is infinite for the present one.
    """

    number: int
    since: float
    memory: Memory
    sums: Mapping[dt.date, Mapping[str, Counted]]
    lines: Sequence[Line]
    events: Sequence[Event]
    prices: Sequence[PriceSample]
    decisions: Sequence[RecordedDecision]
    newest_price: dt.datetime | None = None
    """When the newest of all its prices was seen."""
    until: float = field(default=float("inf"))


class Span(NamedTuple):
    """The versions that were read of a span of time; `is_covered` where the reader watched for the whole of it."""

    versions: Sequence[Version]
    is_covered: bool

    @property
    def is_whole(self) -> bool:
        """Whether none of its versions was missed."""
        return self.is_covered and not any(self.gaps())

    def gaps(self) -> Iterator[tuple[Version, Version]]:
        """Yield each two versions between which one or more came and went unread."""
        yield from (pair for pair in itertools.pairwise(self.versions) if pair[1].number != pair[0].number + 1)


class LedgerVersions:
    """Reads versions of one file on a thread of its own."""

    def __init__(self, path: Path) -> None:
        """Read the ledger at `path`, which a daemon has opened."""
        self.read = 0
        self._trouble: BaseException | None = None
        self._path = path
        self._versions: deque[Version] = deque()
        self._watched_until = 0.0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ledger-versions", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()
        if self._trouble is not None:
            raise self._trouble

    def at(self, first: dt.datetime, last: dt.datetime) -> Span:
        """Return the versions that may have held between two instants."""
        begin, end = first.timestamp() - SLACK_SECONDS, last.timestamp() + SLACK_SECONDS
        is_past = self.is_past(last)
        found = [each for each in tuple(self._versions) if each.since <= end and begin <= each.until]
        return Span(found, is_past and bool(found) and found[0].since <= begin)

    def is_past(self, last: dt.datetime) -> bool:
        """Return whether the versions up to an instant have been read."""
        return last.timestamp() + SLACK_SECONDS <= self._watched_until

    def samples(self) -> list[PriceSample]:
        """Return all prices of the present version, the oldest first."""
        engine = connection.engine(self._path, "ro")
        with engine.connect() as link, link.begin():
            found = connection_thread.rows(link, sa.select(schema.prices).order_by(schema.prices.c.at))
        engine.dispose()
        return [price_history.sample_of(row) for row in found]

    def _run(self) -> None:
        try:
            engine = connection.engine(self._path, "ro")
            index = Path(f"{self._path}-shm")
            with engine.connect() as link, index.open("rb") as file:
                # Our connection keeps the index there, whatever happens to the daemon.
                with link.begin():
                    link.execute(sa.text("SELECT count(*) FROM leases"))
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as shared:
                    self._watch(link, shared)
        except BaseException as error:  # noqa: BLE001 - raised when the reading ends
            self._trouble = error

    def _watch(self, link: sa.Connection, shared: mmap.mmap) -> None:
        looked = time.time()
        while not self._ends.wait(LOOK_SECONDS):
            last = self._versions[-1] if self._versions else None
            before = time.time()
            number = _count(shared)
            if number is None:
                continue
            if last is not None and number == last.number:
                looked = self._watched_until = before
                continue
            if last is not None:
                last.until = min(last.until, time.time())
            version = self._version(link, shared, looked)
            if version is not None:
                self.read += 1
                self._versions.append(version)
                looked = self._watched_until = before
                while self._versions[0].until < before - KEPT_SECONDS:
                    self._versions.popleft()

    @staticmethod
    def _version(link: sa.Connection, shared: mmap.mmap, since: float) -> Version | None:
        """Read the present version; None where it changed meanwhile."""
        number, now = _count(shared), dt.datetime.now(dt.UTC)
        with link.begin():
            version = _read(link, now, since)
        if number is None or number != _count(shared):
            return None
        version.number = number
        return version


def _read(link: sa.Connection, now: dt.datetime, since: float) -> Version:
    def rows(query: Any) -> list[Any]:
        return connection_thread.rows(link, query)

    memory = fill_memory.recall(link, now)
    hosts = sorted({lease.host_id for lease in memory.leases.values()})
    prices = price_history.history(None, None, hosts, now - DAY, None, MOST_PRICES)
    made = sa.select(schema.decisions).order_by(schema.decisions.c.decision_id.desc()).limit(MOST_DECISIONS)
    last = rows(decisions.last_per_slot())
    (newest,) = rows(sa.select(sa.func.max(schema.prices.c.at).label("at")))
    # The version may still hold after midnight.
    days = (now.date(), now.date() + DAY)
    return Version(
        0,
        since,
        memory,
        {day: _sums(rows(spend_lines.sums(day, day))) for day in days},
        [spend_lines.line_of(row) for row in rows(spend_lines.lines(now.date().replace(day=1), None))],
        [event_rows.event_of(row) for row in rows(event_rows.between(None, None, None, (), EVENTS))],
        [price_history.sample_of(row) for row in rows(prices)],
        [decisions.decision_of(row) for row in (*rows(made), *last)],
        newest["at"],
    )


def _sums(rows: Sequence[Any]) -> dict[str, Counted]:
    return {row["workload"]: spend_lines.counted_of(row) for row in rows}


def _count(shared: mmap.mmap) -> int | None:
    """Return the count of commits; None while it is being written, which is when its two copies differ."""
    first, second = HEADER.unpack_from(shared)
    return int(COUNT.unpack_from(first)[0]) if first == second else None
