"""Money is whole micro-dollars, and every rounding has a named direction."""

from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.domain import money
from agent.domain.money import Usd, UsdPerHour

micros = st.integers(-(10**12), 10**12)
rates = st.builds(UsdPerHour, st.integers(0, 10**9))
dollars = st.decimals(-(10**6), 10**6, allow_nan=False, places=9)


@given(micros, micros)
def test_sums_and_differences_are_exact(left: int, right: int) -> None:
    assert Usd(left) + Usd(right) == Usd(left + right)
    assert Usd(left) - Usd(right) == Usd(left - right)
    assert UsdPerHour(left) + UsdPerHour(right) - UsdPerHour(right) == UsdPerHour(left)
    assert (Usd(left) < Usd(right)) == (left < right)


@given(st.lists(micros))
def test_totals_add_up(many: list[int]) -> None:
    assert money.total(Usd(one) for one in many) == Usd(sum(many))
    assert money.total_rate(UsdPerHour(one) for one in many) == UsdPerHour(sum(many))


@given(dollars)
def test_dollars_round_half_up_and_floors_round_up(amount: Decimal) -> None:
    exact = amount * 1_000_000
    half_up = int(exact.to_integral_value(ROUND_HALF_UP))
    assert money.usd(amount) == Usd(half_up)
    assert money.per_hour(amount) == UsdPerHour(half_up)
    assert money.per_hour_up(amount) == UsdPerHour(int(exact.to_integral_value(ROUND_CEILING)))


@pytest.mark.parametrize(
    ("written", "expected"),
    [("0.1", 100_000), (0.3, 300_000), (0.2055556, 205_556), ("0.0000005", 1), ("1e2", 100_000_000), (3, 3_000_000)],
)
def test_what_is_written_is_what_is_meant(written: float | str, expected: int) -> None:
    assert money.usd(written).micros == expected


def test_a_floor_is_never_rounded_below_itself() -> None:
    assert money.per_hour_up("0.2000000001").micros == 200_001
    assert money.per_hour("0.2000000001").micros == 200_000


@pytest.mark.parametrize("nonsense", ["", "a lot", "NaN", "inf", float("nan"), float("-inf"), "1,5"])
def test_what_is_no_number_is_refused(nonsense: float | str) -> None:
    with pytest.raises(ValueError, match="not an amount of money"):
        money.usd(nonsense)


def test_a_refusal_quotes_no_more_than_forty_characters() -> None:
    with pytest.raises(ValueError, match=r"x{40}'$"):
        money.usd("x" * 1000)


@given(rates, st.floats(0, 10**7))
def test_a_charge_is_within_half_a_micro_dollar(rate: UsdPerHour, seconds: float) -> None:
    exact = Fraction(rate.micros) * Fraction(seconds) / 3600
    slack = Fraction(1, 2) + exact * Fraction(1, 10**12)
    assert abs(Fraction(rate.over(seconds).micros) - exact) <= slack


def test_a_charge_rounds_half_up() -> None:
    assert UsdPerHour(1).over(1800) == Usd(1)
    assert UsdPerHour(1).over(1799) == Usd(0)
    assert money.per_hour("0.36").over(10) == money.usd("0.001")


@given(rates, st.floats(0, 10))
def test_a_scaled_price_is_never_below_the_exact_one(rate: UsdPerHour, factor: float) -> None:
    exact = Fraction(rate.micros) * Fraction(factor)
    scaled = rate.scaled(factor).micros
    assert exact - Fraction(1, 10**6) <= scaled < exact + 1 + exact * Fraction(1, 10**12)


def test_scaling_forgives_the_noise_of_binary_fractions() -> None:
    # 1.1 * 100_000 is 110000.00000000001 in floats: that is no reason to bid one more.
    assert UsdPerHour(100_000).scaled(1.1) == UsdPerHour(110_000)


@given(rates, st.integers(0, 6))
def test_rounding_up_to_places_takes_the_next_step(rate: UsdPerHour, places: int) -> None:
    step = 10 ** (6 - places)
    found = money.rounded_up(rate, places).micros
    assert found % step == 0
    assert rate.micros <= found < rate.micros + step


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (Usd(1_234_567_890), "$1,234.5679"),
        (Usd(-500_000), "-$0.5000"),
        (money.FREE, "$0.0000/h"),
        (UsdPerHour(223), "$0.0002/h"),
    ],
)
def test_money_is_shown_to_four_places(amount: Usd | UsdPerHour, text: str) -> None:
    assert str(amount) == text


def test_dollars_are_for_display() -> None:
    assert Usd(250_000).dollars == 0.25
    assert UsdPerHour(250_000).dollars == 0.25
