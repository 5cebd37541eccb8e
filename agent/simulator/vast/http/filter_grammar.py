"""The vendor's filters: objects of {column: {operator: value}} as tests of a row, as forgiving as the vendor's own.

1. Numbers may come as strings, booleans as words; unknown columns are tolerated and match everything.
2. `id` matches nothing, and names are compared as they are, so "RTX_4090" matches no card.
"""

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Test = Callable[[Any], bool]

OPERATORS = frozenset({"eq", "neq", "gt", "gte", "lt", "lte", "in", "notin"})
# Keys of a search body that are no columns.
CONTROL_KEYS = frozenset({"order", "type", "limit", "allocated_storage", "disable_bundling", "select_cols", "q"})
_ALIASES = {
    "reliability2": "reliability",
    "dph": "dph_total",
    "dphtotal": "dph_total",
    "gpu_totalram": "gpu_total_ram",
    "ubuntu_version": "os_version",
    "cuda_vers": "cuda_max_good",
    "dlperf_usd": "dlperf_per_dphtotal",
    "flops_usd": "flops_per_dphtotal",
    "expected_reliability": "reliability",
}
_THOUSANDS = {"gpu_totalram_GB": "gpu_total_ram", "cpu_ram_GB": "cpu_ram", "gpu_ram_GB": "gpu_ram"}
_ORDERINGS: Mapping[str, Callable[[Any, Any], bool]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}
_VERSION = re.compile(r"\d{1,6}(\.\d{1,3}){1,2}")
_WORDS = {"true": True, "false": False, "none": None, "null": None}


def compile_search(body: Mapping[str, Any], columns: Iterable[str]) -> list[tuple[str, Test]]:
    """Turn a search body into tests on columns of an offer row."""
    known = frozenset(columns)
    tests: list[tuple[str, Test]] = []
    for name, wanted in body.items():
        if name in CONTROL_KEYS or wanted is None:
            continue
        conditions = wanted if isinstance(wanted, dict) else {"eq": wanted}
        tests.extend(test for key, value in conditions.items() for test in _column(name, key, value, known))
    return tests


def _column(name: str, key: str, value: object, known: frozenset[str]) -> list[tuple[str, Test]]:
    if key not in OPERATORS:
        return []
    if (virtual := _VIRTUAL.get(name)) is not None:
        column, make = virtual
        return [(column, make(key, value))]
    if name in _THOUSANDS:
        number = to_number(value)
        return [(_THOUSANDS[name], compile_one(key, None if number is None else number * 1000.0))]
    column = _ALIASES.get(name, name)
    return [(column, compile_one(key, value))] if column in known else []


def compile_one(key: str, value: object) -> Test:
    """Turn one operator and its value into a test."""
    if key in ("in", "notin"):
        members = value if isinstance(value, list) else [value]
        tests = [_equals(member) for member in members]
        if key == "in":
            return lambda found: any(test(found) for test in tests)
        return lambda found: not any(test(found) for test in tests)
    if key == "eq":
        return _equals(value)
    if key == "neq":
        equals = _equals(value)
        return lambda found: not equals(found)
    return _orders(_ORDERINGS[key], value)


def to_number(value: object) -> float | None:
    """Read a number from a number or a string of one."""
    if not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number


def _equals(value: object) -> Test:
    word = value.strip().lower() if isinstance(value, str) else None
    number = to_number(_WORDS.get(word, value)) if word is not None else to_number(value)
    is_null = value is None or word in ("none", "null")

    def test(found: Any) -> bool:  # noqa: ANN401 - a cell is any JSON
        if found is None:
            return is_null
        if isinstance(found, str):
            return found == value
        return number is not None and bool(found == number)

    return test


def _orders(compare: Callable[[Any, Any], bool], value: object) -> Test:
    number = to_number(value)

    def test(found: Any) -> bool:  # noqa: ANN401 - a cell is any JSON
        if isinstance(found, str):
            measured = to_number(found)
            if measured is not None and number is not None:
                return compare(measured, number)
            return isinstance(value, str) and compare(found, value)
        return number is not None and isinstance(found, int | float) and compare(found, number)

    return test


def _verified(key: str, value: object) -> Test:
    test = compile_one(key, value)
    return lambda found: test(found == "verified")


def _datacenter(key: str, value: object) -> Test:
    test = compile_one(key, value)
    return lambda found: test(found == 1)


def _never(_: str, __: object) -> Test:
    return lambda _: False


def _at_least(_: str, value: object) -> Test:
    return compile_one("gte", value)


def _country(key: str, value: object) -> Test:
    test = compile_one(key, value)
    joins_all = key in ("neq", "notin")

    def either(found: Any) -> bool:  # noqa: ANN401 - a cell is any JSON
        country = found.rsplit(", ", 1)[-1] if isinstance(found, str) else found
        # A place may be named whole or by its country; to be excluded either name is enough.
        return test(found) and test(country) if joins_all else test(found) or test(country)

    return either


def _driver(key: str, value: object) -> Test:
    is_version = isinstance(value, str) and _VERSION.fullmatch(value) is not None
    return compile_one(key, driver_number(str(value)) if is_version else value)


def driver_number(version: str) -> int:
    """Turn "535.86.05" into 535086005."""
    major, minor, patch = (*version.split("."), "0", "0")[:3]
    return int(major) * 1_000_000 + int(minor) * 1_000 + int(patch)


# Columns that exist only in questions: the column that each is about, and its test.
_VIRTUAL: Mapping[str, tuple[str, Callable[[str, object], Test]]] = {
    "id": ("id", _never),
    "verified": ("verification", _verified),
    "datacenter": ("hosting_type", _datacenter),
    "geolocation": ("geolocation", _country),
    "target_reliability": ("reliability", _at_least),
    "driver_version": ("driver_vers", _driver),
}
