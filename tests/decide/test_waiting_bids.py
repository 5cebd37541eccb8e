"""Bids that wait for an auction because no offer fits: where they wait, and where they do not."""

from datetime import timedelta
from typing import Any

import pytest

from agent.decide import plan
from agent.decide.limits.limits import Limits
from agent.domain.fleet import Fleet
from agent.domain.slot import Slot
from agent.domain.work.deadline import Deadline
from agent.domain.work.decision import Decision, Hold, Rent
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


def work(**changes: Any) -> Workload:
    return builders.workload(**{"value_per_hour": builders.per_hour("0.80"), **changes})


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
