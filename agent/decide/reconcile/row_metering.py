"""What a row of a listing costs: the lease as the row shows it, metered up to the listing."""

from dataclasses import replace
from datetime import datetime

from agent.decide.accounting import kept_work, meter, phases
from agent.decide.reconcile import agreed_rate, loading_time, turns
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


def bills_of(held: Lease, row: Instance) -> Bills:
    """Return the billing by a row; an unconfirmed release on a silent host bills its disk, or it counts as done."""
    if row.bills_gpu:
        return Bills.GPU_AND_DISK
    if row.state is InstanceState.OFFLINE:
        is_unconfirmed = held.state is LeaseState.RELEASING and held.bills is not Bills.NOTHING
        return Bills.DISK if is_unconfirmed else Bills.NOTHING
    return Bills.DISK


def metered(
    fleet: Fleet, view: MarketView, held: Lease, row: Instance, target: LeaseState, between: tuple[datetime, datetime]
) -> tuple[Lease, tuple[meter.Charge, ...]]:
    """Return the lease by the row, and its cost up to now, with its turns dated as well as possible."""
    bills = bills_of(held, row)
    # The row shows the time of the listing; the next listing reads the market's record since then.
    until = max(held.accrued_until, min(view.listed_at or fleet.now, fleet.now))
    is_stopped, ends_at = STATES.get(row.state, target) not in LIVE, row.ends_at or held.ends_at
    change = turns.turned(held, view, bills, between, until, is_stopped=is_stopped, ends_at=ends_at)
    turned = change.at
    stopped_at = min(meter.first_stop(change.turns, turned), turned)
    charges = list(meter.accrue(held, until, change.turns))
    paid = traffic_of(held, row)
    if paid.micros:
        charges.append(meter.Charge(held.lease_id, until.date(), traffic=paid))
    runs = row.state is InstanceState.RUNNING
    is_lost = not held.paused_by_us and held.state is not LeaseState.RELEASING
    # If the lease stopped and started again between two looks, this is another stretch of running.
    has_stopped = any(turn is not Bills.GPU_AND_DISK for _, turn in change.turns)
    goes_on = runs and not has_stopped
    work, kept_at = fleet.workload(held.slot.workload), kept_work.kept_at(fleet, held)
    since = (held.run_since if goes_on and held.run_since else turned) if runs else None
    if not goes_on and held.run_since is not None:
        charges.append(meter.stretch_end(held, stopped_at, work, is_lost=is_lost, kept_at=kept_at))
    ran = phases.Ran(since, None if runs or held.run_since is None else stopped_at, is_lost=is_lost)
    promised = phases.promise(work, kept_at)
    charges += phases.charges(phases.split(held, until, change.turns, promised, ran))
    after = replace(
        held,
        state=target,
        state_since=held.state_since if held.state is target else turned,
        loading_since=loading_time.since(held, target, turned, between),
        bills=bills,
        accrued_until=until,
        agreed_until=agreed_rate.agreed_until(held, charges, until),
        gpu_rate=row.gpu_rate,
        disk_rate=row.disk_rate,
        recent_bids=_recent(held, row),
        bid_since=held.bid_since if row.gpu_rate == held.gpu_rate else fleet.now,
        host_floor=row.floor or held.host_floor,
        ends_at=row.ends_at or held.ends_at,
        run_since=since,
        ready_since=held.ready_since if goes_on else None,
        idle_since=held.idle_since if goes_on else None,
        traffic_down_gb=max(held.traffic_down_gb, row.traffic_down_gb),
        traffic_up_gb=max(held.traffic_up_gb, row.traffic_up_gb),
        stop_seen_at=None,
    )
    return after, tuple(charges)


def traffic_of(held: Lease, row: Instance) -> money.Usd:
    """Return the cost of the row's traffic that is not metered yet."""
    return meter.traffic(
        held, row.traffic_down_gb, row.traffic_up_gb, row.traffic_down_micros_per_gb, row.traffic_up_micros_per_gb
    )


def _recent(held: Lease, row: Instance) -> tuple[UsdPerHour, ...]:
    if held.tenure is not Tenure.INTERRUPTIBLE or row.gpu_rate == held.gpu_rate:
        return held.recent_bids
    return (held.gpu_rate, *held.recent_bids)[:6]
