"""The state against which a person's order is read, and what a target names in it."""

from dataclasses import dataclass
from datetime import datetime

from agent.act.orders import operator_targets
from agent.act.orders.order_error import OrderError
from agent.domain import open_starts
from agent.domain.record import hold
from agent.domain.record.expiring_record import ExpiringRecord
from agent.domain.record.hold import Target, TargetKind
from agent.domain.record.lease import Lease
from agent.domain.record.reported_crossing import ReportedCrossing
from agent.domain.record.tally import OF_A_SLOT, OF_THE_WORKLOAD, Counted
from agent.domain.work.workload import Workload
from agent.ledger.memory import Recollection

MARKS = frozenset({Counted.RAN, Counted.STARTED, Counted.TAKEN_BACK, *OF_THE_WORKLOAD, *OF_A_SLOT})
"""Scopes of marks that are only counted and hold nothing by themselves."""


@dataclass(frozen=True, slots=True)
class Grounds:
    """The state against which an order is read."""

    workloads: tuple[Workload, ...]
    markets: tuple[str, ...]
    known: Recollection
    now: datetime


def is_stopped(lease: Lease, grounds: Grounds) -> bool:
    """Return whether a lease bills at most its disk and nothing may start it, no open start of ours either."""
    return open_starts.is_stopped(lease, grounds.known.intents, grounds.known.tallies)


def holds_back(kept: ExpiringRecord) -> bool:
    """Return whether a record holds something back, and is more than a mark or a reported threshold."""
    return not isinstance(kept, ReportedCrossing) and kept.place[0] not in MARKS


def named(target: str, grounds: Grounds) -> tuple[Target, tuple[Lease, ...]]:
    """Return the key of a target and its open leases; meanings are tried in this order.

    Raises:
        OrderError: it names nothing.
    """
    leases = tuple(lease for lease in grounds.known.leases if lease.is_open)
    kind, _, name = target.partition(":")
    if kind == "market" and name in grounds.markets:
        return hold.of_market(name), tuple(lease for lease in leases if lease.market == name)
    if operator_targets.is_place(target):
        place = place_of(target, grounds)
        return place, operator_targets.leases_at(place, leases)
    mine = tuple(lease for lease in leases if target in {lease.slot.workload, str(lease.slot)})
    if any(work.name == target for work in grounds.workloads) or any(lease.slot.workload == target for lease in mine):
        return hold.of_workload(target), mine
    if mine or any(str(place) == target for work in grounds.workloads for place in work.places):
        return Target(TargetKind.SLOT, target), mine
    named = tuple(lease for lease in leases if target in {lease.lease_id, lease.instance_id})
    if named:
        return hold.of_lease(named[0].lease_id), named
    if kind == "market":
        raise OrderError("unknown_target", f"no market is named {name!r}; markets: {', '.join(grounds.markets)}")
    raise OrderError("unknown_target", operator_targets.unknown(target, grounds.workloads, leases))


def place_of(target: str, grounds: Grounds) -> Target:
    """Return the host or owner that a target means.

    Raises:
        OrderError: it names no single market.
    """
    try:
        return operator_targets.place(target, grounds.markets, grounds.known)
    except operator_targets.AmbiguousPlaceError as error:
        raise OrderError("ambiguous_place", str(error)) from error


def open_leases(grounds: Grounds) -> str:
    """Return the open leases in words."""
    return f"open leases: {', '.join(sorted(lease.lease_id for lease in grounds.known.leases)) or 'none'}"


def held_back(grounds: Grounds) -> str:
    """Return the holds and cooldowns in words."""
    shown = sorted(str(kept) for kept in grounds.known.expiring if holds_back(kept))
    return f"holds and cooldowns: {', '.join(shown) or 'none'}"
