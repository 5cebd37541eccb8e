"""Lies about single fields. An answer is changed just before it is sent; the market itself never changes.

`field` is a word of the table below, or any key of the vendor at any depth of the answer ("disk_space", "gpu.count").
A key with a leading slash ("/status") is only at the top of an answer, or at the top of its rows if it is a list.
`how` is the kind of change ("set" by default), and `value` its argument. `instance` limits the lie to rows, or to
answers, of one instance.

| field | what it is | how |
|---|---|---|
| id, label, price, state, host, any key | of instances, of offers, of the reply to a rent | set, times, plus,
  string, nan, inf, minus, null, missing |
| date | the header Date | set (any text), plus (`value` seconds), missing (empty) |
| retry_after | the header Retry-After, on whatever status | set (any text or number), missing |
| next_cursor | the mark of a further page: `next_token` or `nextCursor` | set, null, missing |
| rows | the rows of lists | twice (each comes again as it is), twice_changed (again, with other figures and state) |

"string" turns a number into text and "minus" changes its sign. "times" and "plus" change only numbers. "nan" and "inf"
are written as NaN and Infinity, which are not valid JSON.
"""

import copy
import dataclasses
import datetime as dt
import email.utils
import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_FIGURES = ("set", "times", "plus", "string", "nan", "inf", "minus", "null", "missing")
_WAYS: Mapping[str, tuple[str, ...]] = {
    "date": ("set", "plus", "missing"),
    "retry_after": ("set", "missing"),
    "next_cursor": ("set", "null", "missing"),
    "rows": ("twice", "twice_changed"),
}
_WITH_VALUE = frozenset({"set", "times", "plus"})
_HEADERS: Mapping[str, str] = {"date": "Date", "retry_after": "Retry-After"}
_ANYWHERE = "**"


@dataclasses.dataclass(frozen=True, slots=True)
class Vocabulary:
    """The paths of the table's words in a vendor's answers; `**` in a path is any depth."""

    fields: Mapping[str, tuple[str, ...]]
    lists: tuple[str, ...]
    cursor: str
    marks: frozenset[str]  # keys that name the instance a row is of


@dataclasses.dataclass(frozen=True, slots=True)
class FieldLie:
    """One lie."""

    field: str
    how: str = "set"
    value: Any = None
    instance: str | None = None


def read(given: Mapping[str, Any]) -> FieldLie:
    """Read a lie from the keys of its declaration. Raises ValueError with a sentence."""
    field, how, value = given.get("field"), given.get("how", "set"), given.get("value")
    if not field:
        raise ValueError("field: name what to lie about; agent/simulator/field_lies.py lists the words.")
    ways = _WAYS.get(field, _FIGURES)
    if how not in ways:
        raise ValueError(f"how: {how!r} is no way to lie about {field}; known: {', '.join(ways)}.")
    if (value is None) == (how in _WITH_VALUE):
        raise ValueError(f"value: {how!r} takes {'one' if value is None else 'none'}.")
    if how in ("times", "plus") and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise ValueError(f"value: {how!r} takes a number.")
    if field in _HEADERS and how == "set" and not (f"{value}".isascii() and f"{value}".isprintable()):
        raise ValueError("value: a header takes printable ASCII.")
    instance = given.get("instance")
    return FieldLie(field, how, value, None if instance is None else f"{instance}")


def header(lie: FieldLie, headers: Mapping[str, str]) -> Mapping[str, str] | None:
    """Return the headers with the lie in them, or None if it is about another field."""
    name = _HEADERS.get(lie.field)
    if name is None:
        return None
    if lie.how == "missing":
        # Without a Date the server would write the true one.
        return {**headers, name: ""} if name == "Date" else {key: headers[key] for key in headers if key != name}
    return {**headers, name: _later(headers[name], lie.value) if lie.how == "plus" else f"{lie.value}"}


def body(lie: FieldLie, content: bytes, path: str, words: Vocabulary) -> bytes | None:
    """Return the body of an answer to `path` with the lie in it, or None if the answer lacks the field."""
    try:
        document = json.loads(content)
    except ValueError:
        return None
    wanted = None if lie.instance is None or lie.instance in path.split("/") else lie.instance
    if lie.field == "rows":
        has_lied = _repeat(document, lie, wanted, words)
    elif lie.field == "next_cursor":
        has_lied = _announce(document, lie, words)
    else:
        has_lied = _falsify(document, lie, wanted, words)
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode() if has_lied else None


def _later(date: str, seconds: float) -> str:
    try:
        moved = email.utils.parsedate_to_datetime(date) + dt.timedelta(seconds=seconds)
        return email.utils.format_datetime(moved, usegmt=True)
    except (ValueError, OverflowError):
        return ""


def _falsify(document: object, lie: FieldLie, wanted: str | None, words: Vocabulary) -> bool:
    paths = words.fields.get(lie.field) or (_path(lie.field),)
    places = [place for path in paths for place in _places(document, path.split("."), wanted, words)]
    change = _CHANGES[lie.how]
    has_lied = False
    for holder, key in places:
        if lie.how == "missing":
            del holder[key]
            has_lied = True
        elif (said := change(holder[key], lie.value)) is not holder[key]:
            holder[key] = said
            has_lied = True
    return has_lied


def _path(key: str) -> str:
    return key[1:] if key.startswith("/") else f"{_ANYWHERE}.{key}"


def _announce(document: object, lie: FieldLie, words: Vocabulary) -> bool:
    if not isinstance(document, dict) or not any(isinstance(document.get(name), list) for name in words.lists):
        return False
    if lie.how == "missing":
        return document.pop(words.cursor, None) is not None
    document[words.cursor] = lie.value
    return True


def _repeat(document: object, lie: FieldLie, wanted: str | None, words: Vocabulary) -> bool:
    has_lied = False
    for path in words.lists:
        for holder, key in list(_places(document, path.split("."), None, words)):
            rows = holder[key] if isinstance(holder[key], list) else []
            again = [copy.deepcopy(row) for row in rows if isinstance(row, dict) and _is_of(row, wanted, words)]
            if lie.how == "twice_changed":
                again = [_changed(row, words) for row in again]
            rows += again
            has_lied |= bool(again)
    return has_lied


def _changed(row: dict[str, Any], words: Vocabulary) -> dict[str, Any]:
    states = {path.rpartition(".")[2] for path in words.fields["state"]}
    other = {key: value * 2 for key, value in row.items() if isinstance(value, float)}
    return {**row, **other, **dict.fromkeys(states & row.keys(), "unknown")}


def _places(
    node: object, path: list[str], wanted: str | None, words: Vocabulary
) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the places of a path: the object and the key in it. Lists are searched row by row."""
    if isinstance(node, list):
        for each in node:
            yield from _places(each, path, wanted, words)
        return
    if not isinstance(node, dict):
        return
    wanted = None if _is_of(node, wanted, words) else wanted
    head, rest = path[0], path[1:]
    if head == _ANYWHERE:
        yield from _places(node, rest, wanted, words)
        for each in list(node.values()):
            yield from _places(each, path, wanted, words)
    elif head in node and rest:
        yield from _places(node[head], rest, wanted, words)
    elif head in node and wanted is None:
        yield node, head


def _is_of(row: Mapping[str, Any], wanted: str | None, words: Vocabulary) -> bool:
    return wanted is None or any(f"{row.get(mark)}" == wanted for mark in words.marks)


def _if_number(change: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def changed(number: object, value: object) -> object:
        return change(number, value) if isinstance(number, int | float) and not isinstance(number, bool) else number

    return changed


_CHANGES: Mapping[str, Callable[[Any, Any], Any]] = {
    "set": lambda _, value: value,
    "times": _if_number(lambda number, value: number * value),
    "plus": _if_number(lambda number, value: number + value),
    "string": _if_number(lambda number, _: f"{number}"),
    "nan": lambda *_: math.nan,
    "inf": lambda *_: math.inf,
    "minus": _if_number(lambda number, _: -number),
    "null": lambda *_: None,
    "missing": lambda number, _: number,
}
