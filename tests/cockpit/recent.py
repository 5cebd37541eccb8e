"""The figures of the versions of the last minute: those that a sentence may name, and the useful shares of slots.

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
from tests.cockpit.ledger_versions import Span, Version

SPAN = timedelta(seconds=62)
DOLLARS = re.compile(r"\$(\d+\.\d+)")
NOT_KEPT = re.compile(r"expected|useful hour|sampled at|asks for a new price| lists \S+ \(|our leases explain")
OF_LEASE = re.compile(r"(?:starting|running|wait for it to resume) at \$(\d+\.\d+)/h", re.IGNORECASE)
"""The pattern of a rate for GPUs in a sentence on a slot."""
Share = float | None


@dataclass(frozen=True, slots=True)
class Recent:
    """The figures of a minute in rising micro-dollars, the shares of slots, and the last decisions, newest first."""

    amounts: Sequence[int]
    shares: Mapping[str, frozenset[Share]]
    decisions: Sequence[RecordedDecision]
    is_whole: bool
    """Whether every version of the minute was read; else nothing can be denied."""
    at: datetime
    rates: Mapping[str, Sequence[int]]
    """The rates that a slot's leases paid for their GPUs, in rising micro-dollars. A slot whose leases may have paid
    another rate in an unread version is left out."""
    rated: set[tuple[datetime, str]]
    """Instants and slots of which a rate was compared with these."""

    def unknown(self, text: str) -> list[str]:
        """Return the dollar figures of a text that no figure of the ledger comes to, rounded as they are.

        The ledger does not have a strategy's expectation, a sample of offers and a market's claim.
        """
        if not self.is_whole or NOT_KEPT.search(text):
            return []
        return [each for each in DOLLARS.findall(text) if not _has(self.amounts, each)]

    def not_of_lease(self, slot: str, text: str) -> list[str]:
        """Return the rate that a sentence on a slot gives for its lease, where no lease of the slot had that rate."""
        shown = OF_LEASE.search(text)
        if shown is None or slot not in self.rates:
            return []
        self.rated.add((self.at, slot))
        return [] if _has(self.rates[slot], shown[1]) else [shown[1]]

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


def _has(amounts: Sequence[int], figure: str) -> bool:
    """Return whether one of these rising micro-dollars is a figure, rounded as it is."""
    half = 0.5 / 10 ** len(figure.partition(".")[2]) + 1e-9
    place = bisect_left(amounts, (float(figure) - half) * MICROS)
    return place < len(amounts) and amounts[place] <= (float(figure) + half) * MICROS


@dataclass(slots=True)
class RecentVersions:
    """Reads versions once, since each lies within the last minute of many screens."""

    config: Config
    rated: set[tuple[datetime, str]] = field(default_factory=set)
    _known: dict[tuple[int, float], tuple[frozenset[int], Mapping[str, frozenset[Share]]]] = field(default_factory=dict)

    def of(self, span: Span, last: datetime) -> Recent:
        """Return the figures of the versions of a span, the last of them up to `last`."""
        versions = span.versions
        amounts: set[int] = set()
        shares: dict[str, set[Share]] = {}
        for version in versions:
            mine, shown = self._of_one(version, last)
            amounts |= mine
            for slot, found in shown.items():
                shares.setdefault(slot, set()).update(found)
        decided = versions[-1].decisions if versions else ()
        each = {slot: frozenset(found) for slot, found in shares.items()}
        return Recent(sorted(amounts), each, decided, span.is_whole, last, _rates(span), self.rated)

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


def _rates(span: Span) -> dict[str, list[int]]:
    """Return the GPU rates of the leases of each slot, if no unread version can have had another one.

    A slot whose leases paid the same before and after an unread version paid the same in it: such versions last for
    milliseconds, and a rate changes by an order or with a lease.
    """
    if not span.is_covered:
        return {}
    found: dict[str, set[int]] = {}
    for version in span.versions:
        for slot, rates in _paid(version).items():
            found.setdefault(slot, set()).update(rates)
    unsure = {slot for one, other in span.gaps() for slot in found if _paid(one).get(slot) != _paid(other).get(slot)}
    return {slot: sorted(rates) for slot, rates in found.items() if slot not in unsure}


def _paid(version: Version) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for lease in version.memory.leases.values():
        found.setdefault(str(lease.slot), set()).add(lease.gpu_rate.micros)
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
        # The host of an order may be gone before a lease has it; a hold names a host that a lease has.
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
