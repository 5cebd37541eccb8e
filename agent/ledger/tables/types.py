"""The conversion of our values to SQLite columns.

1. STRICT tables have only INTEGER, REAL, TEXT and BLOB, so every type here is stored as one of these.
2. A read gives the written value, to the microsecond and the micro-dollar.
"""

import datetime as dt
import json
from collections.abc import Callable
from enum import Enum
from typing import Any, Generic, TypeVar

import sqlalchemy as sa

from agent.domain.money import Usd, UsdPerHour

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_HOUR = dt.timedelta(hours=1)
LONGEST_TEXT = 2000
"""Text of vendors gets into sentences and outcomes. Longer text is cut, so that no answer can fill the disk."""

_JSON = json.JSONEncoder(sort_keys=True)
"""Made once: `json.dumps` makes one a call where the keys are sorted."""

V = TypeVar("V")

Query = sa.Select[*tuple[Any, ...]]
"""A query of any columns. The modules of the tables convert its rows to values."""


def micros(value: dt.datetime) -> int:
    """Return whole microseconds since the epoch.

    Raises:
        ValueError: the time has no zone.
    """
    if value.tzinfo is None:
        raise ValueError("a time in the ledger needs a zone")
    return (value - EPOCH) // _MICROSECOND


def clean(text: str) -> str:
    """Return text that SQLite can store: bounded, no lone surrogates, no NUL (it ends a text in other tools)."""
    return text[:LONGEST_TEXT].encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


class _Converted(sa.types.TypeDecorator[V], Generic[V]):
    """A value stored in a column type of STRICT tables; None is NULL."""

    impl: Any = sa.Integer

    def __init_subclass__(cls) -> None:
        # SQLAlchemy reads it from the class itself; without it, it compiles every statement again.
        cls.cache_ok = True

    def to_column(self, value: V) -> int | str:
        """Return the stored form of a value."""
        raise NotImplementedError

    def from_column(self, stored: Any) -> V:  # noqa: ANN401 - an integer or a text, as the subclass wrote it
        """Return the value of a stored form."""
        raise NotImplementedError

    def process_bind_param(self, value: V | None, dialect: sa.Dialect) -> int | str | None:
        """Write."""
        del dialect
        return None if value is None else self.to_column(value)

    def bind_processor(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, dialect: sa.Dialect
    ) -> Callable[[V | None], int | str | None]:
        """Return the conversion of parameters; SQLAlchemy's own version would call it through another function."""
        del dialect
        to_column = self.to_column
        return lambda value: None if value is None else to_column(value)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> V | None:  # noqa: ANN401 - as from_column
        """Read."""
        del dialect
        return None if value is None else self.from_column(value)


class UtcMicros(_Converted[dt.datetime]):
    """An aware UTC time as microseconds since the epoch."""

    def to_column(self, value: dt.datetime) -> int:
        """Return microseconds."""
        return micros(value)

    def from_column(self, stored: int) -> dt.datetime:
        """Return the time in UTC."""
        return EPOCH + stored * _MICROSECOND


class UtcHour(_Converted[dt.datetime]):
    """A full UTC hour as hours since the epoch: three bytes instead of eight for microseconds."""

    def to_column(self, value: dt.datetime) -> int:
        """Return hours."""
        return (value - EPOCH) // _HOUR

    def from_column(self, stored: int) -> dt.datetime:
        """Return the beginning of the hour."""
        return EPOCH + stored * _HOUR


class MicroUsd(_Converted[Usd]):
    """An amount as whole micro-dollars."""

    def to_column(self, value: Usd) -> int:
        """Return micro-dollars."""
        return value.micros

    def from_column(self, stored: int) -> Usd:
        """Return the amount."""
        return Usd(stored)


class MicroUsdPerHour(_Converted[UsdPerHour]):
    """A rate as whole micro-dollars per hour."""

    def to_column(self, value: UsdPerHour) -> int:
        """Return micro-dollars per hour."""
        return value.micros

    def from_column(self, stored: int) -> UsdPerHour:
        """Return the rate."""
        return UsdPerHour(stored)


class Flag(_Converted[bool]):
    """True or false as 1 or 0."""

    def to_column(self, value: bool) -> int:  # noqa: FBT001 - a value on its way into a column
        """Return 1 or 0."""
        return int(value)

    def from_column(self, stored: int) -> bool:
        """Return whether it is not 0."""
        return stored != 0


class DayText(_Converted[dt.date]):
    """A UTC day as 2026-11-21, so that a month is a prefix."""

    impl = sa.Text

    def to_column(self, value: dt.date) -> str:
        """Return the ISO form."""
        return value.isoformat()

    def from_column(self, stored: str) -> dt.date:
        """Return the day."""
        return dt.date.fromisoformat(stored)


class CleanText(_Converted[str]):
    """Free text that may come from a vendor: see `clean`."""

    impl = sa.Text

    def to_column(self, value: str) -> str:
        """Return the bounded text."""
        return clean(value)

    def from_column(self, stored: str) -> str:
        """Return the text as it is."""
        return stored


class JsonText(_Converted[Any]):
    """Any JSON value as text with sorted keys, so that equal values have equal bytes."""

    impl = sa.Text

    def to_column(self, value: object) -> str:
        """Return the JSON."""
        return _JSON.encode(value)

    def from_column(self, stored: str) -> object:
        """Return the value."""
        return json.loads(stored)


class RatesText(_Converted[tuple[UsdPerHour, ...]]):
    """A few rates in order, as a JSON list of micro-dollars."""

    impl = sa.Text

    def to_column(self, value: tuple[UsdPerHour, ...]) -> str:
        """Return the JSON."""
        return json.dumps([rate.micros for rate in value])

    def from_column(self, stored: str) -> tuple[UsdPerHour, ...]:
        """Return the rates."""
        return tuple(UsdPerHour(amount) for amount in json.loads(stored))


class EnumText(_Converted[Enum]):
    """A member of an enumeration as its value."""

    impl = sa.Text

    def __init__(self, members: type[Enum]) -> None:
        super().__init__()
        self.members = members

    def to_column(self, value: Enum) -> str:
        """Return the value of the member."""
        return str(value.value)

    def from_column(self, stored: str) -> Enum:
        """Return the member."""
        return self.members(stored)
