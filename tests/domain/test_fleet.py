"""The fleet: looking things up by slot, name and host."""

import random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from agent.domain.fleet import Fleet
from agent.domain.record.intent import IntentKind, IntentState
from agent.domain.record.lease import Lease, LeaseState
from tests.support import builders

SLOTS = [builders.slot("train", 0), builders.slot("train", 1), builders.slot("other", 0)]


@st.composite
def leases(draw: st.DrawFn) -> list[Lease]:
    return [
        builders.lease(
            number,
            slot=draw(st.sampled_from(SLOTS)),
            state=draw(st.sampled_from(list(LeaseState))),
            is_held=draw(st.booleans()),
            opened_at=builders.ago(hours=draw(st.integers(0, 3))),
        )
        for number in range(draw(st.integers(0, 12)))
    ]


@given(leases(), st.randoms())
def test_a_slots_leases_are_open_not_held_and_oldest_first(many: list[Lease], dice: random.Random) -> None:
    dice.shuffle(many)
    fleet = builders.fleet(leases=tuple(many))
    for place in SLOTS:
        wanted = [lease for lease in many if lease.slot == place and lease.is_open and not lease.is_held]
        assert list(fleet.leases_of(place)) == sorted(wanted, key=lambda lease: (lease.opened_at, lease.lease_id))


def test_a_slots_first_open_paying_intent_blocks_it() -> None:
    pause = builders.intent(1, kind=IntentKind.PAUSE)
    done = builders.intent(2, state=IntentState.CONFIRMED)
    rent, rebid = builders.intent(3), builders.intent(4, kind=IntentKind.REBID)
    fleet = builders.fleet(intents=(pause, done, rent, rebid))
    assert fleet.paying_intent(builders.slot()) is rent
    assert fleet.paying_intent(builders.slot("train", 1)) is None


def test_a_workload_is_found_by_name() -> None:
    fleet = builders.fleet(workloads=(builders.workload("a"), builders.workload("b", slots=2)))
    found = fleet.workload("b")
    assert found is not None
    assert found.slots == 2
    assert fleet.workload("c") is None


def test_offers_are_found_by_host() -> None:
    first, other, second = builders.offer(1), builders.offer(2), builders.offer(3, host_id="h1")
    view = builders.view(offers=(first, other, second))
    assert view.offers_on("h1") == (first, second)
    assert view.offers_on("elsewhere") == ()


def test_what_was_looked_up_is_not_carried_into_a_changed_fleet() -> None:
    fleet = builders.fleet(leases=(builders.lease(),))
    assert len(fleet.leases_of(builders.slot())) == 1
    changed: Fleet = msgspec.structs.replace(fleet, leases=())
    assert changed.leases_of(builders.slot()) == ()
    assert fleet == builders.fleet(leases=(builders.lease(),))
