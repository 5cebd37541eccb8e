"""Facts of a strategy's numbers for a person: value, unit, range, shipped value, and whether a file changed it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import annotated_types
from pydantic.fields import FieldInfo

from agent.config import problems

if TYPE_CHECKING:
    from agent.decide.strategy import Tuned

UNITS: Mapping[str, str] = {
    "most_losses": "losses per slot and hour",
    "short_worth": "hours of all slots on demand",
    "target": "share of the time",
}
"""Units of numbers whose type does not say them."""
MOST_SHARE = 10.0
"""A fraction with a highest value of at most this is a share. The comment of the shipped file says of what."""


@dataclass(frozen=True, slots=True)
class NumberFacts:
    """One number of a strategy, for a person."""

    key: str
    value: Any
    """The value as in a file: durations such as "45m"."""
    unit: str
    span: str
    """The range, such as "0 to 4"; empty if only the type bounds the number."""
    shipped: Any
    """The shipped value."""

    @property
    def is_changed(self) -> bool:
        """Whether the value differs from the shipped one."""
        return bool(self.value != self.shipped)

    @property
    def line(self) -> str:
        """The number as a line of TOML, with its other facts as the comment."""
        about = ", ".join(part for part in (self.unit, self.span) if part)
        default = f"CHANGED, the default is {problems.literal(self.shipped)}" if self.is_changed else "the default"
        return f"{self.key} = {problems.literal(self.value)}  # {about}; {default}"


def of(tuned: "Tuned") -> Iterator[NumberFacts]:
    """Yield the facts of every number, in the order of the shipped file."""
    from agent import strategy_files

    shipped = strategy_files.load()[strategy_files.base(tuned)].params
    for key, field in type(tuned.params).model_fields.items():
        value, default = getattr(tuned.params, key), getattr(shipped, key)
        yield NumberFacts(key, as_written(value), _unit(key, field), _span(field), as_written(default))


def as_written(value: Any) -> Any:  # noqa: ANN401 - whatever a strategy reckons with
    """Return a number as in its file: durations such as "45m"."""
    return problems.duration_text(value) if isinstance(value, timedelta) else value


def _unit(key: str, field: FieldInfo) -> str:
    from agent.decide.strategy import number_type

    if key in UNITS:
        return UNITS[key]
    if field.annotation is bool:
        return "switch"
    if field.annotation is timedelta:
        return "duration"
    if key.endswith("_hours"):
        return "hours"
    high = _bounds(field)[1]
    if number_type(field)[0] is float and high is not None and high[0] <= MOST_SHARE:
        return "share"
    return "count" if field.annotation is int else "number"


def _span(field: FieldInfo) -> str:
    from agent.decide.strategy import number_type

    low, high = _bounds(field)
    begins = "" if low is None else f"{'above ' if low[1] else ''}{low[0]:g}"
    ends = "" if high is None else f"{'below ' if high[1] else ''}{high[0]:g}"
    or_auto = ' or "auto"' if number_type(field)[0] is not field.annotation else ""
    return f"{begins or 'any'} to {ends or 'any'}{or_auto}" if begins or ends else ""


def _bounds(field: FieldInfo) -> tuple[tuple[float, bool] | None, tuple[float, bool] | None]:
    """Return the lower and the upper bound of a number, each with whether it is excluded."""
    from agent.decide.strategy import number_type

    low: tuple[float, bool] | None = None
    high = _checked_bound(field)
    for each in number_type(field)[1]:
        if isinstance(each, annotated_types.Ge | annotated_types.Gt):
            low = _bound(
                each.ge if isinstance(each, annotated_types.Ge) else each.gt, isinstance(each, annotated_types.Gt)
            )
        elif isinstance(each, annotated_types.Le | annotated_types.Lt):
            high = _bound(
                each.le if isinstance(each, annotated_types.Le) else each.lt, isinstance(each, annotated_types.Lt)
            )
    return low, high


def _checked_bound(field: FieldInfo) -> tuple[float, bool] | None:
    """Return the upper bound that a validator checks: no search of numbers goes by it, so it is only in the schema."""
    extra = field.json_schema_extra
    most = extra.get("maximum") if isinstance(extra, Mapping) else None
    return _bound(most, is_excluded=False) if isinstance(most, float) else None


def _bound(number: Any, is_excluded: bool) -> tuple[float, bool]:  # noqa: ANN401 - as annotated_types has it
    return float(number), is_excluded
