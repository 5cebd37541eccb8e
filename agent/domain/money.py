"""Money as whole micro-dollars in USD; a float never holds a sum.

Invariants:
1. `Usd` and `UsdPerHour` contain an integer of micro-dollars (1 USD = 1,000,000).
2. Each rounding has a named direction: a price we offer rounds up, a charge rounds half up.
"""

import functools
import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Self

import msgspec

MICROS = 1_000_000
_HOUR_SECONDS = 3600


class Usd(msgspec.Struct, frozen=True, order=True, gc=False):
    """An amount in micro-dollars."""

    micros: int

    def __add__(self, other: Self) -> "Usd":
        return Usd(self.micros + other.micros)

    def __sub__(self, other: Self) -> "Usd":
        return Usd(self.micros - other.micros)

    def __str__(self) -> str:
        return _text(self.micros, places=4)

    @property
    def dollars(self) -> float:
        """The amount in dollars, for display and for estimates only."""
        return self.micros / MICROS


class UsdPerHour(msgspec.Struct, frozen=True, order=True, gc=False):
    """A rate in micro-dollars per hour."""

    micros: int

    def __add__(self, other: Self) -> "UsdPerHour":
        return UsdPerHour(self.micros + other.micros)

    def __sub__(self, other: Self) -> "UsdPerHour":
        return UsdPerHour(self.micros - other.micros)

    def __str__(self) -> str:
        return _text(self.micros, places=4) + "/h"

    @property
    def dollars(self) -> float:
        """The rate in dollars per hour, for display and for estimates only."""
        return self.micros / MICROS

    def scaled(self, factor: float) -> "UsdPerHour":
        """Return the rate times `factor`, rounded up to a whole micro-dollar."""
        return UsdPerHour(math.ceil(self.micros * factor - 1e-9))

    def over(self, seconds: float) -> Usd:
        """Return the cost of this rate over `seconds`, rounded half up."""
        return Usd(math.floor(self.micros * seconds / _HOUR_SECONDS + 0.5))


ZERO = Usd(0)
FREE = UsdPerHour(0)


def usd(dollars: float | str | Decimal) -> Usd:
    """Return an amount from dollars, rounded half up.

    Raises:
        ValueError: the input is no finite number.
    """
    return Usd(_micros(dollars, ROUND_HALF_UP))


def per_hour(dollars: float | str | Decimal) -> UsdPerHour:
    """Return a rate from dollars per hour, rounded half up to a micro-dollar.

    Raises:
        ValueError: the input is no finite number.
    """
    return UsdPerHour(_micros(dollars, ROUND_HALF_UP))


def per_hour_up(dollars: float | str | Decimal) -> UsdPerHour:
    """Return a rate from dollars per hour, rounded up, because a bid at a floor that was rounded down is refused.

    Raises:
        ValueError: the input is no finite number.
    """
    return UsdPerHour(_micros(dollars, ROUND_CEILING))


def rounded_up(rate: UsdPerHour, places: int) -> UsdPerHour:
    """Return the rate rounded up to `places` decimals of a dollar, as markets keep bids to few decimals."""
    step = 10 ** (6 - places)
    return UsdPerHour(-(-rate.micros // step) * step)


def total(amounts: Iterable[Usd]) -> Usd:
    """Return the sum of the amounts."""
    return Usd(sum(amount.micros for amount in amounts))


def total_rate(rates: Iterable[UsdPerHour]) -> UsdPerHour:
    """Return the sum of the rates."""
    return UsdPerHour(sum(rate.micros for rate in rates))


def _micros(dollars: float | str | Decimal, rounding: str) -> int:
    return _micros_of_float(dollars, rounding) if isinstance(dollars, float) else _rounded(dollars, rounding)


@functools.lru_cache(4096)
def _micros_of_float(dollars: float, rounding: str) -> int:
    """Return the micro-dollars of a number in an answer. They are cached, since listings repeat the same few prices."""
    return _rounded(str(dollars), rounding)


def _rounded(dollars: float | str | Decimal, rounding: str) -> int:
    try:
        value = Decimal(dollars)
        return int((value * MICROS).to_integral_value(rounding))
    except (InvalidOperation, OverflowError, ValueError) as error:
        raise ValueError(f"not an amount of money: {str(dollars)[:40]!r}") from error


def _text(micros: int, places: int) -> str:
    sign = "-" if micros < 0 else ""
    return f"{sign}${abs(micros) / MICROS:,.{places}f}"
