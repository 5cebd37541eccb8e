"""Whose an instance is: two answers prove it, two deny it, one alone does neither."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.facts import Alert, Fact, LeaseChanged, LeaseDisowned
from agent.decide.limits import limits
from agent.decide.moves import due_endings
from agent.decide.reconcile import ownership
from agent.decide.reconcile.pass_memory import Memory
from agent.domain.fleet import Fleet
from agent.domain.market.label import Label
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import Release
from tests.support import builders

OURS = builders.label(1)
FOREIGN = builders.label(1, fleet_id="0123456789ab")
SIBLING = builders.label(9)
FRESH = builders.lease(1, state=LeaseState.STARTING, proven_at=None)
shown = st.sampled_from([None, OURS, FOREIGN, SIBLING])


def world(held: Lease, listed: Label | None, looks: Any = None, *, is_fresh: bool = True, **changes: Any) -> Fleet:
    labels = {} if listed is None else {held.instance_id: listed}
    rows = (builders.instance(1, label="x"),)
    view = builders.view(instances=rows, labels=labels, looks=looks or {}, is_fresh=is_fresh)
    fleet = builders.fleet(leases=(), markets={"vast": view}, **changes)
    return Fleet(**{**{name: getattr(fleet, name) for name in fleet.__struct_fields__}, "leases": (held,)})


def kinds(facts: tuple[Fact, ...]) -> list[str]:
    return [type(fact).__name__ for fact in facts]


@given(listed=shown, looked=st.none() | shown.map(lambda label: {"1": label}), is_fresh=st.booleans())
def test_only_a_look_and_the_listing_together_prove(listed: Any, looked: Any, is_fresh: bool) -> None:
    owned = ownership.settle(world(FRESH, listed, looked, is_fresh=is_fresh), Memory())
    is_proven = is_fresh and listed == OURS and looked == {"1": OURS}
    assert any(lease.is_proven for lease in owned.leases) is is_proven
    assert (owned.to_look == {("vast", "1")}) is (not is_proven and bool(owned.leases))


def test_two_looks_in_two_cycles_prove_what_no_listing_shows() -> None:
    dark = world(FRESH, None, {"1": OURS}, is_fresh=False)
    first = ownership.settle(dark, Memory())
    assert not first.leases[0].is_proven
    second = ownership.settle(dark, Memory(label_looks=first.looks))
    assert second.leases[0].is_proven


@pytest.mark.parametrize("label", [None, FOREIGN])
def test_a_proof_that_the_ledger_could_not_take_is_kept_whatever_the_label_becomes(label: Label | None) -> None:
    seen = ownership.settle(world(FRESH, OURS, {"1": OURS}), Memory())
    assert seen.leases[0].is_proven
    again = ownership.settle(world(FRESH, label, {"1": label}), Memory(label_looks=seen.looks))
    assert again.leases[0].is_proven
    assert again.undecided == set()


def test_what_one_look_showed_to_be_ours_is_metered_whatever_its_label_becomes() -> None:
    seen = ownership.settle(world(FRESH, None, {"1": OURS}, is_fresh=False), Memory())
    after = ownership.settle(world(FRESH, FOREIGN, {"1": FOREIGN}), Memory(label_looks=seen.looks))
    assert after.leases == (FRESH,)
    assert after.undecided == set()
    assert after.to_look == {("vast", "1")}


@pytest.mark.parametrize("label", [None, FOREIGN, SIBLING])
def test_a_listing_and_a_look_that_deny_it_disown_it(label: Label | None) -> None:
    owned = ownership.settle(world(FRESH, label, {"1": label}), Memory())
    assert owned.leases == ()
    assert kinds(owned.facts) == ["LeaseDisowned", "Alert"]
    undecided = ownership.settle(world(FRESH, label), Memory())
    assert undecided.leases == (FRESH,)
    assert undecided.undecided == {FRESH.lease_id}


def test_the_label_of_its_rent_on_another_instance_disowns_it_at_once() -> None:
    rows = (builders.instance(1), builders.instance(2))
    view = builders.view(instances=rows, labels={"2": OURS})
    fleet = world(FRESH, None)
    fleet = Fleet(**{**{name: getattr(fleet, name) for name in fleet.__struct_fields__}, "markets": {"vast": view}})
    owned = ownership.settle(fleet, Memory())
    (fact, _) = owned.facts
    assert isinstance(fact, LeaseDisowned)
    assert "is on instance 2, not on 1" in fact.sentence


@given(listed=shown, is_fresh=st.booleans())
def test_a_proven_lease_is_estranged_while_a_fresh_listing_shows_another_label(listed: Any, is_fresh: bool) -> None:
    held = builders.lease(1)
    owned = ownership.settle(world(held, listed, is_fresh=is_fresh), Memory())
    (after,) = owned.leases
    assert after.is_proven
    assert after.is_estranged is (is_fresh and listed != OURS)
    assert any(isinstance(fact, Alert) for fact in owned.facts) is after.is_estranged
    again = ownership.settle(world(after, OURS), Memory())
    assert not again.leases[0].is_estranged
    assert all(isinstance(fact, LeaseChanged) for fact in again.facts)


def test_what_a_person_vouched_for_is_ours_whatever_its_label() -> None:
    held = builders.lease(1, vouched_at=builders.NOW)
    assert ownership.settle(world(held, None), Memory()).leases == (held,)
    assert ownership.why_untouched(held) == ""


@pytest.mark.parametrize(("is_held", "into"), [(False, ""), (True, " --into WORKLOAD/SLOT")])
def test_a_held_lease_whose_label_is_lost_is_adopted_into_a_slot(is_held: bool, into: str) -> None:
    """Its own slot may be filled, and the command without one was refused."""
    strayed = builders.lease(1, is_held=is_held, estranged_since=builders.NOW)
    keeps = f"`gpubid adopt {strayed.lease_id}{into}` if it is ours"
    assert keeps in ownership.why_untouched(strayed)
    (alert,) = ownership.settle(world(strayed, None), Memory()).facts
    assert isinstance(alert, Alert)
    assert keeps in alert.sentence


def test_nothing_is_due_of_what_is_not_proven_and_only_orders_of_what_is_estranged() -> None:
    failed = {"has_failed": True, "end_reason": "mismatch: it costs more"}
    releasing = {"state": LeaseState.RELEASING, "bills": builders.lease().bills}
    caps = limits.Limits()

    def orders(held: Lease) -> list[str]:
        fleet = builders.fleet(leases=(held,))
        found = due_endings.orders(due_endings.endings_now(fleet, caps))
        assert all(isinstance(order, Release) for order in found)
        return [order.reason.code for order in found]

    assert orders(builders.lease(1, **failed)) == ["mismatch"]
    assert orders(builders.lease(1, proven_at=None, **failed)) == []
    assert orders(builders.lease(1, estranged_since=builders.NOW, **failed)) == []
    assert orders(builders.lease(1, estranged_since=builders.NOW, end_reason="moved", **releasing)) == []
    assert orders(builders.lease(1, estranged_since=builders.NOW, end_reason="ordered", **releasing)) == [
        "release_again"
    ]
