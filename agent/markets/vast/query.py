"""Operators' own filters in the grammar of `vastai search offers`: read by the vendor's parser, checked by us.

Invariants:
1. The vendor's parser only warns of a field it does not know; here that is an error which names the word.
2. Only the parser's own file is loaded, on first need: the package installs a log handler and takes long to import.
3. Filters are checked again on the rows that the market returns, as far as the rows show the field.
"""

import difflib
import importlib.util
import math
import re
import types
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

Value = bool | float | str | None
Filters = dict[str, dict[str, Any]]
"""Field -> operator -> value, in the format of the market's search."""

MAX_QUERY = 1000

_WORDS = frozenset(
    {"cpu_arch", "driver_version", "geolocation", "gpu_arch", "gpu_name", "mobo_name", "ubuntu_version", "verification"}
)
_SWITCHES = frozenset(
    {
        "datacenter",
        "external",
        "gpu_display_active",
        "has_avx",
        "rentable",
        "rented",
        "static_ip",
        "verified",
        "vms_enabled",
    }
)
_OPERATORS = ("=", "!=", ">", ">=", "<", "<=", "in", "notin", "eq", "neq", "gt", "gte", "lt", "lte")
_VERSION = re.compile(r"\d{1,3}\.\d{1,3}\.\d{1,3}")
_QUOTED = re.compile(r"Unknown operator.*?'([^']*)'")


class BadQuery(ValueError):
    """A query that does not mean what it says; `word` is the wrong part, `near` are similar known words."""

    def __init__(self, sentence: str, word: str = "", near: tuple[str, ...] = ()) -> None:
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        super().__init__(sentence + hint)
        self.word = word
        self.near = near


@lru_cache(maxsize=256)
def check(query: str) -> None:
    """Return if the market understands the query.

    Raises:
        BadQuery: the market does not understand it; the sentence names the word.
    """
    parse(query)


def parse(query: str) -> Filters:
    """Return the filters of a query; an empty query has none and loads nothing.

    Raises:
        BadQuery: an unknown field or operator, a value of the wrong kind, or text that is no condition.
    """
    if not query.strip():
        return {}
    if len(query) > MAX_QUERY or not query.isprintable():
        raise BadQuery(f"A query is one line of at most {MAX_QUERY} printable characters.")
    vendor = _vendor()
    _check_versions(query)
    try:
        found: Filters = vendor.parse_query(query, None, _Everything(), vendor.offers_alias, vendor.offers_mult)
    except (ValueError, TypeError) as error:
        raise _translated(query, str(error)) from None
    known = {*vendor.offers_fields, *vendor.offers_alias}
    for field, conditions in found.items():
        _check_field(field, known)
        for operator, value in conditions.items():
            conditions[operator] = _checked(field, value)
    return found


def matches(filters: Filters, row: Mapping[str, Any]) -> bool:
    """Return whether a row of the market passes, as far as it has the fields of the query."""
    return all(
        _holds(operator, _shown(field, row), wanted)
        for field, conditions in filters.items()
        for operator, wanted in conditions.items()
    )


class _Everything:
    """Silences the vendor's parser about unknown fields; our check refuses them by name."""

    def __contains__(self, field: object) -> bool:
        return True


@lru_cache(maxsize=1)
def _vendor() -> types.ModuleType:
    package = importlib.util.find_spec("vastai")
    if package is None or not package.submodule_search_locations:
        raise BadQuery("A query needs the package vastai-sdk, which is not installed; reinstall gpubid.")
    path = Path(package.submodule_search_locations[0], "api", "query.py")
    spec = importlib.util.spec_from_file_location("agent.markets.vast._vendor_query", path)
    if spec is None or spec.loader is None:
        raise BadQuery("The installed vastai package has no query parser; install version 1.9.1.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _check_field(field: str, known: set[str]) -> None:
    if field == "id":
        # The market accepts it and matches nothing.
        raise BadQuery("vast matches nothing by 'id'; an offer lives for seconds.", "id", ("machine_id",))
    if field not in known:
        near = tuple(difflib.get_close_matches(field, sorted(known), n=3))
        raise BadQuery(f"{field!r} is no field of vast's search.", field, near)


def _check_versions(query: str) -> None:
    """Refuse versions for which the vendor's parser would only print a warning and then match nothing."""
    for version in re.findall(r"driver_version\s*[=<>!]*\s*([^\s]+)", query):
        if "." in version and not _VERSION.fullmatch(version.strip('"')):
            raise BadQuery(f"{version!r} is no driver version; write it as 535.86.05.", version)


def _checked(field: str, value: Any) -> Any:  # noqa: ANN401 - the vendor's parser returns str, float, bool, None or list
    if isinstance(value, list):
        return [_checked(field, item) for item in value]
    if field in _WORDS or value is None:
        return value
    if field in _SWITCHES:
        if not isinstance(value, bool):
            raise BadQuery(f"{field} is true or false, not {str(value)!r}.", str(value), ("true", "false"))
        return value
    number = _number(value)
    if number is None or isinstance(value, bool):
        raise BadQuery(f"{field} wants a number, not {str(value)!r}.", str(value))
    return number


def _translated(query: str, complaint: str) -> BadQuery:
    unknown = _QUOTED.search(complaint)
    if unknown and not unknown[1]:
        return BadQuery(f"A condition in {query!r} has no operator; write conditions as gpu_ram>=24.")
    if unknown:
        word = unknown[1]
        near = tuple(difflib.get_close_matches(word, _OPERATORS, n=3)) or _OPERATORS[:6]
        return BadQuery(f"{word!r} is no operator of vast's search in {query!r}.", word, near)
    if "convert string to float" in complaint:
        word = complaint.rpartition(": ")[2].strip("'")
        return BadQuery(f"{word!r} is no number in {query!r}.", word)
    if "not 'list'" in complaint:
        return BadQuery(f"In {query!r} a field with a unit is asked for in a list; write gpu_ram>=24 instead.")
    if "cannot be blank" in complaint:
        return BadQuery(f"A condition in {query!r} has no value.")
    return BadQuery(f"{query!r} is not in the grammar of `vastai search offers`; write conditions as gpu_ram>=24.")


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda shown, wanted: bool(shown == wanted),
    "neq": lambda shown, wanted: bool(shown != wanted),
    "gt": lambda shown, wanted: bool(shown > wanted),
    "gte": lambda shown, wanted: bool(shown >= wanted),
    "lt": lambda shown, wanted: bool(shown < wanted),
    "lte": lambda shown, wanted: bool(shown <= wanted),
}


def _holds(operator: str, shown: Value, wanted: Any) -> bool:  # noqa: ANN401 - as _checked
    if shown is None:
        return True
    if operator in {"in", "notin"}:
        return any(_compared("eq", shown, item) for item in wanted) == (operator == "in")
    return _compared(operator, shown, wanted)


def _compared(operator: str, shown: Value, wanted: Value) -> bool:
    if isinstance(shown, bool | int) and isinstance(wanted, bool):
        shown = bool(shown)
    elif not isinstance(wanted, str):
        shown = _number(shown)
        if shown is None:
            return True
    elif isinstance(shown, str):
        shown, wanted = shown.casefold(), wanted.casefold()
    else:
        return True
    return _COMPARE[operator](shown, wanted)


def _shown(field: str, row: Mapping[str, Any]) -> Value:
    """Return a row's value of a field; some fields of the search have other column names."""
    if field == "geolocation":
        place = row.get("geolocation")
        return place.rpartition(",")[2].strip() if isinstance(place, str) else None
    if field == "verified" and isinstance(row.get("verification"), str):
        return bool(row["verification"] == "verified")
    if field == "datacenter":
        return None if row.get("hosting_type") is None else row["hosting_type"] == 1
    if field == "reliability":
        field = "reliability2" if row.get("reliability2") is not None else field
    shown = row.get("driver_vers" if field == "driver_version" else field)
    return shown if isinstance(shown, bool | int | float | str) else None


def _number(value: object) -> float | None:
    try:
        number = float(value) if isinstance(value, int | float | str) else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
