"""Slots above the number, on demand and by place: cases by hand, and properties for any places."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.pricing import loss_rate
from agent.decide.service import capacity_choice
from agent.domain.market.host import HostRecord

TERMS = capacity_choice.Terms(
    slots=3, on_demand_price=3.0, short_worth=90.0, gap_hours=0.05, stay_hours=0.5, together=0.1
)


def place(price: float = 1.0, hazard: float = 0.1, held: int = 0, room: int = 9) -> capacity_choice.Place:
    return capacity_choice.Place(price, hazard, hazard, held, room)


def test_without_extras_one_safe_place_is_better_than_three() -> None:
    # Any loss leaves too few: one place is lost a third as often as three are.
    chosen = capacity_choice.choose([place(), place(), place()], TERMS)
    assert (chosen.spots, chosen.on_demand) == ((3, 0, 0), 0)
    assert chosen.paid == pytest.approx(3.0)
    assert chosen.short == pytest.approx(0.1 * 0.05)


def test_an_extra_slot_is_held_when_it_saves_more_than_its_price() -> None:
    calm = dataclasses.replace(TERMS, together=0.0, gap_hours=0.01)
    worth = dataclasses.replace(calm, short_worth=900.0)
    held = [place(hazard=1.0, held=1) for _ in range(4)]
    # 900 x 0.01 x 1 = 9 without; 900 x 0.01 x 4 x 4 x 0.01 = 1.44 and 1 $/h with one more.
    dear = dataclasses.replace(worth, on_demand_price=30.0)
    chosen = capacity_choice.choose(held, dear)
    assert chosen.spots == (1, 1, 1, 1)
    assert chosen.paid == pytest.approx(4.0)
    assert chosen.short == pytest.approx(4 * 4 * 0.01 * 0.01)
    # 45 x 0.01 x 1 = 0.45 without: less than the price of one more.
    cheap = dataclasses.replace(calm, short_worth=45.0)
    assert sum(capacity_choice.choose(held, cheap).spots) == 3


def test_losses_that_come_together_make_an_extra_worth_less() -> None:
    held = [place(hazard=1.0, held=1) for _ in range(4)]
    terms = dataclasses.replace(TERMS, on_demand_price=30.0, short_worth=900.0, gap_hours=0.01)
    alone, together = (capacity_choice.choose(held, dataclasses.replace(terms, together=share)) for share in (0.0, 1.0))
    assert (sum(alone.spots), sum(together.spots)) == (4, 3)


def test_an_extra_is_worth_more_where_nothing_takes_the_others_along() -> None:
    terms = dataclasses.replace(TERMS, on_demand_price=30.0, short_worth=900.0, gap_hours=0.01, together=1.0)
    alike = [place(hazard=1.0, held=1) for _ in range(4)]
    apart = [dataclasses.replace(each, kin=str(index)) for index, each in enumerate(alike)]
    assert sum(capacity_choice.choose(alike, terms).spots) == 3
    chosen = capacity_choice.choose(apart, terms)
    assert chosen.spots == (1, 1, 1, 1)
    assert chosen.short == pytest.approx(4 * 4 * 0.01 * 0.01)


def test_a_spare_goes_to_another_kin_though_it_is_dearer_there() -> None:
    terms = dataclasses.replace(TERMS, slots=1, on_demand_price=30.0, short_worth=900.0, together=1.0, gap_hours=0.01)
    near, far = [place(hazard=1.0) for _ in range(7)], place(price=1.2, hazard=1.0)
    assert capacity_choice.choose([*near, far], terms).spots == (1, 0, 0, 0, 0, 0, 0, 0)
    far = dataclasses.replace(far, kin="far")
    assert capacity_choice.choose([*near, far], terms).spots == (1, 0, 0, 0, 0, 0, 0, 1)


def test_what_is_lost_too_often_is_left_for_on_demand() -> None:
    # 90 x 0.05 x 2 = 9 $/h short and 3 paid, against 9 on demand.
    assert capacity_choice.choose([place(hazard=2.0)], TERMS).on_demand == 3
    assert capacity_choice.choose([place(hazard=1.0)], TERMS).on_demand == 0


def test_a_place_that_becomes_safer_is_judged_by_its_outlook() -> None:
    young = capacity_choice.Place(price=1.0, hazard=2.0, outlook=0.5, held=0, room=9)
    assert capacity_choice.choose([young], TERMS).on_demand == 0


def test_a_start_must_pay_for_itself() -> None:
    held, other = place(held=3), place(price=0.99)
    assert capacity_choice.choose([held, other], TERMS).spots == (3, 0)
    assert capacity_choice.choose([held, place(price=0.5)], TERMS).spots == (0, 3)


def test_while_missing_on_demand_runs_unless_that_is_dearer_than_the_lack() -> None:
    terms = dataclasses.replace(TERMS, short_worth=6.0)
    assert [capacity_choice.cover(missing, terms) for missing in range(4)] == [0, 1, 2, 0]


def test_nothing_to_choose_from_is_on_demand() -> None:
    assert capacity_choice.choose([], TERMS) == capacity_choice.Choice((), 3, 9.0, 0.0)


places = st.lists(
    st.builds(
        capacity_choice.Place,
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
def test_a_choice_fits_the_rooms_and_leaves_nothing_out(
    found: list[capacity_choice.Place], slots: int, worth: float
) -> None:
    terms = dataclasses.replace(TERMS, slots=slots, short_worth=worth)
    chosen = capacity_choice.choose(found, terms)
    assert chosen == capacity_choice.choose(found, terms)
    assert all(count <= each.room for count, each in zip(chosen.spots, found, strict=True))
    assert chosen.on_demand <= slots
    assert slots <= sum(chosen.spots) + chosen.on_demand <= max(slots + terms.most_extra, sum(p.held for p in found))


# --- losing ----------------------------------------------------------------------------------------------------------
def held(hours: float, losses: float = 0.0, *, begin: float = 0.0) -> HostRecord:
    weighed = loss_rate.weighed(begin, begin + hours)
    return HostRecord("vast", "h1", market_losses=losses, bid_seconds=hours * 3600, weighed_hours=weighed)


def test_what_nothing_was_seen_of_is_worth_what_all_are() -> None:
    # 1.8 losses in 12 hours are assumed, as of the first four hours of stays.
    assert loss_rate.ordinary(HostRecord("", "")) * loss_rate.ahead(0.0) == pytest.approx(0.15)
    expected = (0.5 * loss_rate.at_age(2.0), 0.5 * loss_rate.ahead(2.0))
    assert loss_rate.expected(None, 0.5, 2.0) == loss_rate.expected(HostRecord("vast", "h1"), 0.5, 2.0) == expected


def test_holding_on_makes_a_place_and_all_others_safer_and_a_loss_less_safe() -> None:
    calm, lost, unseen = held(1.0), held(1.0, losses=1.0), loss_rate.ordinary(HostRecord("", ""))
    mean, after = loss_rate.ordinary(calm), loss_rate.ordinary(lost)
    assert mean < unseen < after
    for age in (0.0, 1.0):
        assert (
            loss_rate.expected(calm, mean, age)
            < loss_rate.expected(None, mean, age)
            < loss_rate.expected(None, unseen, age)
        )
        assert (
            loss_rate.expected(lost, after, age)
            > loss_rate.expected(None, after, age)
            > loss_rate.expected(None, unseen, age)
        )
    assert loss_rate.expected(calm, mean, 1.0) < loss_rate.expected(calm, mean, 0.0)


def test_as_many_hours_in_one_long_stay_tell_less_than_in_many_short_ones() -> None:
    long, short = held(20.0), HostRecord("vast", "h1", weighed_hours=20 * loss_rate.weighed(0.0, 1.0))
    assert loss_rate.expected(long, 1.0, 0.0)[0] > 2 * loss_rate.expected(short, 1.0, 0.0)[0]


def test_what_is_expected_is_the_posterior_mean_worked_out_by_hand() -> None:
    record = HostRecord("vast", "h1", market_losses=2.0, weighed_hours=3.0)
    # (1.8 + 2) / (12 x 0.8 ln(9) / 4 + 3) of all; (0.75 + 2) / (1 + 3) there at 0.75 of all, and 0.8 / (1.5 + 0.5)
    # losses an hour at one and a half.
    assert loss_rate.ordinary(record) == pytest.approx(3.8 / (2.4 * math.log(9.0) + 3))
    now, ahead = loss_rate.expected(record, 0.75, 1.5)
    assert now == pytest.approx(2.75 / 4 * 0.4)
    assert ahead == pytest.approx(2.75 / 4 * 0.8 * math.log(3.0) / 4)


def test_time_weighed_in_parts_is_time_weighed_whole() -> None:
    parts = loss_rate.weighed(0.0, 0.3) + loss_rate.weighed(0.3, 7.0)
    assert parts == pytest.approx(loss_rate.weighed(0.0, 7.0)) == pytest.approx(0.8 * math.log(15.0))


def test_the_outlook_is_the_mean_of_what_comes() -> None:
    steps = [loss_rate.at_age(0.3 + loss_rate.OUTLOOK_HOURS * (step + 0.5) / 4000) for step in range(4000)]
    assert loss_rate.ahead(0.3) == pytest.approx(sum(steps) / 4000, rel=1e-5)
