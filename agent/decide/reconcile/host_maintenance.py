"""Maintenance that the host of a lease announced: kept with the lease, and a reason to rent nothing else there.

Invariants:
1. An announcement is recorded once, together with the cooldown of its host: a person who lifts that is not overruled.
2. It ends no lease, and blames no host: a lease that is lost to it is a loss like any other, recorded with the notice.
3. A host is not rented while its maintenance may begin within the time for which workloads need it. A market that
   does not say when it begins may mean any time.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec

from agent.decide.facts import LeaseChanged
from agent.decide.reconcile.ownership import Ownership
from agent.domain.fleet import Fleet
from agent.domain.market.interruption import Cause, Evidence, MarketEvent, MarketEventKind
from agent.domain.record import cooldown
from agent.domain.record.cooldown import Cooldown
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease
from agent.domain.work.workload import Requirements

UNDATED = timedelta(hours=24)
"""How long a notice counts that does not say when the maintenance begins or ends. Assumed."""
SLACK = timedelta(minutes=10)
"""A loss so long before the announced beginning still belongs to it: hosts and markets have clocks of their own."""
RULE = "maintenance"


def announced(fleet: Fleet, owned: Ownership) -> Ownership:
    """Return the leases with their hosts' new announcements, and the facts of these."""
    leases, facts = list(owned.leases), list(owned.facts)
    for number, lease in enumerate(leases):
        event = _news(fleet, lease) if lease.is_open else None
        if event is None:
            continue
        after = msgspec.structs.replace(
            lease,
            maintenance_told_at=fleet.now,
            maintenance_begins_at=event.begins_at,
            maintenance_ends_at=event.ends_at,
        )
        leases[number] = after
        shown = Evidence(RULE, f"the host of {lease.instance_id} announced {spoken(after)}")
        rest = _cooldown(fleet, after)
        facts.append(LeaseChanged(lease, after, EventKind.LEASE_MAINTENANCE, evidence=shown, cooldown=rest))
    return replace(owned, leases=tuple(leases), facts=tuple(facts))


def evidence(lease: Lease, why: Cause, found: Evidence, now: datetime) -> Evidence:
    """Return the evidence of a loss, with the announcement if its host went silent at the announced time."""
    if why is not Cause.HOST_OFFLINE or not is_due(lease, now):
        return found
    return replace(found, rule=RULE, sentence=f"{found.sentence}; it announced {spoken(lease)}")


def is_due(lease: Lease, now: datetime) -> bool:
    """Return whether the announced maintenance of a lease's host may have begun, and may go on."""
    told_at, begins_at = lease.maintenance_told_at, lease.maintenance_begins_at
    if told_at is None:
        return False
    if begins_at is None:
        return now - told_at <= UNDATED
    return begins_at - SLACK <= now <= (lease.maintenance_ends_at or begins_at + UNDATED) + SLACK


def spoken(lease: Lease) -> str:
    """Return the announced maintenance of a lease's host in words."""
    notice = f"maintenance, read at {_at(lease.maintenance_told_at)}"
    if lease.maintenance_begins_at is None:
        return f"{notice} without a date"
    end = f" to {_at(lease.maintenance_ends_at)}" if lease.maintenance_ends_at is not None else ""
    return f"{notice}, from {_at(lease.maintenance_begins_at)}{end}"


def _at(instant: datetime | None) -> str:
    return f"{instant:%Y-%m-%d %H:%M} UTC" if instant is not None else "an unknown time"


def _news(fleet: Fleet, lease: Lease) -> MarketEvent | None:
    """Return the newest announcement that the ledger does not have yet, or None."""
    announced = max(_notices(fleet, lease), key=lambda event: event.at, default=None)
    if announced is None or lease.maintenance_told_at is None:
        return announced
    if announced.begins_at is not None:
        # A market that lists it as a fact announces it again after each of our starts.
        is_known = (announced.begins_at, announced.ends_at) == (lease.maintenance_begins_at, lease.maintenance_ends_at)
    else:
        is_known = announced.at <= lease.maintenance_told_at
    return None if is_known else announced


def _notices(fleet: Fleet, lease: Lease) -> Iterator[MarketEvent]:
    view = fleet.markets.get(lease.market)
    for event in view.notices if view is not None else ():
        if event.kind is MarketEventKind.MAINTENANCE and event.instance_id == lease.instance_id:
            yield event


def _cooldown(fleet: Fleet, lease: Lease) -> Cooldown | None:
    """Return the cooldown of a host whose maintenance may begin while workloads need it.

    The pool that a pod was rented from has other hosts.
    """
    begins_at = lease.maintenance_begins_at
    needed = max((work.requirements.min_end_ahead for work in fleet.workloads), default=Requirements().min_end_ahead)
    if lease.host.is_pool or (begins_at is not None and begins_at - fleet.now >= needed):
        return None
    until = lease.maintenance_ends_at or (begins_at or fleet.now) + UNDATED
    return cooldown.of_host(lease.host, until, f"an announcement of {spoken(lease)}") if until > fleet.now else None
