"""Leases and workloads that have run for as long as their `max_running` allows, and what is done then.

Invariants:
1. The verdict follows in each cycle from the ledger's running time and the present file (rule 19). A higher figure in
   the file ends it.
2. Nothing ends by a running time that no listing of this cycle shows: an unread market proves nothing.
3. A disk that may hold the only copy of work is paused, not released (rule 11).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.decide.accounting import running_time
from agent.decide.facts import Alert
from agent.domain import span_text
from agent.domain.fleet import Fleet
from agent.domain.record import hold
from agent.domain.record.event_kind import EventKind
from agent.domain.record.hold import Holds, Target
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.work.decision import Pause, Reason, Release
from agent.domain.work.only_copy import may_leave
from agent.domain.work.run_times.running_limit import AtLimit, LimitOf, RunningLimit
from agent.domain.work.workload import Workload, WorkloadKind

CODE = "max_running"
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Ran:
    """The running time that counts for a limit."""

    limit: RunningLimit
    time: timedelta

    @property
    def is_over(self) -> bool:
        """Whether the limit is reached."""
        return self.time >= self.limit.most

    @property
    def left(self) -> timedelta:
        """The running time that is left."""
        return max(self.limit.most - self.time, timedelta())

    @property
    def sentence(self) -> str:
        """Both figures, as an operator reads them."""
        return f"{span_text.minutes(self.time)} of {span_text.minutes(self.limit.most)} run"


def of_workload(fleet: Fleet, work: Workload) -> Ran | None:
    """Return the running time of a workload that is limited as a whole, or None."""
    limit = limit_of(work, LimitOf.WORKLOAD)
    if limit is None:
        return None
    ran = running_time.of_workload(work, fleet.leases, fleet.ran_micros, lambda lease: _seen_until(fleet, lease))
    return Ran(limit, ran)


def of_lease(fleet: Fleet, work: Workload, lease: Lease) -> Ran | None:
    """Return the running time of a lease of a workload whose leases are limited one by one, or None."""
    limit = limit_of(work, LimitOf.LEASE)
    return None if limit is None else Ran(limit, running_time.of_lease(lease, work, _seen_until(fleet, lease)))


def why_idle(fleet: Fleet, place: Slot) -> Reason | None:
    """Return why nothing is rented or started for a slot, or None."""
    work = fleet.workload(place.workload)
    if work is None or not work.max_running:
        return None
    whole = of_workload(fleet, work)
    if whole is not None and whole.is_over:
        return _reason(work, place, whole, has_lease=bool(fleet.occupants_of(place)))
    for lease in fleet.occupants_of(place):
        own = of_lease(fleet, work, lease)
        if own is not None and own.is_over and own.limit.then is AtLimit.PAUSE:
            return _reason(work, place, own)
    return None


def endings(fleet: Fleet) -> Iterator[Pause | Release]:
    """Yield the pauses and releases of leases that have run their time."""
    for lease in fleet.leases:
        work = fleet.workload(lease.slot.workload)
        if work is None or not work.max_running or not _may_end(fleet, lease):
            continue
        over = _over(fleet, work, lease)
        if over is None or over.limit.then is AtLimit.MOVE:
            continue
        if over.limit.gives_up_disks and may_leave(lease, work):
            yield Release(lease, _reason(work, lease.slot, over))
        elif not fleet.is_stopped(lease):
            yield Pause(lease, _reason(work, lease.slot, over))


def done(fleet: Fleet) -> Iterator[tuple[Target, Lease | None, str]]:
    """Yield what is done by its running time, with the ground: a workload as a whole, or the slot of a lease.

    That follows the release of its leases, so that a guard is asked for a last checkpoint before. Nothing is done while
    a person keeps the disk of such a lease: a done slot would release it.
    """
    holds = hold.in_force(fleet.holds, fleet.now)
    for work in fleet.workloads:
        mine = [lease for lease in fleet.leases if lease.slot.workload == work.name and not lease.is_held]
        whole = of_workload(fleet, work)
        if (
            whole is not None
            and whole.is_over
            and whole.limit.then is AtLimit.DONE
            and all(_is_ending(each, holds) for each in mine)
        ):
            yield hold.of_workload(work.name), None, _ground(whole)
        limit = limit_of(work, LimitOf.LEASE)
        if limit is not None and limit.then is AtLimit.DONE:
            ran = ((lease, Ran(limit, running_time.of_lease(lease, work, fleet.now))) for lease in mine)
            yield from (
                (hold.of_slot(lease.slot), lease, _ground(own))
                for lease, own in ran
                if own.is_over and _is_ending(lease, holds)
            )


def held(fleet: Fleet) -> Iterator[tuple[Lease, str]]:
    """Yield the leases that were to be paused and had to be released, each with the ground: nothing follows them."""
    for lease in fleet.leases:
        work = fleet.workload(lease.slot.workload)
        limit = limit_of(work, LimitOf.LEASE) if work is not None else None
        if work is None or limit is None or limit.then is not AtLimit.PAUSE or fleet.rules_of(lease.market).can_pause:
            continue
        own = Ran(limit, running_time.of_lease(lease, work, fleet.now))
        if own.is_over and lease.state is LeaseState.RELEASING and lease.end_reason == CODE:
            yield lease, f"{_ground(own)}, and {lease.market} cannot pause"


def paused_alone(fleet: Fleet, work: Workload) -> Iterator[Slot]:
    """Yield the slots of a workload that stay paused because their own lease has run its time."""
    limit = limit_of(work, LimitOf.LEASE)
    if limit is None or limit.then is not AtLimit.PAUSE:
        return
    mine = (lease for lease in fleet.leases if lease.slot.workload == work.name and not lease.is_held)
    for lease in mine:
        if Ran(limit, running_time.of_lease(lease, work, _seen_until(fleet, lease))).is_over:
            yield lease.slot


def moves(fleet: Fleet, lease: Lease, work: Workload) -> bool:
    """Return whether another lease is to be rented in place of one that has run its time."""
    own = of_lease(fleet, work, lease) if work.max_running else None
    is_due = own is not None and own.is_over and own.limit.then is AtLimit.MOVE
    return is_due and lease.state is LeaseState.RUNNING and may_leave(lease, work)


def alerts(fleet: Fleet) -> Iterator[Alert]:
    """Yield one alert for each limit that is reached soon, and for each lease that does not move although it is."""
    for work in fleet.workloads:
        if not work.max_running:
            continue
        whole = of_workload(fleet, work)
        mine = [lease for lease in fleet.leases if lease.slot.workload == work.name and not lease.is_held]
        running = sum(lease.is_live for lease in mine)
        if whole is not None and running and _is_near(whole, running):
            yield Alert(EventKind.ALERT_MAX_RUNNING, work.name, f"{work.name}: {_told(whole, running)}")
        for lease in mine:
            own = of_lease(fleet, work, lease)
            waits = moves(fleet, lease, work) and len(fleet.occupants_of(lease.slot)) == 1
            if own is not None and lease.is_live and (_is_near(own, 1) or waits):
                key = f"{work.name} {lease.lease_id}"
                yield Alert(EventKind.ALERT_MAX_RUNNING, key, f"{lease.slot} on {lease.lease_id}: {_told(own, 1)}")


def _up(span: timedelta) -> timedelta:
    return -(-span // _MINUTE) * _MINUTE


def _seen_until(fleet: Fleet, lease: Lease) -> datetime:
    """Return for how long a lease is known to run: up to now only if its market was listed in this cycle."""
    return fleet.now if fleet.is_seen(lease) else lease.accrued_until


def limit_of(work: Workload, of: LimitOf) -> RunningLimit | None:
    """Return the limit of a workload as a whole, or of each of its leases, or None."""
    return next((limit for limit in work.max_running if limit.of is of), None)


def _over(fleet: Fleet, work: Workload, lease: Lease) -> Ran | None:
    """Return the reached limit of a lease; that of its workload comes first."""
    both = (of_workload(fleet, work), of_lease(fleet, work, lease))
    return next((ran for ran in both if ran is not None and ran.is_over), None)


def _may_end(fleet: Fleet, lease: Lease) -> bool:
    waiting = {LeaseState.RELEASING, LeaseState.MISSING, LeaseState.EXITED}
    return lease.is_open and not lease.is_held and lease.state not in waiting and fleet.is_seen(lease)


def _is_ending(lease: Lease, holds: Holds) -> bool:
    """Return whether a lease does no more work: its release was ordered, or it is paused and no person keeps it so."""
    is_paused = lease.is_down and not hold.keeps_disk(lease, holds)
    return is_paused or lease.state is LeaseState.RELEASING


def _is_near(ran: Ran, running: int) -> bool:
    """Return whether a limit is reached soon by the clock, while so many leases run."""
    return timedelta() < ran.left <= ran.limit.tell_before * running


_THEN = {
    AtLimit.DONE: "it is done and its leases are released",
    AtLimit.PAUSE: "it is paused",
    AtLimit.RELEASE: "it is released",
    AtLimit.MOVE: "it moves to another lease",
}


def _told(ran: Ran, running: int) -> str:
    if ran.is_over:
        return f"{ran.sentence}; it runs on until another lease is found and allowed (max_running)"
    left = span_text.minutes(_up(ran.left / running))
    return f"{ran.sentence}; in about {left} {_THEN[ran.limit.then]} (max_running)"


def _ground(ran: Ran) -> str:
    return f"its max_running: {ran.sentence}"


def _reason(work: Workload, place: Slot, ran: Ran, *, has_lease: bool = True) -> Reason:
    is_whole = ran.limit.of is LimitOf.WORKLOAD
    whose, which = (work.name, work.name) if is_whole else ("its lease", str(place))
    ways = [f"raise max_running in [workloads.{work.name}]"]
    if work.kind is WorkloadKind.BATCH:
        ways.append(f"`gpubid done {which}`")
    elif has_lease and ran.limit.then is not AtLimit.RELEASE:
        ways.append(f"`gpubid release {which}`{'' if is_whole else ', after which another lease may be rented'}")
    has_run = f"{whose} has run {span_text.minutes(ran.time)} of {span_text.minutes(ran.limit.most)}"
    then = _THEN[ran.limit.then] if has_lease else "nothing is rented"
    return Reason(CODE, f"{has_run}, so {then}; {', or '.join(ways)}")
