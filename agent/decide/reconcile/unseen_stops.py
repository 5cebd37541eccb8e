"""Ends between two looks that were already over at the second one, read from the market's own record.

Invariants:
1. Only the market's record makes such a change, and only in pairs that lead back to the state before. Changes that the
   listing itself shows need the usual two looks.
2. Each change is dated, metered and judged at the instant of its event, as if a listing had been taken then.
3. A first start that is on record, before a listing that shows the lease stopped, ended or on a silent host, is a
   change too, since no record shows a stop by the instance's own key, nor the silence of every host: what ran unseen
   may have the only checkpoint on its disk (rule 11).
4. While a rebid is in doubt, the higher bid is metered in them too (rule 21).
"""

import dataclasses
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

import msgspec

from agent.decide.facts import Fact, LeaseChanged
from agent.decide.reconcile import agreed_rate
from agent.decide.reconcile.billed_times import BILLED_AFTER, long_unseen
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.interruption import MarketEvent
from agent.domain.record.lease import Bills, Lease, LeaseState

Change = Callable[[Fleet, MarketView, Lease, Instance, LeaseState, tuple[datetime, datetime]], LeaseChanged | None]
"""A function that makes the change of a lease to another state; the span is between the two looks around the change."""
_FOLLOWED = frozenset({LeaseState.RUNNING, LeaseState.STARTING, LeaseState.PAUSED, LeaseState.MISSING})
_OVER = frozenset({InstanceState.PAUSED, InstanceState.EXITED, InstanceState.OFFLINE})
_SHOWN = {
    Bills.GPU_AND_DISK: (InstanceState.RUNNING, LeaseState.RUNNING),
    Bills.DISK: (InstanceState.PAUSED, LeaseState.PAUSED),
    Bills.NOTHING: (InstanceState.OFFLINE, LeaseState.OFFLINE),
}


def changes(
    fleet: Fleet, view: MarketView, lease: Lease, row: Instance, lost: Change, updated: Change
) -> tuple[LeaseChanged, ...]:
    """Return the changes of a lease since it was last metered that were undone again, oldest first."""
    found: list[LeaseChanged] = []
    events = pairs(lease, row, view, fleet.now, fleet.poll)
    rise, known = agreed_rate.in_doubt(fleet, lease), lease
    if rise is not None:
        lease = msgspec.structs.replace(lease, agreed_rate=lease.agreed)
    for event, until in zip(events, [*(event.at for event in events[1:]), fleet.now], strict=False):
        shown, state = _SHOWN[BILLED_AFTER[event.kind]]
        earlier = tuple(each for each in view.events if each.at <= until and each.kind in BILLED_AFTER)
        then = msgspec.structs.replace(view, events=earlier, offers=(), credit=None, listed_at=event.at)
        seen = msgspec.structs.replace(
            row,
            state=shown,
            gpu_rate=lease.gpu_rate if rise is None or found else lease.gpu_rate + rise.more,
            disk_rate=lease.disk_rate,
            may_bill_gpu=False,
            traffic_down_gb=lease.traffic_down_gb,
            traffic_up_gb=lease.traffic_up_gb,
        )
        change = updated if state is LeaseState.RUNNING else lost
        fact = change(msgspec.structs.replace(fleet, now=event.at), then, lease, seen, state, (event.at, event.at))
        if fact is not None:
            found.append(fact if found else agreed_rate.with_rise(dataclasses.replace(fact, before=known), rise))
            lease = fact.after
    return tuple(found)


def pairs(lease: Lease, row: Instance, view: MarketView, now: datetime, poll: timedelta) -> list[MarketEvent]:
    """Return the events that stopped a lease and started it again, or the other way round: an even number.

    One more is the first start of a lease that is stopped or ended now, or whose host is silent.
    """
    # The return of a silent host is on no record; only a lease that never ran is known to start after it.
    is_followed = lease.state in _FOLLOWED or (lease.state is LeaseState.OFFLINE and not lease.has_run)
    if not is_followed or lease.paused_by_us:
        return []
    runs = lease.is_in_run
    found: list[MarketEvent] = []
    for event in sorted(view.events, key=lambda event: event.at):
        is_ours = event.instance_id == lease.instance_id and lease.accrued_until < event.at <= now
        if not is_ours or event.kind not in BILLED_AFTER:
            continue
        starts = BILLED_AFTER[event.kind] is Bills.GPU_AND_DISK
        if starts is not runs:
            found.append(event)
            runs = starts
    is_over = row.state in _OVER and not lease.has_run
    # A container that ended at once has done nothing: its start has failed.
    least = long_unseen(poll) if row.state is InstanceState.EXITED else timedelta()
    if found and runs and is_over and found[-1].at <= (view.listed_at or now) - least:
        return found
    return found[: len(found) // 2 * 2]


def latest(facts: Iterable[Fact]) -> list[Fact]:
    """Return the facts except lease changes that a later fact of the same lease replaces, since those mark no slot."""
    kept = list(facts)
    last = {fact.after.lease_id: fact for fact in kept if isinstance(fact, LeaseChanged)}
    return [fact for fact in kept if not isinstance(fact, LeaseChanged) or last[fact.after.lease_id] is fact]
