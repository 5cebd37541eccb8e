"""A last checkpoint before an ending of our own: the guard is asked for one, and the ending waits briefly for it.

Invariants:
1. An ending waits at most the workload's `final_within` and the poll in which that time ends. The time counts from when
   the order reached its bucket, usually when the guard was asked. If the order cannot be written within `final_within`
   of that, the ending does not wait for it.
2. An ending by a person or a hard cap does not wait, nor does one of a lease whose guard is not known to work.
3. An ending asks once, however long its market refuses it. The ledger has the time, so that a restart neither forgets
   it nor asks again. Only a daemon that was away for an hour asks again.
4. An ending that is given up leaves nothing behind. If it becomes due again, it asks again, and no old answer counts.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from agent.decide.moves import due_endings
from agent.domain.fleet import Fleet
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.work.decision import Decision, Hold, Pause, Reason, Release, slot_of
from agent.domain.work.workload import Workload

CODE = "last_checkpoint"
ASK_AGAIN = timedelta(hours=1)
"""A daemon that was away and starts later than this after the order asks again, since nobody ended the lease
meanwhile."""
REFUSED_AFTER = timedelta(minutes=2)
"""An ending is sent when its wait is over. A lease that still runs this much later goes on working for now."""
BEATS_WITHIN = timedelta(minutes=3)
"""A guard beats each minute. An ending does not wait for a guard that has reported nothing new for longer than this."""
ABLE = frozenset({"running", "uploading"})
"""The phases in which the work can make a checkpoint."""


@dataclass(frozen=True, slots=True)
class Asked:
    """An ending that waits for the checkpoint that its lease's guard was asked for at `since`."""

    ending: Pause | Release
    since: datetime

    @property
    def lease(self) -> Lease:
        """The lease that ends."""
        return self.ending.lease

    @property
    def order(self) -> str:
        """The id of the order. The guard repeats it once it has carried the order out."""
        return order_of(self.lease, self.since)


def order_of(lease: Lease, since: datetime) -> str:
    """Return the id of the order for a last checkpoint that was given to a lease at `since`."""
    return f"{lease.intent_id}-{int(since.timestamp())}"


def is_order_over(lease: Lease, work: Workload | None, now: datetime) -> bool:
    """Return whether the order of a lease is no longer in force: the ending was due, and the lease still runs."""
    since = lease.checkpoint_asked_at
    if since is None or work is None or work.guard is None:
        return True
    return not timedelta() <= now - since < 2 * work.guard.final_within + REFUSED_AFTER


def settled(
    endings: Iterable[Pause | Release], fleet: Fleet, at_once: Collection[str] = ()
) -> tuple[list[Decision], list[Asked]]:
    """Return the endings, some replaced by holds, and the checkpoints they wait for. A slot asks one lease at a time.

    `at_once` are the leases that a person or a hard cap ends. No ending of these waits, whatever its reason.
    """
    decisions: list[Decision] = []
    waiting: dict[Slot, Asked] = {}
    for ending in endings:
        decision, asked = (ending, None) if ending.lease.lease_id in at_once else instead(ending, fleet)
        if asked is not None and asked.lease.slot not in waiting:
            waiting[asked.lease.slot] = asked
            decisions.append(decision)
        else:
            decisions.append(ending if asked is not None else decision)
    return decisions, list(waiting.values())


def instead(decision: Decision, fleet: Fleet) -> tuple[Decision, Asked | None]:
    """Return the decision and None, or a hold that replaces an ending and the checkpoint that it waits for."""
    work = fleet.workload(slot_of(decision).workload)
    if not isinstance(decision, Pause | Release) or work is None or work.guard is None or work.guard.bucket is None:
        return decision, None
    lease = decision.lease
    if lease.state is not LeaseState.RUNNING or lease.guard_run is None or lease.has_failed:
        return decision, None
    if due_endings.is_of_person(decision) or due_endings.is_of_cap(decision):
        return decision, None
    since = asked_at(fleet, lease)
    if since is None:
        is_able = can_answer(fleet, lease)
        until = fleet.now + work.guard.final_within
        return _waiting(Asked(decision, fleet.now), until) if is_able else (decision, None)
    if has_answered(fleet, lease, since):
        asked = f"the checkpoint that it was asked for at {since:%H:%M:%S} UTC"
        return _said(decision, f"its guard has carried {asked}"), None
    within = work.guard.final_within
    until = _written_at(fleet, lease, since, within) + within
    if since <= fleet.now < until:
        return _waiting(Asked(decision, since), until)
    return _said(decision, f"its guard carried no checkpoint that was asked for at {since:%H:%M:%S} UTC"), None


def asked_at(fleet: Fleet, lease: Lease) -> datetime | None:
    """Return when the present stretch of running of a lease was asked for a last checkpoint, or None."""
    since, began = lease.checkpoint_asked_at, lease.began
    if since is None or since < began:
        return None
    was_away = fleet.started_at > since and fleet.now - since >= ASK_AGAIN
    return None if was_away else since


def given_up(fleet: Fleet, decisions: Iterable[Decision], asked: Iterable[Asked]) -> tuple[Lease, ...]:
    """Return the leases that were asked for a last checkpoint and whose ending is no longer due.

    A lease whose market was not read is not among them, since its plan is unknown.
    """
    ending = {each.lease.lease_id for each in decisions if isinstance(each, Pause | Release)}
    ending |= {each.lease.lease_id for each in asked}
    running = (lease for lease in fleet.leases if lease.state is LeaseState.RUNNING and fleet.is_seen(lease))
    return tuple(lease for lease in running if lease.checkpoint_asked_at and lease.lease_id not in ending)


def _written_at(fleet: Fleet, lease: Lease, since: datetime, within: timedelta) -> datetime:
    """Return when the order of a lease was written, at most `within` after `since`; `since` if it was not written."""
    written_at = fleet.orders_written.get(order_of(lease, since), since)
    return min(max(written_at, since), since + within)


def _waiting(asked: Asked, until: datetime) -> tuple[Decision, Asked]:
    sentence = (
        f"its guard was asked at {asked.since:%H:%M:%S} UTC for a last checkpoint, and has until {until:%H:%M:%S} "
        f"and the next poll; then {type(asked.ending).__name__.lower()}: {asked.ending.reason.sentence}"
    )
    return Hold(asked.lease.slot, Reason(CODE, sentence, asked.ending.reason.options)), asked


def _said(ending: Pause | Release, what: str) -> Decision:
    return replace(ending, reason=replace(ending.reason, sentence=f"{ending.reason.sentence}; {what}"))


def has_answered(fleet: Fleet, lease: Lease, since: datetime) -> bool:
    """Return whether a lease's guard has carried out the order of `since`."""
    report = fleet.guard_reports.get(lease.intent_id)
    return report is not None and report.beat is not None and report.beat.answered == order_of(lease, since)


def can_answer(fleet: Fleet, lease: Lease) -> bool:
    """Return whether a lease's guard is known to be at work: its bucket answered, and its beat changed, lately."""
    report = fleet.guard_reports.get(lease.intent_id)
    if report is None or report.beat is None or fleet.now - report.read_at > BEATS_WITHIN:
        return False
    is_lively = report.beat_seen_at is None or report.read_at - report.beat_seen_at <= BEATS_WITHIN
    return report.beat.phase in ABLE and is_lively
