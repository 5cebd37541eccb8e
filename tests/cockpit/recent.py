"""What the versions of the last minute come to: the figures that a sentence may name, and the useful shares of slots.

A sentence is of the instant of the last cycle, and the useful share of `top` as old as the last document. Both are
at most a minute older than the date on a screen (agent/web/feed/live_feed.py, DOCUMENT_SECONDS).
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from agent.config.settings import Config
from agent.domain.money import MICROS
from agent.domain.record.budget import EVERYTHING, Window
from agent.domain.record.lease import Lease
from agent.ledger.tables.decisions import RecordedDecision
from tests.cockpit import expected
from tests.cockpit.ledger_versions import Version

SPAN = timedelta(seconds=62)
DOLLARS = re.compile(r"\$(\d+\.\d+)")
NOT_KEPT = re.compile(r"expected|useful hour|sampled at|asks for a new price| lists \S+ \(|our leases explain")
Share = float | None


@dataclass(frozen=True, slots=True)
class Recent:
    """The figures of a minute in rising micro-dollars, the shares of slots, and the last decisions, newest first."""

    amounts: Sequence[int]
    shares: Mapping[str, frozenset[Share]]
    decisions: Sequence[RecordedDecision]
    is_whole: bool
    """Whether every version of the minute was read; else nothing can be denied."""

    def unknown(self, text: str) -> list[str]:
        """Return the dollar figures of a text that no figure of the ledger comes to, rounded as they are.

        What a strategy expects, what a sample of offers showed and what a market claims is not in the ledger.
        """
        if not self.is_whole or NOT_KEPT.search(text):
            return []
        return [each for each in DOLLARS.findall(text) if not self._knows(each)]

    def _knows(self, figure: str) -> bool:
        half = 0.5 / 10 ** len(figure.partition(".")[2]) + 1e-9
        place = bisect_left(self.amounts, (float(figure) - half) * MICROS)
        return place < len(self.amounts) and self.amounts[place] <= (float(figure) + half) * MICROS

    def may_show(self, slot: str, shown: str) -> bool:
        """Return whether whole per cents, or "-", may be the useful share of a slot."""
        found = self.shares.get(slot, frozenset())
        known = [100 * each for each in found if each is not None]
        if not self.is_whole:
            return True
        if shown == "-":
            return None in found
        cents = re.fullmatch(r"(\d+)%", shown)
        return cents is not None and bool(known) and min(known) - 1 <= int(cents[1]) <= max(known) + 1


@dataclass(slots=True)
class RecentVersions:
    """Reads versions once, since each lies within the last minute of many screens."""

    config: Config
    _known: dict[tuple[int, float], tuple[frozenset[int], Mapping[str, frozenset[Share]]]] = field(default_factory=dict)

    def of(self, versions: Sequence[Version], are_all: bool, last: datetime) -> Recent:
        """Return what these versions come to, the last of them up to `last`."""
        amounts: set[int] = set()
        shares: dict[str, set[Share]] = {}
        for version in versions:
            mine, shown = self._of_one(version, last)
            amounts |= mine
            for slot, found in shown.items():
                shares.setdefault(slot, set()).update(found)
        decided = versions[-1].decisions if versions else ()
        each = {slot: frozenset(found) for slot, found in shares.items()}
        return Recent(sorted(amounts), each, decided, is_whole=are_all)

    def _of_one(self, version: Version, last: datetime) -> tuple[frozenset[int], Mapping[str, frozenset[Share]]]:
        is_over = version.until < last.timestamp()
        key = (version.number, version.since)
        if is_over and key in self._known:
            return self._known[key]
        ends = [datetime.fromtimestamp(version.since, UTC), min(last, _end_of(version, last))]
        both = [expected.shares(version, self.config, at) for at in ends]
        found = (
            frozenset(_amounts(version, self.config)),
            {slot: frozenset(one[slot] for one in both) for slot in both[0]},
        )
        if is_over:
            self._known[key] = found
        return found


def _end_of(version: Version, last: datetime) -> datetime:
    return datetime.fromtimestamp(version.until, UTC) if version.until < last.timestamp() else last


def _amounts(version: Version, config: Config) -> Iterator[int]:
    """Yield every sum and price of a version and of the configuration, in micro-dollars."""
    for lease in version.memory.leases.values():
        yield from _of_lease(lease)
    for sample in version.prices:
        yield from (rate.micros for rate in (sample.ask, sample.floor) if rate is not None)
    for event in version.events:
        yield from (rate.micros for rate in (event.bid, event.floor, event.rate, event.amount) if rate is not None)
    for made in version.decisions:
        yield from (rate.micros for rate in (made.bid, made.rate) if rate is not None)
        # What an order names may be gone before a lease has it; a hold names what a lease has.
        figures = DOLLARS.findall(made.reason.sentence) if made.kind != "hold" else ()
        yield from (round(float(each) * MICROS) for each in figures)
    for work in config.workloads:
        yield work.max_price.micros
    caps = config.limits.hard(EVERYTHING)
    yield from (cap.micros for cap in (caps.per_hour, *map(caps.amount, (Window.DAY, Window.MONTH))) if cap is not None)


def _of_lease(lease: Lease) -> Iterator[int]:
    rates = lease.gpu_rate, lease.disk_rate, lease.billing_rate, lease.agreed, lease.doubted_rate
    prices = lease.ask, lease.host_floor, lease.rival_floor
    yield from (rate.micros for rate in (*rates, *prices, *lease.recent_bids) if rate is not None)
