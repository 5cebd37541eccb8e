"""Slots of one plan that would move to the same host: one of them cancels its queued start, and no other does."""

import pytest

from agent.domain.market.interruption import Cause
from agent.domain.record.lease import LeaseState
from agent.domain.work.decision import Hold, Pause
from tests.decide.test_plan import market, planned
from tests.support import builders


@pytest.mark.parametrize("works", [("train",), ("train", "eval")], ids=["one workload", "two"])
def test_of_slots_that_would_move_to_one_host_only_one_cancels_its_start(works: tuple[str, ...]) -> None:
    made_of = [builders.workload(name, slots=2 // len(works)) for name in works]
    places = [place for work in made_of for place in work.places]
    lost = [
        builders.lease(
            number,
            slot=place,
            state=LeaseState.PAUSED,
            interrupted_by=Cause.OUTBID,
            state_since=builders.ago(minutes=5),
            has_run=True,
        )
        for number, place in enumerate(places, start=5)
    ]
    offers = [builders.offer(1), builders.offer(2)]
    for count in (1, 2):
        shown = planned(workloads=tuple(made_of), leases=tuple(lost), markets=market(*offers[:count]))
        assert len(shown.decisions) == 2
        hosts = [each.reason.sentence.partition(" at ")[0] for each in shown.decisions if isinstance(each, Pause)]
        assert sorted(set(hosts)) == sorted(hosts) == ["move to host h1", "move to host h2"][: len(hosts)]
        assert hosts


def test_an_empty_slot_leaves_the_host_to_the_slot_that_cancels_its_start_for_it() -> None:
    work = builders.workload(slots=2)
    lease = builders.lease(
        5, state=LeaseState.PAUSED, interrupted_by=Cause.OUTBID, state_since=builders.ago(minutes=5), has_run=True
    )
    shown = planned(workloads=(work,), leases=(lease,), markets=market(builders.offer(1)))
    assert [type(each) for each in shown.decisions] == [Pause, Hold]
    assert shown.decisions[1].reason.code == "host_claimed"
