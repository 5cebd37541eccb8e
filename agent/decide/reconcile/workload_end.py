"""The meaning of a lease's end for its slot: done, held for a person, one more fast exit, or only a cooldown.

Invariants:
1. An unexplained stop may be the work's own end or a person's action. A batch is held, and a service gets one move per
   cool-off.
2. A workload that fails on several hosts is held, and no host is blamed.
3. Marks are holds, cooldowns and tallies in the ledger. They cost nothing, and an operator may lift them.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from agent.decide.facts import Fact, LeaseChanged, Marked
from agent.decide.pricing import cooldowns
from agent.decide.reconcile import waiting_verdict
from agent.decide.reconcile.guards import guard_end, guard_refusal, guard_switch
from agent.decide.reconcile.probes import idleness, liveness, probing, stalls
from agent.decide.reconcile.tasks import array_proof, credited_work, failed_tasks, held_work
from agent.decide.run_times import running_limits
from agent.domain import span_text
from agent.domain.fleet import Fleet
from agent.domain.market.host import HostKey
from agent.domain.market.instance import Instance
from agent.domain.market.interruption import Cause
from agent.domain.record import hold as holds
from agent.domain.record.cooldown import Cooldown, CooldownKind
from agent.domain.record.event_kind import EventKind
from agent.domain.record.expiring_record import ExpiringRecord
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.record.tally import Counted, Tally
from agent.domain.work.workload import Workload, WorkloadKind

FAST = timedelta(minutes=3)
"""A container that ends sooner after its first start has done nothing; its command is probably wrong."""
FAST_EXIT = Counted.FAST_EXIT.value
"""The end reason of a lease whose container ended at once."""
IMAGE_REFUSED, START_FAILED, NO_CAPACITY = "image_refused", "start_failed", "no_capacity"
"""Codes that begin the end reason of a failed start."""
FAST_EXITS_KEPT = timedelta(hours=12)
FAILED_STARTS_KEPT = timedelta(hours=24)
OF_A_STRETCH = (liveness.UNHEALTHY, stalls.STALLED, stalls.NOT_READY)
"""Codes that begin the end reason of a lease for what its work did, or did not do, in one stretch of running."""
SETTLES = timedelta(seconds=90)
"""How long an end waits to be judged: a host restarts a container within a minute (assumed), and such an end does not
count."""
COOL_OFF = timedelta(minutes=10)
"""The least time before a container that ended, or that somebody else stopped, is started again."""
LOG_PATIENCE = timedelta(minutes=3)
"""How long the end of a container waits for its log to be read."""

_ONCE = frozenset({Word.HELD, Word.DONE, Word.DRAIN, FAST_EXIT, Counted.FAILED_TASK, Counted.AVOIDED})
"""Marks that are reported once while they last."""
HOST_TROUBLE = frozenset({Cause.HOST_OFFLINE, Cause.OUTBID, Cause.DISPLACED, Cause.OUT_OF_CREDIT})
DENIAL = "no_such_instance"
LOSSES = frozenset({EventKind.LEASE_INTERRUPTED, EventKind.LEASE_GONE})
OF_A_SERVICE = LOSSES | {EventKind.LEASE_START_LOST}
"""Losses of a service. A batch whose start was stopped has not run, so it is not held: that is a failed start."""


def marks(fleet: Fleet, facts: Iterable[Fact]) -> tuple[Marked, ...]:
    """Return the marks of slots and workloads for this cycle's changes, with the counts so far."""
    changes = [fact for fact in facts if isinstance(fact, LeaseChanged)]
    marked = [mark for change in changes for mark in _of_change(fleet, change)]
    changed = {change.after.lease_id: change.after for change in changes}
    marked += [*_of_batches(fleet, changed), *array_proof.marks(fleet)]
    marked += _of_running_time(fleet)
    on_hold = (*idleness.held(fleet, changed), *stalls.held(fleet, changes), *running_limits.held(fleet))
    marked += [held_work.hold(fleet, lease, holds.of_slot(lease.slot), why) for lease, why in on_hold]
    marked += [Marked(taken, lease.slot.workload, lease, None) for lease, taken in stalls.tallies(fleet, changes)]
    known: tuple[ExpiringRecord, ...] = (*fleet.holds, *fleet.tallies)
    standing = [rest for rest in known if not rest.is_over(fleet.now)]
    marked += held_work.over_budget(fleet, [*standing, *(mark.record for mark in marked)], changed)
    places = {rest.place for rest in standing}
    return tuple(mark for mark in marked if mark.record.place[0] not in _ONCE or mark.record.place not in places)


def failure(row: Instance) -> str:
    """Return why a start failed, from the end reason of its lease; the host's own text follows the code."""
    code = IMAGE_REFUSED if row.is_image_refused else NO_CAPACITY if row.is_out_of_capacity else START_FAILED
    return f"{code}: {row.message}" if row.message else code


def is_blameless(end_reason: str) -> bool:
    """Return whether an end is not its host's fault: an image that no host can pull, no capacity, an instant exit."""
    return end_reason.startswith((IMAGE_REFUSED, NO_CAPACITY, FAST_EXIT))


def is_passing(lease: Lease) -> bool:
    """Return whether a new run clears the end reason of a lease, such as why it was restarted."""
    why = lease.end_reason
    return why in {FAST_EXIT, guard_switch.SWITCHED} or (not lease.has_failed and why.startswith(OF_A_STRETCH))


def _of_change(fleet: Fleet, change: LeaseChanged) -> Iterator[Marked]:
    work = fleet.workload(change.after.slot.workload)
    if work is None:
        return
    if change.after.has_failed and not change.before.has_failed:
        lease, why = change.after, waiting_verdict.own_reason(change.after)
        if why.startswith((NO_CAPACITY, cooldowns.USED_BEFORE)):
            # It says nothing about the work: another pool is tried, or the same one later.
            return
        yield Marked(failed_start(work.name, lease.lease_id, fleet.now, why), work.name, None, None)
        if why.startswith(IMAGE_REFUSED):
            yield _failed_at_once(fleet, work, change.after, "the image could not be pulled")
    elif change.cause is not None and change.kind in (OF_A_SERVICE if work.kind is WorkloadKind.SERVICE else LOSSES):
        yield from _of_loss(fleet, work, change)
    elif change.kind is EventKind.LEASE_START_LOST and _is_unexplained(change):
        why = change.evidence.sentence if change.evidence else str(change.cause)
        yield Marked(failed_start(work.name, change.after.lease_id, fleet.now, why), work.name, None, None)


def failed_start(workload: str, lease_id: str, now: datetime, why: str) -> Tally:
    """Return the tally of one more failed start of a workload."""
    return Tally(Counted.FAILED_START, workload, now, now + FAILED_STARTS_KEPT, why, lease_id)


def _of_loss(fleet: Fleet, work: Workload, change: LeaseChanged) -> Iterator[Marked]:
    lease = change.after
    sentence = change.evidence.sentence if change.evidence else ""
    if change.cause is Cause.CONTAINER_EXIT:
        yield from _of_exit(fleet, work, change)
    elif _is_finished(fleet, lease, work):
        # Its work is done, so nobody has to find out why it stopped.
        return
    elif _is_unexplained(change):
        cause = change.cause.value if change.cause else ""
        why = f"{cause} without evidence of the market or its host, so a person or the work itself: {sentence}"
        yield from _unexplained(fleet, work, lease, why)


def _is_unexplained(change: LeaseChanged) -> bool:
    if change.evidence is not None and change.evidence.rule == guard_switch.SWITCHED:
        return False
    if change.cause in credited_work.NO_EVIDENCE:
        return True
    is_denied = change.evidence is not None and change.evidence.rule == DENIAL
    return change.cause is Cause.HOST_GONE and is_denied and change.before.interrupted_by not in HOST_TROUBLE


def _unexplained(fleet: Fleet, work: Workload, lease: Lease, why: str) -> Iterator[Marked]:
    if work.kind is WorkloadKind.BATCH:
        yield held_work.hold(fleet, lease, holds.of_slot(lease.slot), why)
        return
    if not cooldowns.in_force(fleet).tallies_of(Counted.MOVED, str(lease.slot)):
        move = Tally(Counted.MOVED, str(lease.slot), fleet.now, fleet.now + COOL_OFF, why)
        yield Marked(move, work.name, lease, None)
        return
    rest = Cooldown(CooldownKind.COOL_OFF, str(lease.slot), fleet.now + COOL_OFF, why)
    sentence = f"{why}; this is the second one within {span_text.of(COOL_OFF)}, so it waits that long"
    yield Marked(rest, work.name, lease, EventKind.SLOT_COOLING_OFF, sentence)


def is_own_end(fleet: Fleet, lease: Lease, why: Cause) -> bool:
    """Return whether a batch's container ended by itself: what that means is judged later, and no host is blamed."""
    work = fleet.workload(lease.slot.workload)
    return why is Cause.CONTAINER_EXIT and work is not None and work.kind is WorkloadKind.BATCH


def _of_exit(fleet: Fleet, work: Workload, change: LeaseChanged) -> Iterator[Marked]:
    """Yield the marks of a container that ended; the end of a batch is judged only after it has settled."""
    if work.kind is not WorkloadKind.BATCH:
        yield from _of_end(fleet, work, change.after, is_fast=is_fast(change))


def _of_end(fleet: Fleet, work: Workload, lease: Lease, *, is_fast: bool) -> Iterator[Marked]:
    if is_fast:
        why = f"its container ended within {span_text.of(FAST)} of its start"
        if failed_tasks.is_one_of_many(fleet, work):
            yield from failed_tasks.at_once(fleet, lease, why)
        else:
            yield _failed_at_once(fleet, work, lease, why)
    elif work.kind is not WorkloadKind.BATCH or lease.has_failed:
        # A release of a lease that has failed is due already.
        return
    elif failure := _failure(fleet, work, lease):
        yield from _failed(fleet, work, lease, failure)
    elif doubt := _doubt(fleet, work, lease):
        yield held_work.hold(fleet, lease, holds.of_slot(lease.slot), doubt)
    else:
        yield done(fleet, lease, "the end of its container")


def _failure(fleet: Fleet, work: Workload, lease: Lease) -> str:
    """Return why the work of an ended container has failed, or nothing."""
    end, row = guard_end.of(fleet, lease, work), _row(fleet, lease)
    if end.word is guard_end.Word.FAILED or _unfinished(end):
        return end.sentence if end.word is guard_end.Word.FAILED else ""
    if _is_ended_by_log(work):
        return "its container ended and its log does not say that it is done"
    if row is not None and row.has_trouble:
        return f"its container ended with an error: {row.message}"
    failure = _last_words(fleet, lease)
    return f"its container ended, and its log says: {failure}" if failure else ""


def _unfinished(end: guard_end.GuardWord) -> str:
    """Return why nobody knows how an ended container's work ended, by its guard; nothing if no guard reports."""
    return {
        guard_end.Word.WORKS: "its container ended, and its guard reported no end: something killed both",
        guard_end.Word.UNKNOWN: "its container ended, and the bucket in which its guard says how cannot be read",
    }.get(end.word, "")


def _doubt(fleet: Fleet, work: Workload, lease: Lease) -> str:
    """Return why an ended container does not prove that its work is done, or nothing."""
    if unfinished := _unfinished(guard_end.of(fleet, lease, work)):
        return unfinished
    if guard_refusal.is_awaited(fleet, lease, work) and not _ran_bare(fleet, lease):
        return "its container ended, its guard never spoke, and its log does not say that it ran without one"
    return ""


def _failed(fleet: Fleet, work: Workload, lease: Lease, why: str) -> Iterator[Marked]:
    """Yield the marks of a batch whose work failed: its slot is held, unless its task is tried again."""
    if work.array is not None:
        yield from failed_tasks.later(fleet, lease, why)
    if not failed_tasks.is_tried_again(fleet, work, lease):
        yield held_work.hold(fleet, lease, holds.of_slot(lease.slot), why)


def _failed_at_once(fleet: Fleet, work: Workload, lease: Lease, why: str) -> Marked:
    until = fleet.now + FAST_EXITS_KEPT
    mark = Tally(Counted.FAST_EXIT, work.name, fleet.now, until, why, str(lease.host))
    return Marked(
        mark, work.name, lease, EventKind.WORKLOAD_FAILED_AT_ONCE, f"{lease.slot} on host {lease.host_id}: {why}"
    )


def _of_batches(fleet: Fleet, changed: Mapping[str, Lease]) -> Iterator[Marked]:
    """Yield the results of batches: done by its guard, by a line of the log while it runs, or by its container's end.

    The guard's word counts also while the lease is down: it would be paid for again only to find that its work is
    done. The end of a container counts only once the ledger has it, since only then the log is read to its end. A fresh
    listing must still show it. `changed` are the leases that this listing changed.
    """
    for lease in fleet.leases:
        work = fleet.workload(lease.slot.workload)
        if work is None or work.kind is not WorkloadKind.BATCH or lease.is_held:
            continue
        if _is_finished(fleet, lease, work):
            yield done(fleet, lease, guard_end.of(fleet, lease, work).sentence)
        elif probing.may_log(lease):
            yield from _of_container(fleet, work, lease, changed.get(lease.lease_id, lease))


def _of_container(fleet: Fleet, work: Workload, lease: Lease, changed: Lease) -> Iterator[Marked]:
    """Yield the result of a batch whose guard does not call it done; `changed` is its lease by this listing."""
    view = fleet.markets.get(lease.market)
    sighting = view.sightings.get(lease.instance_id) if view is not None else None
    end = guard_end.of(fleet, lease, work)
    if _is_ended_by_log(work) and sighting is not None and sighting.is_done:
        yield done(fleet, lease, "a line of its log")
    elif end.word is guard_end.Word.FAILED and lease.state is not LeaseState.EXITED:
        # A lease that is given up for its host says nothing of the work: the host may be the cause of the failure.
        if not changed.has_failed:
            yield from _failed(fleet, work, lease, end.sentence)
    elif fleet.is_seen(lease) and all(_is_over(fleet, each) for each in (lease, changed)):
        yield from _of_end(fleet, work, lease, is_fast=lease.end_reason == FAST_EXIT)


def _is_finished(fleet: Fleet, lease: Lease, work: Workload) -> bool:
    """Return whether its guard calls the work done. A lease that leaves may be of a run that a person began anew."""
    is_leaving = lease.state in {LeaseState.RELEASING, LeaseState.ENDED}
    return not is_leaving and guard_end.of(fleet, lease, work).word is guard_end.Word.DONE


def _is_over(fleet: Fleet, lease: Lease) -> bool:
    return lease.state is LeaseState.EXITED and not is_settling(fleet, lease)


def is_fresh(fleet: Fleet, lease: Lease) -> bool:
    """Return whether a container ended so recently that it may run again, or that one wrong answer may have said so."""
    return fleet.now - lease.state_since < SETTLES


def is_settling(fleet: Fleet, lease: Lease) -> bool:
    """Return whether the end of a batch's container is not judged yet: it may start again, or its log may say more."""
    work = fleet.workload(lease.slot.workload)
    if work is None or work.kind is not WorkloadKind.BATCH or lease.state is not LeaseState.EXITED:
        return False
    ended_for = fleet.now - lease.state_since
    if ended_for < SETTLES or guard_end.is_awaited(fleet, lease, work):
        return True
    view = fleet.markets.get(lease.market)
    sighting = view.sightings.get(lease.instance_id) if view is not None else None
    is_read = sighting is not None and sighting.at >= lease.state_since
    has_sign_of_end = _is_ended_by_log(work) or guard_refusal.is_awaited(fleet, lease, work)
    return has_sign_of_end and not is_read and ended_for < LOG_PATIENCE


def _last_words(fleet: Fleet, lease: Lease) -> str:
    """Return the line of its log that reports a failure, read after its end."""
    view = fleet.markets.get(lease.market)
    sighting = view.sightings.get(lease.instance_id) if view is not None else None
    return sighting.failure if sighting is not None and sighting.at >= lease.state_since else ""


def _ran_bare(fleet: Fleet, lease: Lease) -> bool:
    """Return whether its log, read after its end, says that it ran without the guard."""
    view = fleet.markets.get(lease.market)
    sighting = view.sightings.get(lease.instance_id) if view is not None else None
    return sighting is not None and sighting.is_bare and sighting.at >= lease.state_since


def _is_ended_by_log(work: Workload) -> bool:
    return work.kind is WorkloadKind.BATCH and bool(work.done_line)


def is_fast(change: LeaseChanged) -> bool:
    """Return whether a container ended right after its first start. After later starts its disk may have work."""
    before, after = change.before, change.after
    if change.cause is not Cause.CONTAINER_EXIT or before.was_ready or before.run_since is None:
        return False
    return before.runs <= 1 and after.state_since - before.run_since < FAST


def _row(fleet: Fleet, lease: Lease) -> Instance | None:
    view = fleet.markets.get(lease.market)
    return view.instance(lease.instance_id) if view is not None else None


def done(fleet: Fleet, lease: Lease, why: str) -> Marked:
    """Return the mark of a slot whose work is done: its leases are released and it is not filled again."""
    rest = OperatorHold(Word.DONE, holds.of_slot(lease.slot), fleet.now, why)
    return Marked(rest, lease.slot.workload, lease, EventKind.WORKLOAD_DONE, f"{lease.slot} is done by {why}")


def _of_running_time(fleet: Fleet) -> Iterator[Marked]:
    """Yield the marks of workloads and slots whose `max_running` makes them done."""
    for target, lease, why in running_limits.done(fleet):
        rest = OperatorHold(Word.DONE, target, fleet.now, why)
        sentence = f"{target.spoken} is done by {why}"
        yield Marked(rest, target.workload, lease, EventKind.WORKLOAD_DONE, sentence)


def is_avoided(work: Workload, host: HostKey, in_force: cooldowns.InForce) -> bool:
    """Return whether this workload, or a task of it, failed on a host: another one is tried, and no host is blamed."""
    return any((what, work.name, str(host)) in in_force.tallies for what in (Counted.FAST_EXIT, Counted.AVOIDED))
