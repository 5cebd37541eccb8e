"""An ending of ours waits for the requests of its lease, briefly; nothing else does."""

import datetime as dt
from typing import Any

import pytest

from agent.decide.moves import front_drain
from agent.domain import front_report
from agent.domain.front_report import FrontReport
from agent.domain.record.lease import LeaseState
from agent.domain.work.decision import Decision, Hold, Pause, Reason, Release
from tests.support import builders

NOW = builders.NOW
DRAIN = dt.timedelta(seconds=30)
LEASE = builders.lease()
MOVED = Release(LEASE, Reason("moved", "the workload runs on another host"))


def report(**changes: Any) -> FrontReport:
    return FrontReport(**{"read_at": builders.ago(minutes=0), "sessions": 2, **changes})


def after(ending: Decision = MOVED, told: FrontReport | None = None, **changes: Any) -> Decision:
    work = builders.workload(drain=changes.pop("drain", DRAIN))
    reports = {LEASE.lease_id: told} if told is not None else {}
    fleet = builders.fleet(workloads=(work,), leases=(LEASE,), front_reports=reports)
    decision, drained = front_drain.instead(changes.pop("waiting", ending), ending, fleet)
    assert (drained is not None) is (told is not None and bool(work.drain) and ending is MOVED)
    return decision


def test_an_ending_asks_first_and_waits_while_requests_are_left() -> None:
    first = after(told=report())
    assert isinstance(first, Hold)
    assert first.reason.sentence == (
        "its proxy is asked to drain it, for at most 30 s; then release: the workload runs on another host"
    )
    asked = builders.ago(seconds=20)
    second = after(told=report(asked_at=asked, is_drained=True))
    assert isinstance(second, Hold)
    assert "2 request(s) are left" in second.reason.sentence


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (report(asked_at=builders.ago(seconds=20), is_drained=True, sessions=0), "its proxy has drained it since"),
        (report(asked_at=builders.ago(seconds=30), is_drained=True), "2 request(s) were left after 30 s of draining"),
        (report(asked_at=builders.ago(seconds=31)), "2 request(s) were left after 30 s of draining"),
    ],
)
def test_it_goes_once_nothing_is_left_or_its_time_is_over(told: FrontReport, said: str) -> None:
    gone = after(told=told)
    assert isinstance(gone, Release)
    assert said in gone.reason.sentence


@pytest.mark.parametrize("poll", [15, 300, 600])
def test_a_slow_poll_waits_too_and_a_silent_proxy_holds_nothing(poll: int) -> None:
    """Reports are read once a pass, after its plan."""
    for late, kind in ((0, Hold), (180, Hold), (181, Release)):
        told = report(read_at=builders.ago(seconds=poll + late))
        work, reports = builders.workload(drain=DRAIN), {LEASE.lease_id: told}
        fleet = builders.fleet(
            workloads=(work,), leases=(LEASE,), front_reports=reports, poll=dt.timedelta(seconds=poll)
        )
        assert isinstance(front_drain.instead(MOVED, MOVED, fleet)[0], kind)


def test_a_lease_behind_two_proxies_is_drained_when_both_say_so() -> None:
    asked = builders.ago(seconds=20)
    done = report(asked_at=asked, is_drained=True, sessions=0)
    busy = report(asked_at=asked, is_drained=True, sessions=7, read_at=builders.ago(seconds=5))
    told = front_report.together([busy, done])
    assert (told.sessions, told.read_at) == (7, busy.read_at)
    assert isinstance(after(told=told), Hold)
    assert isinstance(after(told=front_report.together([done, done])), Release)
    unasked = report(is_drained=True, sessions=0)
    assert isinstance(after(told=front_report.together([unasked, unasked])), Hold)


def test_an_older_look_does_not_show_that_a_server_is_drained() -> None:
    told = report(read_at=builders.ago(seconds=25), asked_at=builders.ago(seconds=20), is_drained=True, sessions=0)
    assert isinstance(after(told=told), Hold)


@pytest.mark.parametrize("told", [None, report(read_at=builders.ago(minutes=4))], ids=["none", "old"])
def test_a_proxy_of_which_nothing_is_known_is_not_waited_for(told: FrontReport | None) -> None:
    work = builders.workload(drain=DRAIN)
    reports = {LEASE.lease_id: told} if told is not None else {}
    fleet = builders.fleet(workloads=(work,), leases=(LEASE,), front_reports=reports)
    assert front_drain.instead(MOVED, MOVED, fleet) == (MOVED, None)


@pytest.mark.parametrize(
    "ending",
    [
        Release(LEASE, Reason("ordered", "ordered by `gpubid kill`")),
        Pause(LEASE, Reason("over_budget", "the day's budget is spent")),
        Release(builders.lease(state=LeaseState.PAUSED), Reason("moved", "the workload runs on another host")),
        Release(builders.lease(has_failed=True), Reason("start_failed", "it did not start")),
    ],
    ids=["person", "cap", "stopped", "failed"],
)
def test_what_must_end_at_once_ends_at_once(ending: Pause | Release) -> None:
    assert after(ending, report()) == ending


def test_without_a_drain_nothing_waits() -> None:
    assert after(told=report(), drain=dt.timedelta()) == MOVED


def test_it_waits_beside_a_last_checkpoint() -> None:
    asked = Hold(LEASE.slot, Reason("last_checkpoint", "its guard was asked"))
    both = after(told=report(), waiting=asked)
    assert isinstance(both, Hold)
    assert both.reason.code == "last_checkpoint"
    assert both.reason.sentence == "its guard was asked; its proxy is asked to drain it, for at most 30 s"
