"""The capacity of fallback markets counts for a workload only while they are open to it."""

from datetime import timedelta

from agent.domain.work.deadline import Deadline
from agent.domain.work.workload import Fallback, WorkloadKind
from agent.observe import snapshot
from tests.support import builders

NOW = builders.NOW
WORK = builders.workload(
    kind=WorkloadKind.BATCH,
    markets=("vast",),
    fallback=Fallback(("dstack",), timedelta(minutes=30)),
    deadline=Deadline(10.0, NOW + timedelta(hours=50)),
)


def is_there(minutes_down: float) -> bool:
    markets = {
        "vast": builders.view(offers=(builders.offer(1, floor=None),)),
        "dstack": builders.view(market="dstack", offers=(builders.offer(2, market="dstack"),)),
    }
    vacated = {builders.slot(): builders.ago(minutes=minutes_down)}
    fleet = builders.fleet(workloads=(WORK,), markets=markets, vacated=vacated)
    return snapshot.enriched(fleet, {}).capacity["train"].is_there


def test_offers_of_a_market_that_is_not_open_yet_are_no_capacity() -> None:
    assert not is_there(minutes_down=20)
    assert is_there(minutes_down=40)
