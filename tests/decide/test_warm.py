"""Slots above the number, on demand and where: worked out by hand, and what must hold for any places."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide import losing, warm

TERMS = warm.Terms(slots=3, on_demand_price=3.0, short_worth=90.0, gap_hours=0.05, stay_hours=0.5, together=0.1)


def place(price: float = 1.0, hazard: float = 0.1, held: int = 0, room: int = 9) -> warm.Place:
    return warm.Place(price, hazard, hazard, held, room)


def test_without_extras_one_safe_place_is_better_than_three() -> None:
    # Any loss leaves too few: one place is lost a third as often as three are.
    chosen = warm.choose([place(), place(), place()], TERMS)
    assert (chosen.spots, chosen.on_demand) == ((3, 0, 0), 0)
    assert chosen.paid == pytest.approx(3.0)
    assert chosen.short == pytest.approx(0.1 * 0.05)


def test_an_extra_slot_is_held_when_it_saves_more_than_its_price() -> None:
    calm = dataclasses.replace(TERMS, together=0.0, gap_hours=0.01)
    worth = dataclasses.replace(calm, short_worth=900.0)
    held = [place(hazard=1.0, held=1) for _ in range(4)]
    # 900 x 0.01 x 1 = 9 without; 900 x 0.01 x 4 x 4 x 0.01 = 1.44 and 1 $/h with one more.
    dear = dataclasses.replace(worth, on_demand_price=30.0)
    chosen = warm.choose(held, dear)
    assert chosen.spots == (1, 1, 1, 1)
    assert chosen.paid == pytest.approx(4.0)
    assert chosen.short == pytest.approx(4 * 4 * 0.01 * 0.01)
    # 45 x 0.01 x 1 = 0.45 without: less than the price of one more.
    cheap = dataclasses.replace(calm, short_worth=45.0)
    assert sum(warm.choose(held, cheap).spots) == 3


def test_losses_that_come_together_make_an_extra_worth_less() -> None:
    held = [place(hazard=1.0, held=1) for _ in range(4)]
    terms = dataclasses.replace(TERMS, on_demand_price=30.0, short_worth=900.0, gap_hours=0.01)
    alone, together = (warm.choose(held, dataclasses.replace(terms, together=share)) for share in (0.0, 1.0))
    assert (sum(alone.spots), sum(together.spots)) == (4, 3)


def test_an_extra_is_worth_more_where_nothing_takes_the_others_along() -> None:
    terms = dataclasses.replace(TERMS, on_demand_price=30.0, short_worth=900.0, gap_hours=0.01, together=1.0)
    alike = [place(hazard=1.0, held=1) for _ in range(4)]
    apart = [dataclasses.replace(each, kin=str(index)) for index, each in enumerate(alike)]
    assert sum(warm.choose(alike, terms).spots) == 3
    chosen = warm.choose(apart, terms)
    assert chosen.spots == (1, 1, 1, 1)
    assert chosen.short == pytest.approx(4 * 4 * 0.01 * 0.01)


def test_a_spare_goes_to_another_kin_though_it_is_dearer_there() -> None:
    terms = dataclasses.replace(TERMS, slots=1, on_demand_price=30.0, short_worth=900.0, together=1.0, gap_hours=0.01)
    near, far = [place(hazard=1.0) for _ in range(7)], place(price=1.2, hazard=1.0)
    assert warm.choose([*near, far], terms).spots == (1, 0, 0, 0, 0, 0, 0, 0)
    far = dataclasses.replace(far, kin="far")
    assert warm.choose([*near, far], terms).spots == (1, 0, 0, 0, 0, 0, 0, 1)


def test_what_is_lost_too_often_is_left_for_on_demand() -> None:
    # 90 x 0.05 x 2 = 9 $/h short and 3 paid, against 9 on demand.
    assert warm.choose([place(hazard=2.0)], TERMS).on_demand == 3
    assert warm.choose([place(hazard=1.0)], TERMS).on_demand == 0


def test_a_place_that_becomes_safer_is_judged_by_its_outlook() -> None:
    young = warm.Place(price=1.0, hazard=2.0, outlook=0.5, held=0, room=9)
    assert warm.choose([young], TERMS).on_demand == 0


def test_a_start_must_pay_for_itself() -> None:
    held, other = place(held=3), place(price=0.99)
    assert warm.choose([held, other], TERMS).spots == (3, 0)
    assert warm.choose([held, place(price=0.5)], TERMS).spots == (0, 3)


def test_while_missing_on_demand_runs_unless_that_is_dearer_than_the_lack() -> None:
    terms = dataclasses.replace(TERMS, short_worth=6.0)
    assert [warm.cover(missing, terms) for missing in range(4)] == [0, 1, 2, 0]


def test_nothing_to_choose_from_is_on_demand() -> None:
    assert warm.choose([], TERMS) == warm.Choice((), 3, 9.0, 0.0)


places = st.lists(
    st.builds(
        warm.Place,
        price=st.floats(0.1, 5.0),
        hazard=st.floats(0.0, 5.0),
        outlook=st.floats(0.0, 5.0),
        held=st.integers(0, 3),
        room=st.integers(3, 5),
        kin=st.sampled_from("ab"),
    ),
    max_size=8,
)


@given(places, st.integers(1, 6), st.floats(0.0, 1000.0))
def test_a_choice_fits_the_rooms_and_leaves_nothing_out(found: list[warm.Place], slots: int, worth: float) -> None:
    terms = dataclasses.replace(TERMS, slots=slots, short_worth=worth)
    chosen = warm.choose(found, terms)
    assert chosen == warm.choose(found, terms)
    assert all(count <= each.room for count, each in zip(chosen.spots, found, strict=True))
    assert chosen.on_demand <= slots
    assert slots <= sum(chosen.spots) + chosen.on_demand <= max(slots + terms.most_extra, sum(p.held for p in found))


# --- losing ----------------------------------------------------------------------------------------------------------
def test_what_nothing_was_seen_of_is_worth_what_all_are() -> None:
    fresh, other = losing.Record(), losing.Record()
    first, second = losing.hazards([fresh, other], 0.0)
    assert first == second
    assert first == pytest.approx((losing.at_age(0.0), losing.ahead(0.0)))


def test_holding_on_makes_a_pool_safer_and_a_loss_less_safe() -> None:
    record, other = losing.Record(), losing.Record()
    for step in range(1, 11):
        record.held(step * 0.1, 0.1)
    held, beside = losing.hazards([record, other], 1.0)
    assert held[0] < losing.at_age(1.0)
    assert losing.at_age(0.0) > beside[0] > held[0]
    record.lost(1.1, 0.1, all_of_it=True)
    lost, after = losing.hazards([record, other], 1.1)
    assert lost[0] > held[0]
    assert after[0] > beside[0]


def test_what_was_seen_counts_half_after_its_half_life() -> None:
    record = losing.Record()
    record.lost(1.0, 1.0, all_of_it=True)
    record.empty(losing.HALF_LIFE_HOURS)
    assert record.losses == pytest.approx(0.5)


def test_the_outlook_is_the_mean_of_what_comes() -> None:
    steps = [losing.at_age(0.3 + losing.OUTLOOK_HOURS * (step + 0.5) / 4000) for step in range(4000)]
    assert losing.ahead(0.3) == pytest.approx(sum(steps) / 4000, rel=1e-5)
