"""Bids that wait for an auction because no offer fits: where they wait, and where they do not."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from agent.decide import needs, plan
from agent.decide.limits import limits
from agent.decide.limits.limits import Limits
from agent.domain.fleet import Fleet
from agent.domain.market.instance import InstanceState
from agent.domain.slot import Slot
from agent.domain.work.deadline import Deadline
from agent.domain.work.decision import Decision, Hold, Pause, Rent, slot_of
from agent.domain.work.workload import Workload, WorkloadKind
from strategies.deadline import Deadline as DeadlineStrategy
from strategies.deadline import DeadlineParams
from strategies.hedged import Hedged
from strategies.hedged_rules.params import HedgedParams
from strategies.patient import Patient, PatientParams
from tests.support import builders, second_price

TUNED = {
    "patient": builders.tuned(Patient(), PatientParams()),
    "hedged": builders.tuned(Hedged(), HedgedParams(), "hedged"),
    "deadline": builders.tuned(DeadlineStrategy(), DeadlineParams(), "deadline"),
}
DUE = Deadline(4.0, builders.NOW + timedelta(hours=20))


def work(name: str = "train", **changes: Any) -> Workload:
    return builders.workload(name, **{"value_per_hour": builders.per_hour("0.80"), **changes})


def decided(fleet: Fleet, caps: Limits = builders.NO_LIMITS) -> tuple[Decision, ...]:
    return plan.plan(fleet, TUNED, caps).decisions


@pytest.mark.parametrize("strategy", ["patient", "hedged", "deadline"])
def test_a_pool_above_the_value_is_waited_for_only_if_nothing_else_fits(strategy: str) -> None:
    changes: dict[str, Any] = {"deadline": DUE, "kind": WorkloadKind.BATCH} if strategy == "deadline" else {}
    wants, dear = work(strategy=strategy, **changes), second_price.pool(2, floor=builders.per_hour("0.90"))
    (rent,) = decided(second_price.fleet(offers=[dear], workloads=(wants,)))
    assert isinstance(rent, Rent)
    assert (rent.reason.code, rent.expected, rent.is_limit) == ("waiting_bid", None, True)
    assert rent.bid is not None
    assert 0.7 < rent.bid.dollars <= 0.80
    assert "only a bid of $0.9000/h would win now" in rent.reason.sentence
    (blocked,) = decided(second_price.fleet(offers=[dear], workloads=(wants,)), Limits(instances=0))
    assert isinstance(blocked, Hold)
    (known,) = decided(second_price.fleet(offers=[dear, second_price.pool(3)], workloads=(wants,)))
    assert isinstance(known, Rent)
    assert known.offer.host_id == "pool/3"


def test_a_bid_waits_where_the_price_is_unknown_before_where_it_is_nearest_to_the_value() -> None:
    near, far = (second_price.pool(number, floor=builders.per_hour(usd)) for number, usd in ((2, "0.90"), (1, "4.00")))
    (rent,) = decided(second_price.fleet(offers=[far, near], workloads=(work(),)))
    assert isinstance(rent, Rent)
    assert rent.offer == near
    (first,) = decided(second_price.fleet(offers=[far, near, second_price.unknown(3)], workloads=(work(),)))
    assert isinstance(first, Rent)
    assert first.offer == second_price.unknown(3)


def test_two_empty_slots_wait_in_two_pools_and_none_beside_a_lease_of_the_workload() -> None:
    """The highest losing bid is the price of all who won: a waiting bid of ours could raise what our lease pays."""
    near, far = (second_price.pool(number, floor=builders.per_hour(usd)) for number, usd in ((2, "0.90"), (1, "4.00")))
    made = decided(second_price.fleet(offers=[far, near], workloads=(work(slots=2),)))
    assert [each.offer.host_id for each in made if isinstance(each, Rent)] == ["pool/2", "pool/1"]
    runs = second_price.lease(2, slot=Slot("train", 0), bid_limit=builders.per_hour("0.79"))
    fleet = second_price.fleet(
        leases=(runs,), rows=[second_price.row(2)], offers=[near, far], workloads=(work(slots=2),)
    )
    assert [each.offer.host_id for each in decided(fleet) if isinstance(each, Rent)] == ["pool/1"]
    alone = second_price.fleet(leases=(runs,), rows=[second_price.row(2)], offers=[near], workloads=(work(slots=2),))
    assert not any(isinstance(each, Rent) for each in decided(alone))


def test_a_slot_left_over_by_a_plan_does_not_wait_in_a_pool_that_it_would_win() -> None:
    made = decided(second_price.fleet(offers=[second_price.pool()], workloads=(work(slots=2),)))
    assert [type(each) for each in made] == [Rent, Hold]


# --- room under a cap -------------------------------------------------------------------------------------------------
ROOM = Limits(per_hour=builders.per_hour("1.00"))
DEAR = second_price.pool(2, floor=builders.per_hour("0.90"))


def two_works(priority: int = 0, **changes: Any) -> Fleet:
    """Build a workload that only waits at the auctions, before one that could run on another market."""
    waits = work("waits", markets=(second_price.NAME,), priority=priority)
    runs = builders.workload("runs", markets=("vast",), max_price=builders.per_hour("0.60"))
    rows = [second_price.row(1, state=InstanceState.PENDING)]
    auctions = second_price.view(offers=(DEAR,), instances=rows if "leases" in changes else ())
    markets = {second_price.NAME: auctions, "vast": builders.view(offers=(builders.offer(7),))}
    return builders.fleet(workloads=(waits, runs), markets=markets, **changes)


def test_bids_that_wait_are_decided_last_and_get_the_room_that_is_left() -> None:
    runs, waits = decided(two_works(), ROOM)
    assert isinstance(runs, Rent)
    assert runs.slot.workload == "runs"
    assert isinstance(waits, Rent)
    assert waits.rate + runs.rate <= builders.per_hour("1.00")


def test_a_bid_that_waits_is_parked_for_what_could_run_with_its_room() -> None:
    waiting = second_price.waiting(1, slot=Slot("waits", 0), bid_limit=builders.per_hour("0.79"))
    tight = Limits(per_hour=builders.per_hour("0.85"))
    pause, hold = sorted(decided(two_works(leases=(waiting,)), tight), key=lambda each: isinstance(each, Hold))
    assert isinstance(pause, Pause)
    assert (pause.lease, pause.reason.code) == (waiting, "gives_room")
    assert isinstance(hold, Hold)
    assert hold.reason.limit == "per_hour"
    parked = msgspec.structs.replace(waiting, paused_by_us=True)
    small = Limits(per_hour=builders.per_hour("0.40"))
    runs, still = sorted(decided(two_works(leases=(parked,)), small), key=lambda each: isinstance(each, Hold))
    assert isinstance(runs, Rent)
    assert runs.slot.workload == "runs"
    assert isinstance(still, Hold), "it starts again only with room"


def test_a_bid_that_waits_is_a_queued_start_and_counts_among_the_instances() -> None:
    """Any auction may start it. It gave no room under this cap: a parked bid, of which nothing exists, counted too."""
    waiting = second_price.waiting(1, slot=Slot("waits", 0), bid_limit=builders.per_hour("0.79"))
    one = Limits(instances=1)
    for priority, kinds in ((0, [Hold, Pause]), (1, [Hold])):
        fleet = two_works(priority, leases=(waiting,))
        made = sorted(decided(fleet, one), key=lambda each: type(each).__name__)
        assert [type(each) for each in made if slot_of(each).workload == "runs" or isinstance(each, Pause)] == kinds
        (hold,) = [each for each in made if isinstance(each, Hold) and each.slot.workload == "runs"]
        assert hold.reason.limit == "instances"
        said = "1 instances are held, 1 of them bids that any auction may start, and 1 are allowed"
        assert said in hold.reason.sentence
        (need,) = [need for need in needs.needs(fleet, one) if need.workload.name == "runs"]
        assert needs.LIMITS not in need.bars_at("vast"), "it is searched for, since the bid may give its room"
    parked = msgspec.structs.replace(waiting, paused_by_us=True)
    assert limits.committed_by_fleet(two_works(leases=(parked,))).instances == 0
    runs, still = sorted(decided(two_works(leases=(parked,)), one), key=lambda each: isinstance(each, Hold))
    assert isinstance(runs, Rent)
    assert isinstance(still, Hold)
    assert still.reason.limit == "instances", "it starts again only with room"
    machine = msgspec.structs.replace(parked, has_run=True)
    assert limits.committed_by_fleet(two_works(leases=(machine,))).instances == 1


def test_a_new_bid_that_wins_the_next_auction_gives_no_room_to_another() -> None:
    """Else two slots park each other's bids at every poll, and none is there when the auction comes."""
    tight, floor = Limits(per_hour=builders.per_hour("0.85")), builders.per_hour("0.60")
    for minutes, is_parked in ((1, False), (5, True)):
        since = {"state_since": builders.ago(minutes=minutes), "opened_at": builders.ago(minutes=minutes)}
        bid = second_price.waiting(1, slot=Slot("waits", 0), bid_limit=builders.per_hour("0.79"), **since)
        fleet = two_works(leases=(bid,))
        wins = (DEAR, second_price.pool(1, floor=floor))
        markets = {
            **fleet.markets,
            second_price.NAME: msgspec.structs.replace(fleet.markets[second_price.NAME], offers=wins),
        }
        made = decided(msgspec.structs.replace(fleet, markets=markets), tight)
        assert any(isinstance(each, Pause) for each in made) is is_parked


def test_a_bid_gives_no_room_to_a_raise_of_what_runs() -> None:
    waiting = second_price.waiting(1, slot=Slot("waits", 0), bid_limit=builders.per_hour("0.50"))
    runs = second_price.lease(2, slot=Slot("runs", 0), bid_limit=builders.per_hour("0.30"), bid_since=None)
    rows = [second_price.row(1, state=InstanceState.PENDING, limit=waiting.bid), second_price.row(2, limit=runs.bid)]
    fleet = second_price.fleet(
        leases=(waiting, runs), rows=rows, offers=[DEAR], workloads=(work("waits"), work("runs"))
    )
    assert not any(isinstance(each, Pause) for each in decided(fleet, Limits(per_hour=builders.per_hour("0.81"))))


def test_a_bid_gives_no_room_that_is_not_enough_and_none_to_less_important_work() -> None:
    waiting = second_price.waiting(1, slot=Slot("waits", 0), bid_limit=builders.per_hour("0.79"))
    small = Limits(per_hour=builders.per_hour("0.85"), per_instance_hour=builders.per_hour("0.01"))
    for fleet, caps in (
        (two_works(leases=(waiting,)), small),
        (two_works(1, leases=(waiting,)), Limits(per_hour=builders.per_hour("0.85"))),
    ):
        assert not any(isinstance(each, Pause) for each in decided(fleet, caps))
