"""The requests of a service before an ending of our own: its proxy drains the lease, and the ending waits briefly.

Invariants:
1. An ending waits at most the workload's `drain` and the poll in which that time ends, from when the proxy was asked.
2. An ending by a person or a hard cap does not wait, nor one of a lease that failed or that no proxy is known to carry.
3. An ending that is given up leaves nothing behind: the proxy gives the lease new requests again. While the market of
   the lease is dark, nothing is given up.
4. A restart of the daemon begins the wait anew, since the proxy alone keeps what it was asked.
"""

from dataclasses import replace
from datetime import timedelta

import msgspec

from agent.decide.moves import due_endings
from agent.domain import span_text
from agent.domain.fleet import Fleet
from agent.domain.front_report import FrontReport
from agent.domain.record.lease import LeaseState
from agent.domain.work import usefulness
from agent.domain.work.decision import Decision, Hold, Pause, Reason, Release, slot_of

CODE = "draining"
STALE = timedelta(minutes=3)
"""A report of a proxy that is older than this and a poll is no report: by then nobody knows what it does."""


def instead(decision: Decision, ending: Decision, fleet: Fleet) -> tuple[Decision, Pause | Release | None]:
    """Return the decision, or a hold that replaces it, and the ending if its lease is drained, else None.

    `ending` is the ending behind a decision that waits for something else already: both waits go on side by side.
    """
    work = fleet.workload(slot_of(ending).workload)
    if not isinstance(ending, Pause | Release) or work is None or not work.drain:
        return decision, None
    lease, report = ending.lease, fleet.front_reports.get(ending.lease.lease_id)
    is_ordered = due_endings.is_of_person(ending) or due_endings.is_of_cap(ending)
    if lease.state is not LeaseState.RUNNING or lease.has_failed or is_ordered or not usefulness.is_useful(lease, work):
        return decision, None
    if report is None or fleet.now - report.read_at > STALE + fleet.poll:
        return decision, None
    if report.asked_at is None:
        return _waiting(
            decision, ending, f"its proxy is asked to drain it, for at most {span_text.of(work.drain)}"
        ), ending
    if is_drained(report):
        return _said(decision, f"its proxy has drained it since {report.asked_at:%H:%M:%S} UTC"), ending
    if fleet.now - report.asked_at < work.drain:
        what = f"its proxy drains it since {report.asked_at:%H:%M:%S} UTC, {report.sessions} request(s) are left"
        return _waiting(decision, ending, f"{what}, for at most {span_text.of(work.drain)}"), ending
    return _said(
        decision, f"{report.sessions} request(s) were left after {span_text.of(work.drain)} of draining"
    ), ending


def unasked(fleet: Fleet) -> Fleet:
    """Return a fleet in which no ending waits for a proxy: none is asked after a pass that cannot be recorded."""
    return msgspec.structs.replace(fleet, front_reports={})


def is_drained(report: FrontReport) -> bool:
    """Return whether a proxy was seen to give a lease no new request, and to have none left."""
    is_later = report.asked_at is not None and report.read_at >= report.asked_at
    return is_later and report.is_drained and report.sessions == 0


def _waiting(decision: Decision, ending: Pause | Release, what: str) -> Decision:
    if isinstance(decision, Hold):
        return replace(decision, reason=replace(decision.reason, sentence=f"{decision.reason.sentence}; {what}"))
    sentence = f"{what}; then {type(ending).__name__.lower()}: {ending.reason.sentence}"
    return Hold(ending.lease.slot, Reason(CODE, sentence, ending.reason.options))


def _said(decision: Decision, what: str) -> Decision:
    return replace(decision, reason=replace(decision.reason, sentence=f"{decision.reason.sentence}; {what}"))
