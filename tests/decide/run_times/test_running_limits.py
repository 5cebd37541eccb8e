"""Running time counts only as far as a listing showed it: an unread market ends nothing and uses no time up."""

import datetime as dt
from typing import Any

from agent.decide.run_times import running_limits
from agent.domain.fleet import Fleet
from agent.domain.record.lease import Lease
from agent.domain.work.run_times.running_limit import AtLimit, LimitOf, RunningLimit
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from tests.support import builders
from tests.support.builders import ago, slot

LIMIT = RunningLimit(dt.timedelta(hours=2), LimitOf.WORKLOAD, AtLimit.PAUSE, dt.timedelta(minutes=5))


def lease(index: int, market: str, ran: float, unread: float = 0.0) -> Lease:
    """Build a lease that has run for so many minutes by its last listing, which is so many minutes old."""
    began = ago(minutes=ran + unread)
    times = {"run_since": began, "ready_since": began, "accrued_until": ago(minutes=unread)}
    return builders.lease(index, slot=slot(index=index - 1), market=market, ran_micros=round(ran * 60e6), **times)


def fleet(*leases: Lease, dark: str = "", limit: RunningLimit = LIMIT) -> Fleet:
    kept = Checkpoint(place=CheckpointPlace.REMOTE)
    work = builders.workload(slots=2, max_running=(limit,), checkpoint=kept)
    views: dict[str, Any] = {name: builders.view(market=name, is_fresh=name != dark) for name in ("vast", "runpod")}
    return builders.fleet(workloads=(work,), leases=leases, markets=views)


def ended(of: Fleet) -> list[str]:
    return [decision.lease.market for decision in running_limits.endings(of)]


def test_time_on_an_unread_market_uses_nothing_up() -> None:
    both = lease(1, "vast", ran=50), lease(2, "runpod", ran=50, unread=30)
    assert ended(fleet(*both, dark="runpod")) == []
    assert sorted(ended(fleet(*both))) == ["runpod", "vast"], "once it is read, the half hour counts"


def test_a_lease_on_an_unread_market_is_not_ended_although_its_time_is_over() -> None:
    both = lease(1, "vast", ran=70), lease(2, "runpod", ran=70, unread=5)
    assert ended(fleet(*both, dark="runpod")) == ["vast"]


def test_the_command_that_is_named_ends_no_more_than_what_has_run_its_time() -> None:
    """For one lease it named the order that marks every slot of its workload as done."""
    alone = RunningLimit(dt.timedelta(hours=1), LimitOf.LEASE, AtLimit.PAUSE, dt.timedelta(minutes=5))
    both = fleet(lease(1, "vast", ran=70), lease(2, "runpod", ran=20), limit=alone)
    (pause,) = running_limits.endings(both)
    assert pause.reason.sentence.endswith("or `gpubid release train/0`, after which another lease may be rented")
    idle = running_limits.why_idle(both, slot(index=0))
    assert idle is not None
    assert idle.sentence == pause.reason.sentence


def test_where_no_lease_is_left_no_command_is_named_that_would_find_none() -> None:
    idle = running_limits.why_idle(fleet(lease(1, "vast", ran=150)), slot(index=1))
    assert idle is not None
    sentence = "train has run 2 h 30 min of 2 h, so nothing is rented; raise max_running in [workloads.train]"
    assert (idle.code, idle.sentence) == (running_limits.CODE, sentence)
