"""The history of slots over a span of time, from the ledger: running, loading, paused or empty, and lost work.

1. A slot with two leases, as during a move, has the state of the further one: running before loading before paused.
2. A lease that is stopped for any reason and kept (lost, exited, offline, missing) counts as paused.
3. Lost work is the end of a running stretch that an interruption made useless. It is marked inside that stretch.
"""

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from agent.domain.record.account import LostWork
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.slot import Slot
from agent.ledger.reader import Reader

MOST_EVENTS = 5_000
"""The most events to read for all slots together. With more events, the histories begin at the oldest one read."""


class Doing(StrEnum):
    """The state of a slot in its history, the furthest first."""

    RUNNING = "running"
    LOADING = "loading"
    PAUSED = "paused"
    EMPTY = "empty"


RANK = {doing: rank for rank, doing in enumerate(Doing)}
AFTER = {
    EventKind.LEASE_RUNNING: Doing.RUNNING,
    EventKind.LEASE_RESUMED: Doing.RUNNING,
    EventKind.LEASE_REASSIGNED: Doing.RUNNING,
    EventKind.LEASE_STARTING: Doing.LOADING,
    EventKind.LEASE_QUEUED: Doing.PAUSED,
    EventKind.LEASE_PAUSED: Doing.PAUSED,
    EventKind.LEASE_INTERRUPTED: Doing.PAUSED,
    EventKind.LEASE_START_LOST: Doing.PAUSED,
    EventKind.LEASE_EXITED: Doing.PAUSED,
    EventKind.LEASE_OFFLINE: Doing.PAUSED,
    EventKind.LEASE_MISSING: Doing.PAUSED,
    EventKind.LEASE_FAILED: Doing.PAUSED,
    EventKind.LEASE_RELEASED_BY_US: Doing.EMPTY,
    EventKind.LEASE_RELEASED: Doing.EMPTY,
    EventKind.LEASE_GONE: Doing.EMPTY,
    EventKind.LEASE_ENDED: Doing.EMPTY,
}
"""The state of a lease after an event."""
KINDS = tuple(AFTER)
OPEN = {LeaseState.RUNNING: Doing.RUNNING, LeaseState.STARTING: Doing.LOADING, LeaseState.RELEASING: Doing.EMPTY}


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch from `begins` to `ends` in one state, or with work lost to `cause`."""

    begins: datetime
    ends: datetime
    doing: Doing
    cause: str = ""

    @property
    def span(self) -> timedelta:
        """The length of the stretch."""
        return self.ends - self.begins


@dataclass(frozen=True, slots=True)
class History:
    """The history of one slot: stretches one after another without a gap, and the work that was lost in them."""

    stretches: Sequence[Stretch]
    lost: Sequence[Stretch]

    def total(self, doing: Doing) -> timedelta:
        """Return how long the slot was in a state."""
        return sum((each.span for each in self.stretches if each.doing is doing), timedelta())

    @property
    def total_lost(self) -> timedelta:
        """The time of the lost work."""
        return sum((each.span for each in self.lost), timedelta())


async def histories(
    places: Collection[Slot], leases: Iterable[Lease], reader: Reader, since: datetime, now: datetime
) -> Mapping[Slot, History]:
    """Return the history of each of these slots. `leases` are the open ones."""
    shown = frozenset(places)
    happened = await reader.slot_events(shown, KINDS, since, MOST_EVENTS)
    if len(happened) == MOST_EVENTS:
        since = happened[-1].at
    mine = [each for each in happened if each.slot is not None and Slot(each.workload, each.slot) in shown]
    known = {lease.lease_id: lease for lease in leases if lease.slot in shown}
    ended = {each.lease_id for each in mine if each.lease_id} - known.keys()
    known |= {lease.lease_id: lease for lease in await reader.leases(len(ended), ids=ended)} if ended else {}
    by_slot: dict[Slot, list[Lease]] = defaultdict(list)
    for lease in known.values():
        if not (lease.is_open and lease.is_held):
            by_slot[lease.slot].append(lease)
    by_lease: dict[str, list[Event]] = defaultdict(list)
    for event in reversed(mine):
        by_lease[event.lease_id].append(event)
    older = [each.lease_id for each in known.values() if each.opened_at < since]
    before = {each.lease_id: each for each in await reader.last_events(older, KINDS, since)}
    lost_work = await reader.lost_work(since, now)
    return {place: history(by_slot[place], by_lease, before, lost_work, since, now) for place in places}


def history(
    leases: Sequence[Lease],
    happened: Mapping[str, Sequence[Event]],
    before: Mapping[str, Event],
    lost_work: Iterable[LostWork],
    since: datetime,
    now: datetime,
) -> History:
    """Return the history of the slot of these leases.

    `happened` are the events of each lease, oldest first. `before` is the last event of each lease before `since`.
    """
    lives = [_life(lease, happened.get(lease.lease_id, ()), before.get(lease.lease_id), since, now) for lease in leases]
    ids = {lease.lease_id for lease in leases}
    lost = [
        Stretch(max(each.at - timedelta(microseconds=each.lost), since), each.at, Doing.RUNNING, each.cause.value)
        for each in lost_work
        if each.lease_id in ids and each.lost
    ]
    return History(_merged(lives, since, now), lost)


def _life(
    lease: Lease, happened: Sequence[Event], before: Event | None, since: datetime, now: datetime
) -> list[Stretch]:
    """Return the stretches of one lease from `since`, or from its opening if that is later."""
    if lease.opened_at >= since:
        doing = Doing.LOADING
    elif before is not None:
        doing = AFTER[before.kind]
    else:
        doing = OPEN.get(lease.state, Doing.PAUSED) if not happened else Doing.RUNNING
    begins, end = max(lease.opened_at, since), min(lease.ended_at or now, now)
    found = []
    for event in happened:
        at = min(max(event.at, begins), end)
        found.append(Stretch(begins, at, doing))
        begins, doing = at, AFTER[event.kind]
    return [each for each in (*found, Stretch(begins, end, doing)) if each.ends > each.begins]


def _merged(lives: Sequence[Sequence[Stretch]], since: datetime, now: datetime) -> list[Stretch]:
    """Return one line of stretches without gaps, from those of several leases."""
    every = [each for life in lives for each in life if each.doing is not Doing.EMPTY]
    edges = sorted({since, now, *(each.begins for each in every), *(each.ends for each in every)})
    merged: list[Stretch] = []
    for begins, ends in itertools.pairwise(edges):
        there = [each.doing for each in every if each.begins <= begins and each.ends >= ends]
        doing = min(there, key=RANK.__getitem__, default=Doing.EMPTY)
        if merged and merged[-1].doing is doing:
            begins = merged.pop().begins  # noqa: PLW2901 - the stretch goes on
        merged.append(Stretch(begins, ends, doing))
    return merged
