"""The market's prices -> ours, exactly: the text "$15.60", a number of cents, and the prices of a pool.

Invariants:
1. A price that is missing, absurd or no number is None, never zero.
2. The price to win is not the spot price: a bid between the spot price and the lowest winning bid loses, and becomes
   the new spot price. Without a figure for it and without free capacity it is unknown.
3. The lowest winning bid shows no price to win if it is our own: the other winning bids are not shown.
"""

import re
from collections.abc import Callable, Collection
from decimal import Decimal

import msgspec

from agent.domain import money
from agent.domain.money import UsdPerHour
from agent.markets import tolerant_rows

_MOST_DOLLARS = 100_000
"""Dollars per hour for one machine above which a price is absurd."""
_DOLLARS = re.compile(r"\$?(\d{1,3}(?:,\d{3}){1,2}|\d{1,9})(\.\d{1,9})?")
_CENTS_A_DOLLAR = 100
_MICROS_A_CENT = money.MICROS // _CENTS_A_DOLLAR
CENT = UsdPerHour(_MICROS_A_CENT)


def of_text(written: str | None) -> UsdPerHour | None:
    """Return the rate of a text such as "$15.60", or None."""
    match = _DOLLARS.fullmatch((written or "").strip())
    if match is None:
        return None
    return _bounded(match[1].replace(",", "") + (match[2] or ""), money.per_hour)


def of_cents(cents: float | None) -> UsdPerHour | None:
    """Return the rate of a number of cents, or None, also for none at all; a comparison with NaN is false."""
    if cents is None or not 0 < cents <= _MOST_DOLLARS * _CENTS_A_DOLLAR:
        return None
    return money.per_hour_up(Decimal(str(cents)) / _CENTS_A_DOLLAR)


def text(rate: UsdPerHour) -> str:
    """Return the rate as the market takes it, in whole cents.

    It is rounded down: floors are whole cents, so the text still wins where the rate does, and it is never dearer.
    """
    cents = rate.micros // _MICROS_A_CENT
    return f"${cents // _CENTS_A_DOLLAR}.{cents % _CENTS_A_DOLLAR:02}"


def _bounded(dollars: str, read: Callable[[str], UsdPerHour]) -> UsdPerHour | None:
    rate = read(dollars)
    return rate if rate.micros <= _MOST_DOLLARS * money.MICROS else None


class Prices(msgspec.Struct):
    """The prices of one instance type in one region, for a whole machine, in cents per hour."""

    spot_price_cents: float | None = None
    minimum_price_cents: float | None = None
    lowest_allocated_bid_cents: float | None = None
    dynamic_win_price_cents: float | None = None
    available_capacity: float | None = None

    @property
    def paid(self) -> UsdPerHour | None:
        """The price that each winner pays now, or None if the market does not show it."""
        return of_cents(self.spot_price_cents)

    def to_win(self, own: Collection[UsdPerHour] = ()) -> UsdPerHour | None:
        """Return the lowest bid that would win one machine at the next auction, or None if it is not known.

        `own` are limits of bids of ours that hold machines in this pool: to outbid one of them wins nothing.
        """
        least, named = of_cents(self.minimum_price_cents), self._named(own)
        if named is None and self._has_room:
            named = self.paid or least
        if named is None or least is None:
            return named
        return max(named, least)

    @property
    def _has_room(self) -> bool:
        """Whether one more machine is free; our bids are for one."""
        return self.available_capacity is not None and self.available_capacity >= 1

    def _named(self, own: Collection[UsdPerHour]) -> UsdPerHour | None:
        """Return the price that the market names, itself or by the lowest bid that holds a machine."""
        dynamic = of_cents(self.dynamic_win_price_cents)
        if dynamic is not None:
            return dynamic
        lowest = of_cents(self.lowest_allocated_bid_cents)
        return None if lowest is None or lowest in own else lowest + CENT


def prices(raw: bytes) -> Prices:
    """Return the readable prices of an answer.

    Raises:
        Malformed: it is no JSON object.
    """
    return tolerant_rows.row(tolerant_rows.document(raw, "The price"), Prices, "The price")
