"""Rows with an unreadable field: the field is left out and the row stays, because the instance exists.

The same holds inside: of an object or a list in a row, the readable fields and rows stay.

Without the row, the instance would look lost. If the row refused the whole listing, no listing could be read for as
long as the market sends that row, and every order to end something would wait.
"""

import json
import typing
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from agent.markets import market_errors, text

_T = TypeVar("_T", bound=msgspec.Struct)
_UNREADABLE = object()


def not_json(raw: bytes, what: str, error: Exception) -> market_errors.Malformed:
    """Return the error of an answer that is no JSON; its sentence says so if the answer is a web page."""
    if raw.lstrip()[:1] == b"<":
        fix = "check `url` in the market's table, and whether a proxy or a login page answers instead of the market"
        return market_errors.Malformed(f"{what} is a web page, not JSON; {fix}.")
    return market_errors.Malformed(f"{what} is no JSON ({text.clean(str(error))}); try again later.")


def document(raw: bytes, what: str) -> dict[str, object]:
    """Return a JSON object. NaN and Infinity are accepted: they are not JSON, but markets send them.

    Raises:
        Malformed: the text is no JSON object; `what` names the answer in the error.
    """
    try:
        decoded = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise not_json(raw, what, error) from None
    if not isinstance(decoded, dict):
        raise market_errors.Malformed(f"{what} is no JSON object; try again later.")
    return decoded


def rows(raw: bytes, key: str, what: str) -> list[Any]:
    """Return the rows of a list in a JSON object, unchecked.

    Raises:
        Malformed: there is no such list.
    """
    values = document(raw, what).get(key)
    if not isinstance(values, list):
        raise market_errors.Malformed(f"{what} has no list of {key}; try again later.")
    return values


def bare_rows(raw: bytes, what: str) -> list[Any]:
    """Return the rows of a JSON list, unchecked.

    Raises:
        Malformed: the text is no JSON list.
    """
    try:
        decoded = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise not_json(raw, what, error) from None
    if not isinstance(decoded, list):
        raise market_errors.Malformed(f"{what} is no JSON list; try again later.")
    return decoded


def readable(values: Iterable[object], kind: type[_T], what: str) -> Iterator[_T]:
    """Yield the readable rows of a catalogue: a dropped row loses no instance of ours."""
    for value in values:
        try:
            yield row(value, kind, what)
        except market_errors.Malformed:
            continue


def moment(stamp: str | None) -> datetime | None:
    """Return an ISO text as an instant in UTC; None if it is missing, unreadable or without a time zone."""
    try:
        at = datetime.fromisoformat(stamp or "")
        return at.astimezone(UTC) if at.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def row(values: object, kind: type[_T], what: str) -> _T:
    """Return a row without its unreadable fields.

    Raises:
        Malformed: the row is no object, or a required field cannot be read.
    """
    if not isinstance(values, dict):
        raise market_errors.Malformed(f"{what} has a row that is no object; it is refused.")
    try:
        return msgspec.convert(values, kind, strict=False)
    except (msgspec.ValidationError, ValueError, OverflowError, RecursionError):
        return _without_the_unreadable(values, kind, what)


def _without_the_unreadable(values: Mapping[str, object], kind: type[_T], what: str) -> _T:
    try:
        return msgspec.convert(_readable_fields(values, kind), kind, strict=False)
    except (msgspec.ValidationError, ValueError, OverflowError, RecursionError) as error:
        raise market_errors.Malformed(f"{what} has a row without a readable id: {text.clean(str(error))}") from None


def _readable_fields(values: Mapping[str, object], kind: type[msgspec.Struct]) -> dict[str, object]:
    fields = [field for field in msgspec.structs.fields(kind) if field.encode_name in values]
    parts = {field.encode_name: _readable_part(values[field.encode_name], field.type) for field in fields}
    return {name: part for name, part in parts.items() if part is not _UNREADABLE}


def _readable_part(value: object, kind: Any) -> object:  # noqa: ANN401 - a type
    """Return what can be read of a value: an object or a list keeps its other fields and rows."""
    if _is_readable(value, kind):
        return value
    for each in (kind, *typing.get_args(kind)):
        part: object = _UNREADABLE
        if isinstance(value, dict) and isinstance(each, type) and issubclass(each, msgspec.Struct):
            part = _readable_fields(value, each)
        elif isinstance(value, list) and typing.get_origin(each) is list:
            parts = [_readable_part(row, typing.get_args(each)[0]) for row in value]
            part = [row for row in parts if row is not _UNREADABLE]
        if part is not _UNREADABLE and _is_readable(part, each):
            return part
    return _UNREADABLE


def _is_readable(value: object, kind: object) -> bool:
    try:
        msgspec.convert(value, kind, strict=False)
    except (msgspec.ValidationError, ValueError, OverflowError, RecursionError):
        return False
    return True
