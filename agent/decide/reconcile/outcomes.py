"""Leases after a confirmed write. Each function is pure and dates the change at `now`."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from agent.decide.accounting import meter, phases, running_time
from agent.decide.reconcile import agreed_rate, billed_times, waiting_verdict, workload_end
from agent.decide.reconcile.probes import liveness, stalls
from agent.domain.market.interruption import Cause
from agent.domain.record.event_kind import EventKind
from agent.domain.record.hold import Word
from agent.domain.record.intent import Intent
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.work.decision import GONE, Decision, Pause, Rebid, Release, Rent, Resume
from agent.domain.work.ready_sign import Readiness
from agent.domain.work.workload import Checkpoint


@dataclass(frozen=True, slots=True)
class Outcome:
    """The lease after a confirmed write, its cost up to now, and the event's name."""

    lease: Lease
    charges: tuple[meter.Charge, ...]
    kind: EventKind


def rented(intent: Intent, decision: Rent, instance_id: str, now: datetime, *, is_leftover: bool = False) -> Outcome:
    """Return the lease of a fresh rent. A leftover (the stopped instance of a refused bid) is to be released.

    The lease counts from the time at which the order was sent: the market may have billed since then, however late it
    answered.
    """
    offer = decision.offer
    now = min(intent.sent_at or now, now)
    gpu_rate = decision.expected or decision.rate - offer.disk_rate(intent.disk_gb)
    lease = Lease(
        lease_id=f"{offer.market}-{instance_id}",
        market=offer.market,
        instance_id=instance_id,
        slot=decision.slot,
        tenure=decision.tenure,
        state=LeaseState.RELEASING if is_leftover else LeaseState.STARTING,
        host_id=offer.host_id,
        owner_id=offer.owner_id,
        offer_id=offer.offer_id,
        gpu=offer.gpu,
        gpus=offer.gpus,
        dlperf=offer.dlperf,
        gpu_rate=gpu_rate,
        agreed_rate=None if decision.is_limit else gpu_rate,
        bid_limit=decision.bid if decision.is_limit else None,
        disk_rate=offer.disk_rate(intent.disk_gb),
        disk_gb=intent.disk_gb,
        opened_at=now,
        state_since=now,
        bills=Bills.DISK,
        accrued_until=now,
        intent_id=intent.intent_id,
        guard_run=intent.guard_run,
        ask=offer.ask,
        host_floor=offer.floor,
        ends_at=offer.ends_at,
        bid_since=now,
        end_reason=billed_times.LEFTOVER if is_leftover else "",
        vram_mb=offer.vram_mb,
        egress_micros_per_gb=offer.egress_micros_per_gb,
    )
    return Outcome(lease, (), EventKind.LEASE_LEFTOVER if is_leftover else EventKind.LEASE_OPENED)


def written(
    decision: Decision,
    now: datetime,
    checkpoint: Checkpoint,
    ready: Readiness = Readiness(),  # noqa: B008 - frozen
    *,
    is_accepted: bool = True,
    ends: Sequence[meter.Turn] = (),
) -> Outcome:
    """Return a lease after a confirmed write on it. A resume may only be queued.

    `ends` are the turns of the billing, up to `now`, of a lease that is paused or released.
    """
    if isinstance(decision, Rebid):
        return _rebid(decision, now, phases.Promise(checkpoint, ready))
    if isinstance(decision, Resume):
        return _resumed(decision, now, phases.Promise(checkpoint, ready), is_accepted=is_accepted)
    if isinstance(decision, Pause | Release):
        return _stopped(decision, now, phases.Promise(checkpoint, ready), ends)
    raise TypeError(f"no lease is written by {type(decision).__name__}")


def _accrued(
    lease: Lease, now: datetime, promised: phases.Promise, ran: phases.Ran, ends: Sequence[meter.Turn] = ()
) -> tuple[meter.Charge, ...]:
    """Return the cost of a lease up to our own write on it. A stop of our own loses no work."""
    return (*meter.accrue(lease, now, ends), *phases.charges(phases.split(lease, now, ends, promised, ran)))


def _rebid(decision: Rebid, now: datetime, promised: phases.Promise) -> Outcome:
    lease, until = decision.lease, max(now, decision.lease.accrued_until)
    charges = _accrued(lease, now, promised, phases.Ran(lease.run_since))
    if lease.bid_limit is not None:
        return _limited(decision, until, charges, promised)
    after = replace(
        lease,
        gpu_rate=decision.bid,
        agreed_rate=decision.bid,
        doubted_rate=None,
        agreed_until=None,
        doubted_since=None,
        doubted_listings=0,
        recent_bids=(lease.gpu_rate, *lease.recent_bids)[:6],
        bid_since=now,
        accrued_until=until,
    )
    after = running_time.counted(lease, after, charges, promised.ready)
    return Outcome(after, (*charges, *agreed_rate.at_end(lease, charges, until)), EventKind.LEASE_REBID)


def _limited(decision: Rebid, until: datetime, charges: tuple[meter.Charge, ...], promised: phases.Promise) -> Outcome:
    """Return a lease after a new limit: the price that is paid goes on as it was, and one that starts pays no more."""
    lease = decision.lease
    paid = lease.gpu_rate if lease.bills is Bills.GPU_AND_DISK else min(lease.gpu_rate, decision.bid)
    since = agreed_rate.agreed_until(lease, charges, until)
    after = replace(
        lease,
        bid_limit=decision.bid,
        gpu_rate=paid,
        recent_bids=(),
        bid_since=until,
        accrued_until=until,
        agreed_until=since,
    )
    return Outcome(running_time.counted(lease, after, charges, promised.ready), charges, EventKind.LEASE_REBID)


def _resumed(decision: Resume, now: datetime, promised: phases.Promise, *, is_accepted: bool) -> Outcome:
    lease, until = decision.lease, max(now, decision.lease.accrued_until)
    state = LeaseState.STARTING if is_accepted else LeaseState.PAUSED
    # A bid that waits for the next auction again is started by the market, whoever stopped it before.
    waits_for = Cause.UNKNOWN if lease.bid_limit is not None and lease.interrupted_by else lease.interrupted_by
    charges = _accrued(lease, now, promised, phases.Ran(lease.run_since))
    after = replace(
        lease,
        state=state,
        state_since=now if is_accepted else lease.state_since,
        loading_since=None,
        paused_by_us=False,
        interrupted_by=None if is_accepted else waits_for,
        accrued_until=until,
        agreed_until=agreed_rate.agreed_until(lease, charges, until),
    )
    after = running_time.counted(lease, after, charges, promised.ready)
    return Outcome(after, charges, EventKind.LEASE_STARTING if is_accepted else EventKind.LEASE_QUEUED)


def _stopped(decision: Pause | Release, now: datetime, promised: phases.Promise, ends: Sequence[meter.Turn]) -> Outcome:
    lease = decision.lease
    stopped_at = meter.first_stop(ends, now)
    ran = phases.Ran(lease.run_since, max(stopped_at, lease.accrued_until))
    charges = list(_accrued(lease, now, promised, ran, ends))
    if lease.run_since is not None:
        useful = meter.stretch_seconds(lease, stopped_at, promised.checkpoint, promised.ready, is_lost=False)
        charges.append(meter.Charge(lease.lease_id, stopped_at.date(), useful_seconds=useful))
    is_release = isinstance(decision, Release)
    until = max(now, lease.accrued_until)
    # A release is a promise: an instance that is only paused meanwhile stays due for it.
    was_leaving = lease.state is LeaseState.RELEASING
    is_leaving = is_release or was_leaving
    after = replace(
        stalls.renewed(liveness.renewed(lease)),
        state=LeaseState.RELEASING if is_leaving else LeaseState.PAUSED,
        # The time since the loss decides the worth of waiting, so our own pause does not restart it. Nor does a
        # repeated release: the first order shows for how long the market has not carried it out.
        state_since=lease.state_since if was_leaving or (lease.state is LeaseState.PAUSED and not is_release) else now,
        loading_since=None,
        bills=Bills.NOTHING if is_release else Bills.DISK,
        paused_by_us=not is_release or lease.paused_by_us,
        run_since=None,
        ready_since=None,
        idle_since=None,
        accrued_until=until,
        agreed_until=agreed_rate.agreed_until(lease, charges, until),
        end_reason=_why_left(lease, decision.reason.code) if is_release else lease.end_reason,
        restart_at=liveness.restart_after_stop(lease, decision.reason.code, now),
    )
    after = running_time.counted(lease, after, charges, promised.ready)
    return Outcome(after, tuple(charges), EventKind.LEASE_RELEASED_BY_US if is_release else EventKind.LEASE_PAUSED)


def leaving(lease: Lease, now: datetime, code: str) -> Lease:
    """Return a lease whose release is about to be sent.

    A lease that bills nothing would pass for released. A silent host bills nothing either, so its disk counts from now
    on.
    """
    if lease.bills is Bills.NOTHING:
        until = max(now, lease.accrued_until)
        since = agreed_rate.agreed_until(lease, (), until)
        lease = replace(lease, bills=Bills.DISK, accrued_until=until, agreed_until=since)
    return replace(lease, state=LeaseState.RELEASING, state_since=now, end_reason=_why_left(lease, code))


def _why_left(lease: Lease, code: str) -> str:
    """Return why a lease is released: its own reason, else that of the order.

    What waited for a verdict is ended by the order. A task that was done soon is done, and did not fail at once. The
    word of a person that nothing is left outranks all.
    """
    if code == GONE:
        return code
    own = waiting_verdict.own_reason(lease)
    return code if not own or (own == workload_end.FAST_EXIT and code == Word.DONE) else own
