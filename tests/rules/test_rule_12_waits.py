"""Rule 12 where an ending waits: the old lease of a move bills on for a while, and never beyond a hard cap.

The bound grows by the longer of `drain` and `final_within`, and by one poll, times the rate of the lease: both waits go
on side by side. A hard cap waits for neither.
"""

import datetime as dt
from dataclasses import replace

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from agent.decide import plan
from agent.decide.limits.limits import Limits
from agent.domain.fleet import Fleet, Spend
from agent.domain.front_report import FrontReport
from agent.domain.money import Usd
from agent.domain.work.decision import Hold, Pause, Release
from agent.domain.work.guard_report import GuardBeat, GuardReport
from agent.domain.work.workload import Workload
from tests.support import builders
from tests.support.scene import strategies

NOW = builders.NOW
OLD = builders.lease(1, guard_run=1)
NEW = builders.lease(2, opened_at=NOW, guard_run=1)
BEAT = GuardBeat(version=1, sequence=7, lease=OLD.intent_id, phase="running")


def moved(work: Workload, at: dt.datetime, asked_at: dt.datetime | None, requests: int) -> Fleet:
    """Return a fleet in which a service has moved. Its proxy and its guard were heard just now; neither is done."""
    report = FrontReport(at, is_drained=asked_at is not None, sessions=requests, asked_at=asked_at)
    return builders.fleet(
        now=at,
        workloads=(work,),
        leases=(msgspec.structs.replace(OLD, checkpoint_asked_at=asked_at), NEW),
        guard_reports={OLD.intent_id: GuardReport(at, BEAT, beat_seen_at=at)},
        front_reports={OLD.lease_id: report},
    )


def ended(fleet: Fleet, caps: Limits) -> type[Pause] | type[Release] | None:
    """Return how the plan ends the old lease, or None while it waits."""
    made = plan.plan(fleet, strategies(), caps)
    mine = [
        each for each in made.decisions if isinstance(each, Pause | Release) and each.lease.lease_id == OLD.lease_id
    ]
    if not mine:
        assert any(isinstance(each, Hold) for each in made.decisions)
        assert [lease.lease_id for lease in made.drained] == [OLD.lease_id]
    return type(mine[0]) if mine else None


@given(
    drain=st.integers(1, 600),
    within=st.integers(1, 600),
    poll=st.integers(5, 60),
    requests=st.integers(1, 9),
)
def test_the_old_lease_of_a_move_bills_for_no_longer_than_both_waits_and_a_poll(
    drain: int, within: int, poll: int, requests: int
) -> None:
    work = builders.guarded(drain=dt.timedelta(seconds=drain))
    assert work.guard is not None
    work = replace(work, guard=replace(work.guard, final_within=dt.timedelta(seconds=within)))
    passed = 0
    assert ended(moved(work, NOW, None, requests), Limits()) is None
    while passed <= max(drain, within) + poll:
        passed += poll
        if ended(moved(work, NOW + dt.timedelta(seconds=passed), NOW, requests), Limits()) is Release:
            break
    assert max(drain, within) <= passed <= max(drain, within) + poll, "no request and no checkpoint was done earlier"


@given(st.integers(0, 600), st.integers(1, 9))
def test_a_hard_cap_waits_for_no_request_and_no_checkpoint(passed: int, requests: int) -> None:
    work = builders.guarded(drain=dt.timedelta(seconds=600))
    asked_at = NOW if passed else None
    fleet = moved(work, NOW + dt.timedelta(seconds=passed), asked_at, requests)
    spent = msgspec.structs.replace(fleet, spend=Spend(Usd(5_000_000), Usd(5_000_000), Usd(5_000_000)))
    assert ended(spent, Limits(per_day=Usd(1_000_000))) in {Pause, Release}
