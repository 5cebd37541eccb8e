"""A deadline job over several markets: work done sooner than planned, work that is done, and a lease elsewhere."""

from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest

from agent.decide.deadline import availability_by_market, regimes
from agent.domain.market.capacity import Capacity
from agent.domain.market.interruption import Cause
from agent.domain.record.lease import LeaseState
from agent.domain.work.deadline import Deadline, Progress
from agent.domain.work.decision import Decision, Hold
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from tests.strategies.test_hedged_markets import NOW, WORK, decided, known, offer, seen
from tests.support import builders

ASKS = [offer(22, "0.40"), offer(20, "0.41", market="runpod")]


def after(done: float, first_seen: float, *, hours: float = 30.0, left: float = 28.0) -> Decision:
    """The decision about work of which so much is done, so many hours after it was first seen."""
    works = (replace(WORK, deadline=Deadline(hours, NOW + timedelta(hours=left))),)
    told = {"train": Progress("train", done, NOW, builders.ago(hours=first_seen))}
    return decided(seen(ASKS, workloads=works, progress=told))


@pytest.mark.parametrize("first_seen", [1, 6, 30])
def test_work_that_is_done_sooner_than_planned_leaves_slack_to_wait(first_seen: float) -> None:
    """Its slack was cut to that of the first look: with 23 hours of it, it rented on demand for four hours of work."""
    made = after(26.0, first_seen)
    assert isinstance(made, Hold), made.reason
    costs = {option.name: option.dollars for option in made.reason.options}
    assert costs["waiting"] < costs["on demand"] < 4 * 0.40 + 0.20


def test_the_same_state_waits_whenever_the_job_was_first_seen() -> None:
    made = [after(9.0, hours, hours=12.0, left=10.0) for hours in (6.0, 40.0)]
    assert [type(each) for each in made] == [Hold, Hold]


@pytest.mark.parametrize("is_outbid", [False, True])
def test_nothing_is_rented_for_work_that_is_done(is_outbid: bool) -> None:
    """A batch that is outbid between its last report and its exit was rented again without end."""
    told = {"train": Progress("train", 12.0, NOW, builders.ago(hours=5))}
    lost = builders.lease(1, state=LeaseState.PAUSED, interrupted_by=Cause.OUTBID, state_since=builders.ago(hours=1))
    bids = [offer(22, "0.80", "0.30"), offer(20, "0.81", "0.32", market="runpod")]
    made = decided(seen(bids, [lost] if is_outbid else [], progress=told))
    assert (type(made), made.reason.code) == (Hold, "work_done")


def test_what_runs_on_after_its_hours_are_done_is_not_moved() -> None:
    """A cheaper offer elsewhere paid a second start for a batch between its last report and its exit."""
    told = {"train": Progress("train", 12.0, NOW, builders.ago(hours=5))}
    since = builders.ago(hours=6)
    held = builders.lease(1, gpu_rate=builders.per_hour("0.60"), opened_at=since, run_since=since, state_since=since)
    bids = [offer(22, "0.80", "0.10"), offer(20, "0.81", "0.10", market="runpod")]
    for lease in (held, msgspec.structs.replace(held, ends_at=NOW + timedelta(minutes=40))):
        assert isinstance(decided(seen(bids, [lease], progress=told)), Hold)


@pytest.mark.parametrize("spare", [0.1, 0.3, 0.45])
def test_a_lease_on_a_market_that_the_file_no_longer_names_runs_on_where_no_start_fits_any_more(spare: float) -> None:
    works = (
        replace(WORK, markets=("vast", "runpod"), deadline=Deadline(12.0, NOW + timedelta(hours=6 + 46 / 60 + spare))),
    )
    told = {"train": Progress("train", 6.0, NOW, builders.ago(hours=5))}
    since = builders.ago(hours=6)
    held = builders.lease(
        1, market="mithril", gpu_rate=builders.per_hour("0.20"), opened_at=since, run_since=since, state_since=since
    )
    bids = [offer(22, "0.80", "0.30"), offer(20, "0.81", "0.32", market="runpod")]
    assert isinstance(decided(seen(bids, [held], workloads=works, progress=told)), Hold)


def test_a_checkpoint_leaves_a_market_for_money_also_while_no_bid_is_there() -> None:
    """100 GB at $0.09: without a bid in view the way to the other market cost nothing."""
    works = (
        replace(
            WORK,
            max_price=builders.per_hour("3.00"),
            deadline=Deadline(12.0, NOW + timedelta(hours=16)),
            checkpoint=Checkpoint(place=CheckpointPlace.REMOTE, size_gb=100.0),
        ),
    )
    told = {"train": Progress("train", 6.0, NOW, builders.ago(hours=5))}
    there = offer(20, "1.60", "0.40", market="runpod", traffic_up_micros_per_gb=0, traffic_down_micros_per_gb=0)
    fleet = seen(
        [offer(22, "1.60", traffic_up_micros_per_gb=90_000), there],
        workloads=works,
        progress=told,
        left={builders.slot(): "vast"},
        capacity={"train@vast": known("vast", is_there=False), "train@runpod": known("runpod", is_there=True)},
    )
    costs = {option.name: option.dollars for option in decided(fleet).reason.options}
    assert costs["interruptible on runpod"] > 9.0 + 6 * 0.40


def test_a_search_that_found_nothing_is_a_look_and_one_that_was_not_made_is_none() -> None:
    """A pool with ten minutes an hour passed for one that is steadily there: most markets list nothing in between."""

    def learned(answered: tuple[str, ...]) -> float:
        kept: dict[str, Capacity] = {}
        for minute in range(0, 24 * 60, 5):
            now = NOW + timedelta(minutes=minute)
            is_there = minute % 60 < 10
            offers = [offer(22, "0.80", "0.30")] if is_there else []
            fleet = seen([*offers, offer(20, "0.81", market="runpod")], now=now, capacity={})
            view = builders.view(market="vast", offers=tuple(offers), answered=answered)
            fleet = msgspec.structs.replace(fleet, markets={**fleet.markets, "vast": view})
            kept = availability_by_market.watched(kept, fleet)
        assert kept["train@vast"].is_there is (not answered)
        return float(availability_by_market.belief(kept["train@vast"]).rate(regimes.SHIPPED))

    assert learned(("train",)) > 3 * learned(())
