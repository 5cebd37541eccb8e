"""The searchable numbers of a strategy, with their bounds, from the types of its Params.

A number is searched between the bounds that its field declares (ge, gt, le, lt), a duration between zero and several
times the shipped one, and a switch both ways. Numbers without two bounds, texts, lists and tables are not searched. The
axis of a number is bent so that the shipped number is in its middle: bounds are often far from any sensible number, and
an even search between 0 and 10 would hardly try 0.1.

Invariants:
1. The value of a place is within the bounds and has three digits: with fewer values, fewer are good by luck.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import annotated_types
import pydantic
from pydantic.fields import FieldInfo

from agent.decide.strategy import AUTO, NEVER, Auto, Params, number_type

DURATION_TIMES = 8
"""The multiple of the shipped duration up to which a duration is searched."""
LONGEST = timedelta(days=1)
"""The upper bound if nothing or "never" is shipped."""
DIGITS = 3
MINUTE = 60
_FAR = math.log(999.0)

Value = bool | int | float | timedelta


@dataclass(frozen=True, slots=True)
class Axis:
    """One number: its bounds, whether they are included, the shipped value. `of` is bool, int, float or timedelta.

    A duration's bounds are in seconds.
    """

    key: str
    of: type
    low: float
    high: float
    shipped: float
    excludes_low: bool = False
    excludes_high: bool = False

    def value(self, place: float) -> Value:
        """Return the value at a place from 0 to 1 on the axis."""
        if self.of is bool:
            return place >= 0.5  # noqa: PLR2004 - the middle
        bend = self._bend
        share = place if bend == 0 else math.expm1(bend * place) / math.expm1(bend)
        return self._finished(self.low + (self.high - self.low) * min(max(share, 0.0), 1.0))

    def place(self, number: float) -> float:
        """Return the place of a number on the axis."""
        if self.of is bool:
            return float(number)
        share, bend = (number - self.low) / (self.high - self.low), self._bend
        return min(max(share if bend == 0 else math.log1p(share * math.expm1(bend)) / bend, 0.0), 1.0)

    @property
    def _bend(self) -> float:
        share = (self.shipped - self.low) / (self.high - self.low)
        return 0.0 if share in {0.0, 0.5, 1.0} else 2 * min(max(math.log(1 / share - 1), -_FAR), _FAR)

    def _finished(self, number: float) -> Value:
        if self.of is timedelta:
            return timedelta(seconds=round(number / MINUTE) * MINUTE if number > 10 * MINUTE else round(number))
        if self.of is int:
            return min(max(round(number), math.ceil(self.low + self.excludes_low)), int(self.high - self.excludes_high))
        return self._within(float(f"{number:.{DIGITS}g}"))

    def _within(self, number: float) -> float:
        step = (self.high - self.low) / 1000
        low = self.low + step if self.excludes_low else self.low
        return min(max(number, low), self.high - step if self.excludes_high else self.high)


def axes(params: Params, keys: Collection[str] | None = None) -> tuple[Axis, ...]:
    """Return the axes of these numbers, or of the named ones.

    Raises:
        ValueError: a named key does not exist or cannot be searched, or there is nothing to search.
    """
    found = (axis for key, info in type(params).model_fields.items() if (axis := _axis(key, info, params)))
    by_key = {axis.key: axis for axis in found if _is_free(axis, params)}
    unknown = sorted(set(keys or ()) - by_key.keys())
    if unknown or not by_key:
        can = ", ".join(by_key) or "none"
        raise ValueError(
            f"{', '.join(unknown) or 'these numbers'} cannot be searched; numbers with two bounds can: {can}"
        )
    return tuple(axis for key, axis in by_key.items() if keys is None or key in keys)


def _is_free(axis: Axis, params: Params) -> bool:
    """Return whether a number may be set beside the others: `short_worth` of `hedged` may not beside a target."""
    try:
        applied(params, {axis.key: axis.value(0.5)})
    except pydantic.ValidationError:
        return False
    return True


def values(searched: Collection[Axis], places: Mapping[str, float]) -> dict[str, Value]:
    """Return the values at these places."""
    return {axis.key: axis.value(places[axis.key]) for axis in searched}


def numbers(searched: Collection[Axis], params: Params) -> dict[str, float]:
    """Return the numbers of other params on these axes. A duration is in seconds."""
    present = {axis.key: _present(params, axis.key) for axis in searched}
    return {
        key: (LONGEST if value == NEVER else value).total_seconds() if isinstance(value, timedelta) else float(value)
        for key, value in present.items()
    }


def _present(params: Params, key: str) -> Value:
    value: Value | Auto = getattr(params, key)
    return params.unvalued[key] if isinstance(value, str) else value


def applied(params: Params, changed: Mapping[str, Value]) -> Params:
    """Return these numbers with some of them changed.

    Raises:
        pydantic.ValidationError: the numbers contradict each other.
    """
    return type(params).model_validate({**params.model_dump(), **changed}, strict=True)


def _axis(key: str, info: FieldInfo, params: Params) -> Axis | None:
    shipped = getattr(params, key)
    annotation, _ = number_type(info)
    if info.annotation is bool:
        return Axis(key, bool, 0.0, 1.0, float(shipped))
    if info.annotation is timedelta:
        at = LONGEST if shipped == NEVER else shipped
        most = DURATION_TIMES * at if at and at != LONGEST else LONGEST
        return Axis(key, timedelta, 0.0, most.total_seconds(), at.total_seconds())
    low, high = _bound(info, "ge", "gt"), _bound(info, "le", "lt")
    if annotation not in {int, float} or low is None or high is None or low[0] >= high[0]:
        return None
    of = int if annotation is int else float
    middle = params.unvalued[key] if shipped == AUTO else float(shipped)
    return Axis(key, of, low[0], high[0], middle, low[1], high[1])


def _bound(info: FieldInfo, closed: str, open_: str) -> tuple[float, bool] | None:
    kinds: Any = (annotated_types.Ge, annotated_types.Gt, annotated_types.Le, annotated_types.Lt)
    for each in number_type(info)[1]:
        if isinstance(each, kinds):
            for name in (closed, open_):
                if hasattr(each, name):
                    return float(getattr(each, name)), name == open_
    return None
