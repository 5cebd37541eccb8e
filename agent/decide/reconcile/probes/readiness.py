"""Whether a running lease is of use: ready in time, its GPUs busy, and its addresses.

Invariants:
1. A probe that was not made proves nothing. Only time between probes without the sign makes a lease bad.
2. A lease that was once ready, or ran before its workload had a sign, may hold work, so it is not given up for a probe;
   but a restart in vain gives it up where its disk may be left.
3. Where checkpoints are kept on the disk (rule 11), the same holds for a lease whose guard reported a checkpoint of its
   own, and for one that may have been ready while nobody probed it.
4. A lease that is kept although it is not ready is watched on for stalled work and idle GPUs.
"""

from dataclasses import replace
from datetime import datetime

import msgspec

from agent.decide.accounting import phases, running_time
from agent.decide.facts import LeaseChanged
from agent.decide.pricing import cooldowns
from agent.decide.reconcile.probes import idleness, liveness, ready_waits, stalls
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market.instance import Instance
from agent.domain.record import cooldown
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work import carried_checkpoint, only_copy
from agent.domain.work.ready_sign import ReadyWait
from agent.domain.work.workload import Workload


def seen(
    fleet: Fleet, view: MarketView, lease: Lease, row: Instance, so_far: LeaseChanged | None
) -> LeaseChanged | None:
    """Return the change of readiness, idling and addresses by probes and the row; None without any."""
    now = so_far.after if so_far is not None else lease
    if so_far is not None and so_far.kind and so_far.kind != EventKind.LEASE_RUNNING:
        return so_far
    work = fleet.workload(lease.slot.workload)
    after, kind = _reached(now, row), so_far.kind if so_far is not None else None
    rest = so_far.cooldown if so_far is not None else None
    if after.state is LeaseState.RUNNING and not kind:
        after, kind = _judged(fleet, view, work, after, row, lease.accrued_until)
        if kind == EventKind.LEASE_NOT_READY and after.has_failed:
            until = fleet.now + cooldowns.START_FAILED
            rest = cooldown.of_host(lease.host, until, "a lease that was never ready")
    if after == now:
        return so_far
    late = tuple(phases.charges(phases.redeemed(after))) if after.ready_since != now.ready_since else ()
    after = running_time.counted(now, after, late, work.ready) if work is not None else after
    late += liveness.ended(now, after, fleet)
    if so_far is None:
        return LeaseChanged(lease, after, kind, late, cooldown=rest)
    return replace(so_far, after=after, kind=kind, charges=(*so_far.charges, *late), cooldown=rest)


def _reached(lease: Lease, row: Instance) -> Lease:
    """Return the lease with its addresses. The last ones are kept while it is paused, for a person."""
    if (row.address or lease.ssh_address) == lease.ssh_address and (row.ports or lease.ports) == lease.ports:
        return lease
    return msgspec.structs.replace(lease, ssh_address=row.address or lease.ssh_address, ports=row.ports or lease.ports)


def _judged(
    fleet: Fleet, view: MarketView, work: Workload | None, lease: Lease, row: Instance, metered_until: datetime
) -> tuple[Lease, EventKind | None]:
    if work is not None and ready_waits.is_awaited(work, lease):
        after, kind = _awaited(fleet, view, work, lease, row)
        if kind is not None or not stalls.is_given_up_on(lease):
            # A reload may have asked for a sign of work whose GPUs idled: nobody looks at them now.
            return msgspec.structs.replace(after, idle_since=None), kind
    elif work is not None and liveness.is_watched(work, lease):
        after, kind = liveness.judged(fleet, view, work, lease)
        if kind is not None:
            return after, kind
        lease = after
    elif lease.unhealthy_since is not None:
        lease = liveness.unwatched(fleet, lease)
    lease, kind = stalls.judged(fleet, work, lease)
    if kind is not None:
        return lease, kind
    return idleness.judged(fleet, work, lease, row, metered_until)


def _awaited(
    fleet: Fleet, view: MarketView, work: Workload, lease: Lease, row: Instance
) -> tuple[Lease, EventKind | None]:
    sighting, wait = view.sightings.get(lease.instance_id), fleet.ready_waits.get(lease.lease_id)
    if sighting is None or sighting.at < lease.began:
        return lease, None
    if sighting.is_ready:
        late = "" if stalls.is_given_up_on(lease) else lease.end_reason
        ready = msgspec.structs.replace(lease, ready_since=sighting.at, was_ready=True, end_reason=late)
        return ready, EventKind.LEASE_READY
    if wait is None or wait.lasted < work.ready.within:
        return lease, None
    if liveness.is_restarted_on(work, lease):
        return liveness.not_ready_again(fleet, lease, sighting.said)
    if stalls.is_given_up_on(lease):
        return lease, None
    idle = ", its GPUs idle" if idleness.is_idle(row, work) else ""
    reason = f"{stalls.NOT_READY}: runs since {lease.began:%H:%M} and shows no sign of work{idle}; {sighting.said}"
    why_kept = _why_kept(fleet, work, lease, wait)
    if why_kept:
        reason += f"; {why_kept}, so it goes on: `gpubid release {lease.slot}` ends it"
    return msgspec.structs.replace(lease, has_failed=not why_kept, end_reason=reason), EventKind.LEASE_NOT_READY


def _why_kept(fleet: Fleet, work: Workload, lease: Lease, wait: ReadyWait) -> str:
    """Return why a lease that is not ready in time may hold work, so that a person decides; empty if it may not."""
    has_only_copy = not only_copy.may_leave(lease, work)
    # A lease that was restarted because its service did not answer has had its second chance.
    if lease.was_ready and (lease.restarts == 0 or has_only_copy):
        return "it was ready before"
    if lease.may_have_worked and not lease.was_ready:
        return "it ran before without a sign of readiness"
    if _has_own_checkpoint(fleet, work, lease):
        return "its guard reported a checkpoint that is on its disk"
    if has_only_copy and not wait.is_whole:
        return "its disk may hold the only copy of work from a time in which nobody probed it"
    return ""


def _has_own_checkpoint(fleet: Fleet, work: Workload, lease: Lease) -> bool:
    """Return whether the disk of a lease may have the only copy of a checkpoint that its guard reported."""
    figures = fleet.guard_figures.get(lease.lease_id)
    is_own = figures is not None and carried_checkpoint.is_of(figures.manifest, lease.intent_id)
    return is_own and not only_copy.may_leave(lease, work)
