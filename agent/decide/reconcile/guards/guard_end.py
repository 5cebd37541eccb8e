"""The result of a batch by its guard's report: exit codes instead of guesses from a log.

Invariants:
1. Only an end with a done code is final. Any other report never ends a workload; it only holds it for a person.
2. If the bucket was not read since the container ended, nothing is concluded, for `PATIENCE` at most, and for
   `FIRST_READING` after a start of the daemon. A start does not begin the patience again.
3. A beat from before the present stretch of running says nothing about this stretch.
4. If no guard reported for a lease and its log says that it runs without one, its end is judged like any other lease's.
"""

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from agent.decide.reconcile.guards import beat_stretch
from agent.domain.fleet import Fleet
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.guard_report import GuardEnd, GuardReport
from agent.domain.work.workload import Workload

PATIENCE = timedelta(minutes=10)
"""How long the end of a container waits for its guard's report; its GPU may bill meanwhile."""
FIRST_READING = timedelta(minutes=2)
"""How long a daemon that has started waits at least: it reads each bucket once a minute."""
MOST_LINE = 200


class Word(Enum):
    """The guard's verdict on the work."""

    NOTHING = "nothing"
    """No guard reports for this lease."""
    UNKNOWN = "unknown"
    """The bucket was not read since the lease came into its state."""
    WORKS = "works"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class GuardWord:
    """The guard's verdict, and its grounds in a sentence."""

    word: Word
    sentence: str = ""


def of(fleet: Fleet, lease: Lease, work: Workload) -> GuardWord:
    """Return the verdict of a lease's guard."""
    if work.guard is None or work.guard.bucket is None or lease.guard_run is None:
        return GuardWord(Word.NOTHING)
    report = fleet.guard_reports.get(lease.intent_id)
    if report is None:
        return GuardWord(Word.UNKNOWN)
    end = report.end
    if done := finished(end, work):
        return GuardWord(Word.DONE, done)
    if end is not None and end.done and report.read_at >= lease.state_since:
        # Such a guard sleeps until its instance is released, and nothing else would end it.
        return GuardWord(Word.FAILED, f"its guard calls {end.sentence} done, which is not among its done_codes")
    if report.unread_end and report.read_at >= lease.state_since:
        return GuardWord(Word.FAILED, f"its guard left an end that cannot be read, {report.unread_end} in the bucket")
    is_over = lease.state is LeaseState.EXITED or _has_failed_now(report, lease)
    if end is not None and end.lease == lease.intent_id and is_over and report.read_at >= lease.state_since:
        last = f": {end.last_lines[-1][:MOST_LINE]}" if end.last_lines else ""
        return GuardWord(Word.FAILED, f"its command ended with {end.sentence}{last}")
    if report.read_at < lease.state_since:
        return GuardWord(Word.UNKNOWN)
    return GuardWord(Word.WORKS if report.beat is not None else Word.NOTHING)


def finished(end: GuardEnd | None, work: Workload) -> str:
    """Return how a run's work was finished, by its end in the bucket; empty if it is not finished."""
    codes = work.guard.done_codes if work.guard is not None else ()
    is_done = end is not None and end.done and end.signal is None and end.code in codes
    return f"{end.sentence}, as its guard reports" if end is not None and is_done else ""


def _has_failed_now(report: GuardReport, lease: Lease) -> bool:
    """Return whether a guard reported in this stretch of running that its command failed."""
    has_failed = report.beat is not None and report.beat.phase == "failed"
    return has_failed and beat_stretch.has_changed(report, lease)


def is_awaited(fleet: Fleet, lease: Lease, work: Workload) -> bool:
    """Return whether the end of a container is not judged yet, because its guard may still say how it ended."""
    # A daemon that has just started has read no bucket yet.
    until = max(lease.state_since + PATIENCE, fleet.started_at + FIRST_READING)
    return of(fleet, lease, work).word is Word.UNKNOWN and fleet.now < until
