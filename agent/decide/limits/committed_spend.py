"""Committed spend of everything and of each market and workload: the possible cost of leases and doubts.

Invariants:
1. Doubt counts as spend: an open paying intent counts at its whole rate since it was sent.
2. The cost of a lease since its last metering counts before the ledger has it. Paused storage goes on billing and
   counts. What was not seen for `UNSEEN` counts at the most that it may cost: a start that nobody saw runs.
3. A bid that waits for an auction counts as an instance, because any auction may start it. One that is parked before it
   ever ran does not.
4. A network volume counts like a lease: what the ledger has of it, its cost since, and its rate. It is no instance.
5. What is owed counts in the UTC days and months in which it came about.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

import msgspec

from agent.decide.accounting import meter, unmetered_cost, volume_metering
from agent.decide.accounting.unmetered_cost import Owed
from agent.domain import money
from agent.domain.fleet import Fleet, Spend
from agent.domain.money import Usd, UsdPerHour
from agent.domain.record import budget
from agent.domain.record.budget import EVERYTHING, Scope, Window
from agent.domain.record.intent import Intent
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.work.decision import Decision, Pause, Rebid, Rent, Resume

UNSEEN = timedelta(minutes=10)
"""A lease that was metered last before this is not listed: what is listed is metered every five minutes."""


class CommittedSpend(msgspec.Struct, frozen=True):
    """Committed spend: per hour, today, this month, number of instances, and in total since the ledger began.

    `queued` are those of the instances that are bids without a machine so far. `pledged` is the cost of traffic that is
    under way or about to begin. `parts` are the same figures of each market and workload that has any.
    """

    rate: UsdPerHour
    today: Usd
    month: Usd
    instances: int
    total: Usd = money.ZERO
    pledged: Usd = money.ZERO
    parts: Mapping[Scope, "CommittedSpend"] = {}
    queued: int = 0

    def of(self, scope: Scope) -> "CommittedSpend":
        """Return the part of a scope; it is zero for a scope without commitments."""
        return self if scope == EVERYTHING else self.parts.get(scope, NOTHING)

    def spent(self, window: Window) -> Usd:
        """Return the spend in a summing window."""
        if window is Window.DAY:
            return self.today
        return self.month if window is Window.MONTH else self.total

    def after(self, decision: Decision, pledge: Usd = money.ZERO) -> "CommittedSpend":
        """Return the committed spend after `decision`; `pledge` is the traffic that it causes."""
        rate, instances = _difference(decision)
        if not rate.micros and not instances and not pledge.micros:
            return self
        touched = {scope: self.of(scope).plus(rate, instances, pledge) for scope in scopes_of(decision)}
        return msgspec.structs.replace(self.plus(rate, instances, pledge), parts={**self.parts, **touched})

    def without(self, lease: Lease) -> "CommittedSpend":
        """Return the committed spend once a lease has ended; what it has cost so far stays."""
        less = money.FREE - lease.committed_rate
        fewer = -instances_of(lease)
        touched = {scope: self.of(scope).plus(less, fewer, money.ZERO) for scope in _scopes(lease)}
        return msgspec.structs.replace(self.plus(less, fewer, money.ZERO), parts={**self.parts, **touched})

    def plus(self, rate: UsdPerHour, instances: int, pledge: Usd) -> "CommittedSpend":
        """Return this spend with an additional commitment."""
        return msgspec.structs.replace(
            self,
            rate=self.rate + rate,
            instances=self.instances + instances,
            pledged=self.pledged + pledge,
        )


NOTHING = CommittedSpend(money.FREE, money.ZERO, money.ZERO, 0)


class _Item(msgspec.Struct, frozen=True):
    """The commitment of one lease or doubt."""

    scopes: tuple[Scope, ...]
    rate: UsdPerHour
    owed: Owed
    instances: int
    pledged: Usd = money.ZERO
    queued: int = 0


def committed_by_fleet(fleet: Fleet) -> CommittedSpend:
    """Return the committed spend of the fleet, with leases and doubts."""
    pledges = {lease.lease_id: _pledge(fleet, lease) for lease in fleet.leases if lease.is_live}
    return committed(fleet.leases, fleet.intents, fleet.spend, fleet.spend_of, fleet.now, pledges, fleet.volumes)


def committed(
    leases: Iterable[Lease],
    intents: Iterable[Intent],
    spend: Spend,
    spend_of: Mapping[Scope, Spend],
    now: datetime,
    pledges: Mapping[str, Usd] | None = None,
    volumes: volume_metering.Volumes | None = None,
) -> CommittedSpend:
    """Return the committed spend at `now` from leases, open intents, the ledger's counts and network volumes."""
    open_leases = {lease.lease_id: lease for lease in leases if lease.is_open}
    doubts = [intent for intent in intents if intent.is_open and intent.kind.is_paying]
    items = [_of_lease(lease, now, (pledges or {}).get(lease.lease_id, money.ZERO)) for lease in open_leases.values()]
    items += [_of_doubt(intent, open_leases.get(intent.lease_id), now) for intent in doubts]
    items += [_of_volume(burden) for burden in volume_metering.burdens(volumes or {}, now)]
    by_scope: dict[Scope, list[_Item]] = {scope: [] for scope in spend_of}
    for item in items:
        for scope in dict.fromkeys(item.scopes):
            by_scope.setdefault(scope, []).append(item)
    parts = {scope: _sum(mine, spend_of.get(scope, Spend()), now) for scope, mine in by_scope.items()}
    whole = _sum(items, spend, now)
    return msgspec.structs.replace(whole, parts={scope: part for scope, part in parts.items() if part != NOTHING})


def instances_of(lease: Lease) -> int:
    """Return how many instances a lease is, or may become without another order: one, but for a parked bid."""
    return 0 if lease.is_parked_bid else 1


def scopes_of(decision: Decision) -> tuple[Scope, ...]:
    """Return the market and the workload of a decision; none for a hold."""
    if isinstance(decision, Rent):
        return budget.of_market(decision.offer.market), budget.of_workload(decision.slot.workload)
    return _scopes(decision.lease) if isinstance(decision, Rebid | Resume | Pause) else ()


def _scopes(lease: Lease) -> tuple[Scope, ...]:
    return budget.of_market(lease.market), budget.of_workload(lease.slot.workload)


def _difference(decision: Decision) -> tuple[UsdPerHour, int]:
    """Return the changes of the committed rate and of the number of instances by a decision."""
    if isinstance(decision, Rent):
        return decision.rate, 1
    if isinstance(decision, Rebid):
        more = decision.bid - decision.lease.bid
        # A lease that we stopped counts without its bid, so a lower bid reduces nothing.
        return max(more, money.FREE) if decision.lease.paused_by_us else more, 0
    if isinstance(decision, Resume):
        rate = decision.lease.most_gpu_rate if decision.lease.paused_by_us else money.FREE
        return rate, int(decision.lease.is_parked_bid)
    if isinstance(decision, Pause):
        return decision.lease.disk_rate - decision.lease.committed_rate, -int(decision.lease.is_queued_bid)
    return money.FREE, 0


def _of_lease(lease: Lease, now: datetime, pledged: Usd) -> _Item:
    queued, owed = int(lease.is_queued_bid), Owed(lease.accrued_until, _owed(lease, now))
    return _Item(_scopes(lease), lease.committed_rate, owed, instances_of(lease), pledged, queued)


def _owed(lease: Lease, now: datetime) -> Usd:
    """Return the possible cost of a lease since it was metered last."""
    is_over = lease.state is LeaseState.RELEASING and lease.bills is Bills.NOTHING
    unseen = now - lease.accrued_until
    if is_over or unseen <= UNSEEN:
        return meter.outstanding([lease], now)
    return lease.committed_rate.over(unseen.total_seconds())


def _of_doubt(intent: Intent, lease: Lease | None, now: datetime) -> _Item:
    """Return the possible cost of an order in doubt beyond its lease's commitment."""
    since = intent.sent_at or intent.recorded_at
    seconds = max(0.0, (now - since).total_seconds())
    if lease is None:
        rate = intent.rate if not intent.lease_id else money.FREE
    else:
        rate = max(money.FREE, intent.rate - lease.committed_rate)
    scopes = budget.of_market(intent.market), budget.of_workload(intent.slot.workload)
    return _Item(scopes, rate, Owed(since, rate.over(seconds)), 0 if intent.lease_id else 1)


def _of_volume(burden: volume_metering.Burden) -> _Item:
    markets = [budget.of_market(burden.market)] if burden.market else []
    return _Item((*markets, budget.of_workload(burden.workload)), burden.rate, Owed(burden.since, burden.owed), 0)


def _pledge(fleet: Fleet, lease: Lease) -> Usd:
    """Return the cost of the traffic that a start still needs: image and checkpoint, at the market's price."""
    view, work = fleet.markets.get(lease.market), fleet.workload(lease.slot.workload)
    row = view.instance(lease.instance_id) if view is not None else None
    if row is None or work is None or lease.has_run:
        return money.ZERO
    left = max(0.0, work.image_gb + work.checkpoint.size_gb - lease.traffic_down_gb)
    return Usd(round(left * row.traffic_down_micros_per_gb))


def _sum(items: list[_Item], spend: Spend, now: datetime) -> CommittedSpend:
    owed = unmetered_cost.sums((item.owed for item in items), now)
    return CommittedSpend(
        rate=money.total_rate(item.rate for item in items),
        today=spend.today + owed.today,
        month=spend.month + owed.month,
        instances=sum(item.instances for item in items),
        queued=sum(item.queued for item in items),
        total=spend.total + owed.total,
        pledged=money.total(item.pledged for item in items),
    )
