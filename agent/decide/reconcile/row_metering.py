"""The cost of a row of a listing: the lease as the row shows it, metered up to the listing."""

from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from agent.decide.accounting import kept_work, meter, phases, running_time
from agent.decide.accounting.bill_cost import Billed
from agent.decide.reconcile import agreed_rate, billed_times, loading_time
from agent.decide.reconcile.losses import interruption_notice
from agent.decide.reconcile.probes import liveness, stalls
from agent.domain import money
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.record.lease import Bills, Lease, LeaseState

STATES = {
    InstanceState.PENDING: LeaseState.STARTING,
    InstanceState.LOADING: LeaseState.STARTING,
    InstanceState.RUNNING: LeaseState.RUNNING,
    InstanceState.PAUSED: LeaseState.PAUSED,
    InstanceState.FAILED: LeaseState.PAUSED,
    InstanceState.EXITED: LeaseState.EXITED,
    InstanceState.OFFLINE: LeaseState.OFFLINE,
}
LIVE = frozenset({LeaseState.RUNNING, LeaseState.STARTING})


def bills_of(lease: Lease, row: Instance) -> Bills:
    """Return the billing by a row; an unconfirmed release on a silent host bills its disk, or it counts as done.

    Whether an unknown state bills the GPU, the market's own bill says, where it was read.
    """
    is_off_bill = row.bill is not None and not any(period.end is None for period in row.bill.periods)
    if row.bills_gpu and not (row.state is InstanceState.UNKNOWN and is_off_bill):
        return Bills.GPU_AND_DISK
    if row.state is InstanceState.OFFLINE:
        is_unconfirmed = lease.state is LeaseState.RELEASING and lease.bills is not Bills.NOTHING
        return Bills.DISK if is_unconfirmed else Bills.NOTHING
    return Bills.DISK


def state_of(lease: Lease, row: Instance) -> LeaseState | None:
    """Return the state of a lease by its row, None if it is unreadable; what waits for an auction is paused."""
    is_waiting = row.state is InstanceState.PENDING and lease.bid_limit is not None
    return LeaseState.PAUSED if is_waiting else STATES.get(row.state)


def metered(
    fleet: Fleet, view: MarketView, lease: Lease, row: Instance, target: LeaseState, between: tuple[datetime, datetime]
) -> tuple[Lease, tuple[meter.Charge, ...]]:
    """Return the lease by the row, and its cost up to now, with its turns dated as well as possible."""
    bills = bills_of(lease, row)
    # The row shows the time of the listing; the next listing reads the market's record since then.
    until = max(lease.accrued_until, min(view.listed_at or fleet.now, fleet.now))
    is_stopped, ends_at = STATES.get(row.state, target) not in LIVE, row.ends_at or lease.ends_at
    change = billed_times.turned(lease, view, bills, between, until, is_stopped=is_stopped, ends_at=ends_at)
    ran = _ran(lease, row, change)
    work, kept_at = fleet.workload(lease.slot.workload), kept_work.kept_at(fleet, lease)
    promised = phases.promise(work, kept_at)
    charges = [*meter.accrue(lease, until, change.turns, _billed(lease, row)), *_traffic_charge(lease, row, until)]
    goes_on = _goes_on(row, change)
    if not goes_on and lease.run_since is not None:
        stopped_at = _stopped_at(change)
        charges.append(meter.stretch_end(lease, stopped_at, work, is_lost=ran.is_lost, kept_at=kept_at))
    charges += phases.charges(phases.split(lease, until, change.turns, promised, ran))
    after = replace(
        _on_terms(lease, row, fleet.now),
        state=target,
        state_since=lease.state_since if lease.state is target else change.at,
        loading_since=loading_time.since(lease, target, change.at, between, fleet.poll),
        bills=bills,
        accrued_until=until,
        agreed_until=agreed_rate.agreed_until(lease, charges, until),
        run_since=ran.since,
        ready_since=lease.ready_since if goes_on else None,
        idle_since=lease.idle_since if goes_on else None,
        stop_seen_at=None,
        restarts=lease.restarts if goes_on else liveness.restarts_after(lease, work, _stopped_at(change)),
    )
    after = after if goes_on else stalls.renewed(liveness.renewed(after))
    return running_time.counted(lease, after, charges, promised.ready), tuple(charges)


def _ran(lease: Lease, row: Instance, change: billed_times.Turned) -> phases.Ran:
    """Return since when the lease runs by its row, or when it stopped running."""
    is_lost = not lease.paused_by_us and lease.state is not LeaseState.RELEASING
    if row.state is InstanceState.RUNNING:
        since = lease.run_since if lease.run_since and _goes_on(row, change) else change.at
        return phases.Ran(since, None, is_lost=is_lost)
    return phases.Ran(None, None if lease.run_since is None else _stopped_at(change), is_lost=is_lost)


def _goes_on(row: Instance, change: billed_times.Turned) -> bool:
    """Return whether the same stretch of running goes on: it did not stop and start again between two looks."""
    has_stopped = any(turn is not Bills.GPU_AND_DISK for _, turn in change.turns)
    return row.state is InstanceState.RUNNING and not has_stopped


def _stopped_at(change: billed_times.Turned) -> datetime:
    return min(meter.first_stop(change.turns, change.at), change.at)


def _traffic_charge(lease: Lease, row: Instance, until: datetime) -> Iterator[meter.Charge]:
    paid = traffic_of(lease, row)
    if paid.micros:
        yield meter.Charge(lease.lease_id, until.date(), traffic=paid)


def _billed(lease: Lease, row: Instance) -> Billed | None:
    return Billed(row.bill, max(lease.gpu_rate, lease.bid), row.gpu_rate) if row.bill is not None else None


def traffic_of(lease: Lease, row: Instance) -> money.Usd:
    """Return the cost of the row's traffic that is not metered yet."""
    return meter.traffic(
        lease, row.traffic_down_gb, row.traffic_up_gb, row.traffic_down_micros_per_gb, row.traffic_up_micros_per_gb
    )


def _on_terms(lease: Lease, row: Instance, now: datetime) -> Lease:
    """Return a lease with the prices and the traffic of its row, and the times at which its host or market ends it."""
    return replace(
        lease,
        gpu_rate=row.gpu_rate,
        bid_limit=lease.bid_limit if row.limit is None else row.limit,
        disk_rate=row.disk_rate,
        recent_bids=_recent(lease, row),
        bid_since=lease.bid_since if _is_same_bid(lease, row) else now,
        host_floor=row.floor or lease.host_floor,
        ends_at=row.ends_at or lease.ends_at,
        notice_at=interruption_notice.at(lease, row),
        traffic_down_gb=max(lease.traffic_down_gb, row.traffic_down_gb),
        traffic_up_gb=max(lease.traffic_up_gb, row.traffic_up_gb),
    )


def _is_same_bid(lease: Lease, row: Instance) -> bool:
    return row.gpu_rate == lease.gpu_rate if lease.bid_limit is None else row.limit in {None, lease.bid_limit}


def _recent(lease: Lease, row: Instance) -> tuple[UsdPerHour, ...]:
    if lease.bid_limit is not None:
        listed = lease.bid_limit if row.limit is None else row.limit
        return (lease.own_bid,) if listed > lease.own_bid else ()
    if lease.tenure is not Tenure.INTERRUPTIBLE or row.gpu_rate == lease.gpu_rate:
        return lease.recent_bids
    return (lease.gpu_rate, *lease.recent_bids)[:6]
