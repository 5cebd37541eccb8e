"""A ledger as recorded time: the searches with their prices, and our own leases at the same time.

Invariants:
1. Every fact of an instant was known at it: a price is the last one seen by then, a lease has the state of its events
   up to then, and a start counts once it had ended.
"""

import bisect
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby

import msgspec
from msgspec.structs import replace

from agent.domain.market.gpu import GpuModel
from agent.domain.market.offer import Offer
from agent.domain.market.price import PriceSample
from agent.domain.record.account import Line
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.deadline import Start
from agent.ledger.reader import Reader
from agent.ledger.tables.search_history import Seen, Slice

OFFERS_KEPT = timedelta(minutes=2)
"""The age up to which an offer is used, as by the daemon."""
MOST = 5_000_000
"""The most rows of one kind to read. A ledger of ours has fewer."""
_STATES = {
    EventKind.LEASE_RUNNING: LeaseState.RUNNING,
    EventKind.LEASE_RESUMED: LeaseState.RUNNING,
    EventKind.LEASE_STARTING: LeaseState.STARTING,
    EventKind.LEASE_INTERRUPTED: LeaseState.PAUSED,
    EventKind.LEASE_START_LOST: LeaseState.PAUSED,
    EventKind.LEASE_PAUSED: LeaseState.PAUSED,
}


@dataclass(frozen=True, slots=True)
class Moment:
    """One instant: the searches of the last two minutes, our leases, and the starts that had ended by then."""

    now: datetime
    offers: tuple[Offer, ...]
    leases: tuple[Lease, ...]
    starts: tuple[Start, ...]


@dataclass(slots=True)
class History:
    """A ledger's records, oldest first. `assumed` counts slices of which only prices are known."""

    looks: list[Seen]
    prices: dict[Slice, list[PriceSample]]
    slices: dict[Slice, Offer]
    leases: list[Lease]
    events: dict[str, list[Event]]
    lines: list[Line] = field(default_factory=list)
    done: dict[str, datetime] = field(default_factory=dict)
    assumed: int = 0

    @property
    def span(self) -> tuple[datetime, datetime] | None:
        """The instants of the first and the last search, or None without one."""
        return (self.looks[0].at, self.looks[-1].at) if self.looks else None

    def moments(self, step: timedelta) -> Iterator[Moment]:
        """Yield the instants of all searches, and between them one every `step`."""
        if self.span is None:
            return
        now, until = self.span
        place = 0
        recent: list[Seen] = []
        starts = self._starts()
        while now <= until:
            while place < len(self.looks) and self.looks[place].at <= now:
                recent.append(self.looks[place])
                place += 1
            recent = [look for look in recent if look.at > now - OFFERS_KEPT]
            offers = {(row.market, row.offer_id): row for look in recent for row in self._offers(look)}
            past = tuple(start for start in starts if start.at <= now)
            yield Moment(now, tuple(offers.values()), tuple(self._leases(now)), past)
            following = self.looks[place].at if place < len(self.looks) else until + step
            now = min(now + step, following)

    def _offers(self, look: Seen) -> Iterator[Offer]:
        for host_id, gpus in look.slices:
            key = (look.market, host_id, gpus)
            known, samples = self.slices.get(key), self.prices.get(key, [])
            place = bisect.bisect_right(samples, look.at, key=lambda sample: sample.at)
            if known is not None and place:
                last = samples[place - 1]
                yield msgspec.structs.replace(known, ask=last.ask, floor=last.floor, seen_at=look.at)

    def _leases(self, now: datetime) -> Iterator[Lease]:
        for lease in self.leases:
            if lease.opened_at <= now and (lease.ended_at is None or now < lease.ended_at):
                yield self._as_of(lease, now)

    def _as_of(self, lease: Lease, now: datetime) -> Lease:
        state, since, cause, rival = LeaseState.STARTING, lease.opened_at, None, None
        for event in self.events.get(lease.lease_id, []):
            if event.at > now:
                break
            if event.kind in _STATES:
                state, since, cause = _STATES[event.kind], event.at, event.cause
                rival = event.floor if event.kind == EventKind.LEASE_INTERRUPTED else rival
        return replace(
            lease,
            state=state,
            state_since=since,
            ended_at=None,
            interrupted_by=cause,
            rival_floor=rival,
            paused_by_us=state is LeaseState.PAUSED and cause is None,
        )

    def _starts(self) -> list[Start]:
        found = []
        for lease in self.leases:
            ran = next(
                (each for each in self.events.get(lease.lease_id, []) if each.kind == EventKind.LEASE_RUNNING), None
            )
            if ran is not None:
                seconds = (ran.at - lease.opened_at).total_seconds()
                found.append(Start(lease.lease_id, lease.market, ran.at, max(seconds, 0.0)))
        return sorted(found, key=lambda start: start.at)


async def read(reader: Reader, since: datetime | None = None, until: datetime | None = None) -> History:
    """Return a ledger's records from `since` up to but not at `until`."""
    samples = list(reversed(await reader.prices(until=until, limit=MOST)))
    prices: dict[Slice, list[PriceSample]] = defaultdict(list)
    for sample in samples:
        prices[sample.market, sample.host_id, sample.gpus].append(sample)
    looks = await reader.looks(since, until)
    slices = {(each.market, each.host_id, each.gpus): each for each in await reader.slices()}
    assumed = 0
    if not looks:
        # Old ledgers do not keep searches: prices that changed together were seen together.
        looks = _guessed([sample for sample in samples if since is None or sample.at >= since])
        lacking = {key: rows[-1] for key, rows in prices.items() if key not in slices}
        slices |= {key: _assumed(sample) for key, sample in lacking.items()}
        assumed = len(lacking)
    events: dict[str, list[Event]] = defaultdict(list)
    done: dict[str, datetime] = {}
    for event in reversed(await reader.events(until=until, limit=MOST)):
        if event.lease_id:
            events[event.lease_id].append(event)
        if event.kind == EventKind.WORKLOAD_DONE:
            done[event.workload] = event.at
    return History(
        looks,
        dict(prices),
        slices,
        list(reversed(await reader.leases(MOST))),
        dict(events),
        await reader.lines(),
        done,
        assumed,
    )


def _guessed(samples: Sequence[PriceSample]) -> list[Seen]:
    found = []
    for (market, at), rows in groupby(
        sorted(samples, key=lambda row: (row.at, row.market)), lambda row: (row.market, row.at)
    ):
        found.append(Seen(market, at, tuple(sorted({(row.host_id, row.gpus) for row in rows}))))
    return found


def _assumed(sample: PriceSample) -> Offer:
    """Return an offer of which only the prices are known, as of an ordinary, verified host with storage at 15 cents."""
    return Offer(
        market=sample.market,
        offer_id=f"{sample.host_id}/{sample.gpus}",
        host_id=sample.host_id,
        owner_id=sample.host_id,
        gpu=GpuModel(sample.gpu),
        gpus=sample.gpus,
        vram_mb=1_000_000,
        dlperf=100.0,
        reliability=1.0,
        is_verified=True,
        region="",
        inet_down_mbps=500.0,
        inet_up_mbps=500.0,
        disk_gb=10_000.0,
        ask=None,
        floor=None,
        storage_micros_per_gb_month=150_000,
        traffic_down_micros_per_gb=0,
        traffic_up_micros_per_gb=0,
        ends_at=None,
        seen_at=sample.at,
    )
