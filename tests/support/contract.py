"""The page that documents the output of `--json`, read as a contract: keys, their types, and optional keys."""

import dataclasses
import datetime as dt
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "deploy" / "json-output.md"
_ROW = re.compile(r"^\| `(?P<key>[^`]+)` \| (?P<type>[^|]+) \| (?P<what>[^|]+) \|$")
_SAME = re.compile(r"as `(?P<key>[^`]+)`( of (?P<section>.+))?")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_time(value: object) -> bool:
    return isinstance(value, str) and dt.datetime.fromisoformat(value).utcoffset() == dt.timedelta(0)


IS: Mapping[str, Any] = {
    "text": lambda value: isinstance(value, str),
    "count": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": _is_number,
    "dollars": _is_number,
    "rate": _is_number,
    "share": lambda value: _is_number(value) and 0 <= value <= 1,
    "flag": lambda value: isinstance(value, bool),
    "time": _is_time,
    "any": lambda _: True,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Key:
    """One documented key. `path` is a pattern: a name in angle brackets matches any word."""

    path: str
    kind: str
    may_be_null: bool
    is_sometimes: bool

    @property
    def pattern(self) -> re.Pattern[str]:
        """Return the pattern of the matching paths."""
        return re.compile("".join("[^.]+" if part[0] == "<" else re.escape(part) for part in _parts(self.path)))

    def allows(self, value: object) -> bool:
        """Return whether a value is of its type."""
        return self.may_be_null if value is None else bool(IS[self.kind](value))


def _parts(path: str) -> list[str]:
    return [part for part in re.split(r"(<[^>]+>)", path) if part]


def sections() -> dict[str, list[Key]]:
    """Return the keys of each verb."""
    found: dict[str, list[Key]] = {}
    rows: list[Key] = []
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            rows = found.setdefault(line.removeprefix("## "), [])
        match = _ROW.match(line)
        if match is not None:
            rows += _keys(match["key"], match["type"].strip(), found, rows)
    return found


def _keys(path: str, kind: str, found: Mapping[str, list[Key]], mine: list[Key]) -> list[Key]:
    same = _SAME.fullmatch(kind)
    if same is None:
        word = kind.removesuffix(", sometimes").removesuffix(" or null")
        return [Key(path, word, "or null" in kind, kind.endswith("sometimes"))]
    others = found[same["section"]] if same["section"] else mine
    old = same["key"]
    return [dataclasses.replace(key, path=path + key.path[len(old) :]) for key in others if key.path.startswith(old)]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each plain value of a document with its path. An empty list or table has none."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, f"{path}[]")
    else:
        yield path, value
