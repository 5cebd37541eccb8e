"""The cost of a lease between two instants, from the market's listings, and its bill where a listing has it.

Invariants:
1. Charges are additive: metering a span in one piece or in many gives the same sum, except for rounding of half a
   micro-dollar per piece.
2. Every charge is in one UTC day.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

from agent.decide.accounting.bill_cost import Billed
from agent.decide.pricing import loss_rate
from agent.domain import money
from agent.domain.record.lease import Bills, Lease
from agent.domain.record.paid_time import Phases
from agent.domain.work.ready_sign import Readiness
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload

_HOUR = timedelta(hours=1)
Turn = tuple[datetime, Bills]
"""An instant, and how the lease is billed from it on."""


@dataclass(frozen=True, slots=True)
class Charge:
    """The cost of one lease on one UTC day, and the use of its paid time."""

    lease_id: str
    day: date
    gpu: money.Usd = money.ZERO
    disk: money.Usd = money.ZERO
    traffic: money.Usd = money.ZERO
    running_seconds: float = 0.0
    useful_seconds: float = 0.0
    phases: Phases | None = None
    weighed_hours: float = 0.0
    """The running time, weighted by the loss rate of an ordinary stay of its age."""


def accrue(
    lease: Lease, until: datetime, turns: Sequence[Turn] = (), billed: Billed | None = None
) -> tuple[Charge, ...]:
    """Return the charges of `held` from `accrued_until` to `until`, billed by its `bills` and changing at each turn.

    Its GPUs cost what the market's bill has, where that is given.
    """
    charges: dict[date, Charge] = {}
    since = lease.began if lease.bills is Bills.GPU_AND_DISK else None
    for start, end, bills in spans(lease, until, turns):
        seconds = (end - start).total_seconds()
        before = charges.get(start.date(), Charge(lease.lease_id, start.date()))
        runs = bills is Bills.GPU_AND_DISK
        since = (since or start) if runs else None
        charges[start.date()] = replace(
            before,
            gpu=before.gpu + _gpu(lease, start, end, billed, runs=runs),
            disk=before.disk + (money.ZERO if bills is Bills.NOTHING else lease.disk_rate.over(seconds)),
            running_seconds=before.running_seconds + (seconds if runs else 0.0),
            weighed_hours=before.weighed_hours + (_weighed(start - since, end - since) if since is not None else 0.0),
        )
    return tuple(charges[day] for day in sorted(charges))


def _gpu(lease: Lease, start: datetime, end: datetime, billed: Billed | None, *, runs: bool) -> money.Usd:
    rate = lease.gpu_rate if runs else None
    if billed is not None:
        return billed.cost(start, end, rate)
    return rate.over((end - start).total_seconds()) if rate is not None else money.ZERO


def _weighed(begin: timedelta, end: timedelta) -> float:
    return loss_rate.weighed(max(begin / _HOUR, 0.0), max(end / _HOUR, 0.0))


def spans(lease: Lease, until: datetime, turns: Sequence[Turn]) -> Iterator[tuple[datetime, datetime, Bills]]:
    """Yield (start, end, billing), each within one UTC day, from `accrued_until` to `until`."""
    start, bills = lease.accrued_until, lease.bills
    for at, turned in sorted(turns, key=lambda turn: turn[0]):
        end = min(max(at, start), until)
        yield from ((*part, bills) for part in days(start, end))
        start, bills = end, turned
    yield from ((*part, bills) for part in days(start, until))


def first_stop(turns: Iterable[Turn], otherwise: datetime) -> datetime:
    """Return when a lease's GPUs first stopped being billed, which ends the present stretch of running.

    Running after that, even if no look saw it, is another stretch.
    """
    return next((at for at, bills in turns if bills is not Bills.GPU_AND_DISK), otherwise)


def days(start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Yield the parts of a span, each within one UTC day."""
    while start < end:
        midnight = datetime(start.year, start.month, start.day, tzinfo=UTC) + timedelta(days=1)
        stop = min(end, midnight)
        yield start, stop
        start = stop


def traffic(lease: Lease, down_gb: float, up_gb: float, down_micros_per_gb: int, up_micros_per_gb: int) -> money.Usd:
    """Return the cost of traffic since the last reading; a counter that fell counts as zero."""
    down = max(0.0, down_gb - lease.traffic_down_gb) * down_micros_per_gb
    up = max(0.0, up_gb - lease.traffic_up_gb) * up_micros_per_gb
    return money.Usd(round(down + up))


def useful_seconds(running_seconds: float, checkpoint: Checkpoint, *, is_lost: bool) -> float:
    """Return the useful seconds of a stretch of running, which begin at the end of the restore.

    A stretch that was not lost is useful to its end. A lost one is useful up to its last checkpoint.
    """
    worked = max(0.0, running_seconds - checkpoint.restore.total_seconds())
    if not is_lost:
        return worked
    interval = checkpoint.interval.total_seconds()
    if checkpoint.place is CheckpointPlace.NONE or interval <= 0:
        return 0.0
    return worked // interval * interval


def stretch_seconds(lease: Lease, until: datetime, checkpoint: Checkpoint, ready: Readiness, *, is_lost: bool) -> float:
    """Return the useful seconds of the present stretch if it ends at `until`.

    If the workload shows when it is ready, useful time begins then, and the restore comes before it. Stalled work is
    useful until its last progress.
    """
    until = until if lease.stalled_since is None else min(until, lease.stalled_since)
    if not ready.is_asked:
        ran = (until - lease.run_since).total_seconds() if lease.run_since else 0.0
        return useful_seconds(max(ran, 0.0), checkpoint, is_lost=is_lost)
    ran = (until - lease.ready_since).total_seconds() if lease.ready_since else 0.0
    return useful_seconds(max(ran, 0.0), replace(checkpoint, restore=timedelta()), is_lost=is_lost)


def stretch_end(
    lease: Lease, at: datetime, work: Workload | None, *, is_lost: bool, kept_at: datetime | None = None
) -> Charge:
    """Return the useful time of a stretch of running that ended at `at`, as a charge without money.

    If a guard measured `kept_at`, the work of a lost stretch up to then is kept.
    """
    day = at.date()
    promise, ready = (work.checkpoint, work.ready) if work else (Checkpoint(), Readiness())
    if is_lost and kept_at is not None:
        at, is_lost = min(at, kept_at), False
    useful = stretch_seconds(lease, at, promise, ready, is_lost=is_lost)
    return Charge(lease.lease_id, day, useful_seconds=useful)


def outstanding(leases: Iterable[Lease], now: datetime) -> money.Usd:
    """Return the cost of open leases since their last accrual, at their present rates."""
    return money.total(
        lease.billing_rate.over(max(0.0, (now - lease.accrued_until).total_seconds())) for lease in leases
    )
