"""hedged with keep_warm: spare slots held while they pay, on demand at once when nothing else is there, and back."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.decide import plan
from agent.decide.limits import limits
from agent.decide.pricing import loss_rate
from agent.domain import warm_time
from agent.domain.fleet import Fleet
from agent.domain.market.host import HostRecord
from agent.domain.market.interruption import Cause
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.warm_time import Stretch, WarmTime
from agent.domain.work.decision import Decision, Hold, Release, Rent
from agent.domain.work.ready_sign import Readiness, ReadySign
from agent.domain.work.workload import WorkloadKind
from strategies.hedged import Hedged
from strategies.hedged_rules.params import HedgedParams
from tests.support import builders

NOW = builders.NOW
AGO = builders.ago
HOUR = 3600 * warm_time.MICROS


def rough(losses: float, hours: float = 1000.0) -> dict[str, HostRecord]:
    """A record by which the market takes that many leases an hour, wherever, over the first hours of their stays."""
    record = HostRecord("vast", "h99", "", hours * 3600, losses * hours, 9, 0, NOW, losses * hours, hours * 3600)
    return {"h99": msgspec.structs.replace(record, weighed_hours=hours * loss_rate.ahead(0.0))}


def seen(offers: Sequence[Offer], leases: Sequence[Lease] = (), *, slots: int = 4, **changes: Any) -> Fleet:
    kind, ready = changes.pop("kind", WorkloadKind.SERVICE), changes.pop("ready", Readiness())
    worth = changes.pop("value", None)
    value = None if worth is None else builders.per_hour(worth)
    work = builders.workload(strategy="hedged", slots=slots, kind=kind, ready=ready, value_per_hour=value)
    views = {"vast": builders.view(offers=tuple(offers))}
    known = {work.name: NOW}
    return builders.fleet(workloads=(work,), markets=views, leases=tuple(leases), known_since=known, **changes)


def decided(fleet: Fleet, **params: Any) -> list[Decision]:
    numbers = HedgedParams(**{"keep_warm": True, "share_of_owner": 1.0, **params})
    tuned = builders.tuned(Hedged(), numbers, "hedged")
    return list(plan.plan(fleet, {"hedged": tuned}, limits.Limits()).decisions)


def offers(count: int, first: int = 20, **changes: Any) -> list[Offer]:
    return [builders.offer(number, **changes) for number in range(first, first + count)]


def leases(count: int, **changes: Any) -> list[Lease]:
    values = {"state_since": AGO(hours=9), "opened_at": AGO(hours=9), "run_since": AGO(hours=9), **changes}
    return [builders.lease(index, slot=builders.slot("train", index), **values) for index in range(count)]


def rents(made: Sequence[Decision]) -> list[Tenure]:
    return [each.tenure for each in made if isinstance(each, Rent)]


def test_a_calm_market_fills_what_is_needed_and_leaves_the_spare_slot_empty() -> None:
    made = decided(seen(offers(6), hosts=rough(0.001)))
    assert rents(made) == [Tenure.INTERRUPTIBLE] * 3
    assert isinstance(made[3], Hold)
    assert made[3].reason.code == "spare_not_worth"


def test_a_rough_market_makes_the_spare_slot_worth_its_price() -> None:
    assert rents(decided(seen(offers(6), hosts=rough(0.1)))) == [Tenure.INTERRUPTIBLE] * 4


def test_without_spare_slots_all_are_needed() -> None:
    assert rents(decided(seen(offers(6), hosts=rough(0.001)), spare_slots=0)) == [Tenure.INTERRUPTIBLE] * 4


def test_a_spare_slot_that_pays_no_more_is_released_while_enough_others_run() -> None:
    (made,) = [each for each in decided(seen(offers(1), leases(4), hosts=rough(0.001))) if not isinstance(each, Hold)]
    assert isinstance(made, Release)
    assert made.reason.code == "spare_not_worth"


def test_a_spare_slot_stays_while_the_others_only_start() -> None:
    held = leases(4)
    starting = [msgspec.structs.replace(each, state=LeaseState.STARTING, run_since=None) for each in held[:2]]
    made = decided(seen(offers(1), [*starting, *held[2:]], hosts=rough(0.001)))
    assert not any(isinstance(each, Release) for each in made)


def test_a_spare_slot_that_serves_stays_while_others_that_run_are_not_ready() -> None:
    ready = Readiness(ReadySign.PORT, port=8000)
    held = leases(4)
    loading = [msgspec.structs.replace(each, run_since=AGO(minutes=3)) for each in held[:2]]
    serving = [msgspec.structs.replace(each, ready_since=AGO(hours=8)) for each in held[2:]]
    made = decided(seen(offers(1), [*loading, *serving], hosts=rough(0.001), ready=ready))
    assert not any(isinstance(each, Release) for each in made)
    done = [msgspec.structs.replace(each, ready_since=AGO(minutes=1)) for each in loading]
    made = decided(seen(offers(1), [*done, *serving], hosts=rough(0.001), ready=ready))
    assert len([each for each in made if isinstance(each, Release)]) == 1


def test_a_spare_slot_stays_while_the_market_of_the_others_does_not_answer() -> None:
    held = [*leases(3, market="runpod"), *leases(4)[3:]]
    fleet = seen(offers(1), held, hosts=rough(0.001))

    def given_up(*, is_fresh: bool) -> list[Decision]:
        other = builders.view(market="runpod", is_fresh=is_fresh)
        made = decided(msgspec.structs.replace(fleet, markets={**fleet.markets, "runpod": other}))
        return [each for each in made if isinstance(each, Release)]

    assert given_up(is_fresh=False) == []
    (gone,) = given_up(is_fresh=True)
    assert isinstance(gone, Release)
    assert gone.lease.market == "vast"


@pytest.mark.parametrize("cause", [Cause.CONTAINER_EXIT, Cause.EXTERNAL_STOP])
@pytest.mark.parametrize("running", [2, 3])
def test_what_ended_by_itself_or_by_hand_cools_off_where_it_stands(cause: Cause, running: int) -> None:
    """A container that only crashes would be put on a new host minute after minute, each paid for an image."""
    held = leases(running + 1)
    gone = msgspec.structs.replace(
        held[running], state=LeaseState.PAUSED, interrupted_by=cause, paused_by_us=True, state_since=AGO(minutes=1)
    )
    made = decided(seen(offers(6), [*held[:running], gone], hosts=rough(0.001)))
    assert isinstance(made[running], Hold)
    assert made[running].reason.code == "cool_off"


def test_where_nothing_interruptible_is_left_on_demand_is_rented_at_once() -> None:
    none = offers(6, floor=None)
    assert rents(decided(seen(none), fallback_after=timedelta(hours=5))) == [Tenure.ON_DEMAND] * 3
    assert rents(decided(seen(none, kind=WorkloadKind.BATCH), fallback_after=timedelta(hours=5))) == []


def test_on_demand_that_is_dearer_than_the_lack_is_not_rented() -> None:
    made = decided(seen(offers(6, floor=None)), short_worth=0.5)
    assert rents(made) == []
    assert {each.reason.code for each in made} == {"no_offer"}


@pytest.mark.parametrize(("value", "rented"), [("0.30", 0), ("0.60", 3)])
def test_an_hour_with_too_few_costs_what_all_slots_are_worth_unless_the_number_says_more(
    value: str, rented: int
) -> None:
    none = seen(offers(6, floor=None), value=value)
    assert len(rents(decided(none))) == rented
    assert len(rents(decided(none, short_worth=24.0))) == 3


def test_a_lost_slot_is_replaced_where_the_market_has_room() -> None:
    held = leases(3)
    gone = msgspec.structs.replace(
        held[0], state=LeaseState.PAUSED, interrupted_by=Cause.OUTBID, state_since=AGO(minutes=1), paused_by_us=True
    )
    made = decided(seen(offers(3), [gone, *held[1:]], hosts=rough(0.001)))
    (rent,) = [each for each in made if isinstance(each, Rent)]
    assert (rent.slot.index, rent.tenure) == (0, Tenure.INTERRUPTIBLE)


def test_a_lost_spare_slot_is_given_up_and_not_put_on_demand() -> None:
    held = leases(4)
    gone = msgspec.structs.replace(
        held[3], state=LeaseState.PAUSED, interrupted_by=Cause.OUTBID, state_since=AGO(hours=1)
    )
    (made,) = [
        each for each in decided(seen(offers(1), [*held[:3], gone], hosts=rough(0.001))) if not isinstance(each, Hold)
    ]
    assert isinstance(made, Release)
    assert made.lease.slot.index == 3


def test_a_lost_slot_waits_where_on_demand_is_dearer_than_the_lack() -> None:
    held = leases(3)
    gone = [
        msgspec.structs.replace(each, state=LeaseState.PAUSED, interrupted_by=Cause.OUTBID, state_since=AGO(hours=1))
        for each in held
    ]
    made = decided(seen(offers(6, floor=None), gone, slots=3), spare_slots=0, short_worth=0.5)
    assert Tenure.ON_DEMAND not in rents(made)
    again = decided(seen(offers(6, floor=None), gone, slots=3), spare_slots=0)
    assert not all(isinstance(each, Hold) for each in again)


def test_on_demand_is_left_for_a_bid_that_is_safe_enough() -> None:
    held = leases(3, tenure=Tenure.ON_DEMAND, gpu_rate=builders.per_hour("0.80"))
    calm = decided(seen(offers(3), held, hosts=rough(0.001)))
    assert rents(calm) == [Tenure.INTERRUPTIBLE] * 3
    wild = decided(seen(offers(3), held, hosts=rough(20.0)))
    assert rents(wild) == []


@pytest.mark.parametrize("worth", [0.0, 24.0, 10_000.0])
def test_what_runs_and_is_enough_is_left_alone(worth: float) -> None:
    made = decided(seen(offers(1), leases(3), hosts=rough(0.001)), short_worth=worth)
    assert all(isinstance(each, Hold) for each in made)


STATES: dict[str, dict[str, Any]] = {
    "running": {},
    "starting": {"state": LeaseState.STARTING, "run_since": None},
    "lost": {"state": LeaseState.PAUSED, "interrupted_by": Cause.OUTBID, "state_since": AGO(minutes=2)},
    "on_demand": {"tenure": Tenure.ON_DEMAND, "gpu_rate": builders.per_hour("0.40")},
}


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([*STATES, "empty"]), min_size=4, max_size=4),
    st.integers(0, 5),
    st.floats(0.0, 5.0),
    st.floats(0.0, 200.0),
    st.integers(0, 3),
)
def test_nothing_that_runs_is_given_up_before_enough_others_run(
    states: list[str], count: int, losses: float, worth: float, spare: int
) -> None:
    each = [(lease, state) for lease, state in zip(leases(4), states, strict=True) if state != "empty"]
    held = [msgspec.structs.replace(lease, **STATES[state]) for lease, state in each]
    made = decided(seen(offers(count), held, hosts=rough(losses)), short_worth=worth, spare_slots=spare)
    gone = {one.lease.lease_id for one in made if isinstance(one, Release)}
    running = [lease for lease in held if lease.state is LeaseState.RUNNING]
    if any(lease.lease_id in gone for lease in running):
        assert len([lease for lease in running if lease.lease_id not in gone]) >= 4 - spare
    assert len([one for one in made if isinstance(one, Rent)]) <= 4


# --- a target ---------------------------------------------------------------------------------------------------------
def lived(*days: float) -> dict[str, WarmTime]:
    """A record of days, each with its hours short."""
    stretches = (Stretch(number, 24 * HOUR, int(short * HOUR)) for number, short in enumerate(days))
    return {"train": WarmTime("train", NOW, stretches=tuple(stretches))}


def test_a_target_finds_the_worth_from_what_was_seen() -> None:
    none = offers(6, floor=None)
    # At 50 % a calm week makes an hour short cheaper than on demand; a bad one does not.
    assert rents(decided(seen(none, warm=lived(*[0.0] * 7)), target=0.5)) == []
    assert rents(decided(seen(none, warm=lived(*[24.0] * 7)), target=0.5)) == [Tenure.ON_DEMAND] * 3


def test_a_target_outranks_what_an_hour_is_worth() -> None:
    none = seen(offers(6, floor=None), value="0.30")
    assert rents(decided(none)) == []
    assert rents(decided(none, target=0.99)) == [Tenure.ON_DEMAND] * 3


def test_each_decision_by_a_target_names_it_and_what_was_achieved() -> None:
    made = decided(seen(offers(6), hosts=rough(0.001), warm=lived(0.48, 0.0)), target=0.99)
    assert len(made) == 4
    assert all("a target of 0.99 warm, 0.9900 achieved in 48 h" in each.reason.sentence for each in made)
    (plain, *_) = decided(seen(offers(6), hosts=rough(0.001), warm=lived(0.48, 0.0)))
    assert "target" not in plain.reason.sentence


def test_a_bad_record_pays_for_what_is_safer() -> None:
    fleet = seen(offers(6), hosts=rough(0.03))
    calm = msgspec.structs.replace(fleet, warm=lived(*[0.0] * 10))
    bad = msgspec.structs.replace(fleet, warm=lived(*[2.0] * 10))
    assert rents(decided(calm, target=0.99)) == [Tenure.INTERRUPTIBLE] * 3
    assert rents(decided(bad, target=0.99)) == [Tenure.ON_DEMAND] * 3
