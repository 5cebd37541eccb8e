"""The lines of keys."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.config.files import lines

TEXT = '''\
first = 1
# [not.a.table]
[quoted."a b"."c.d"]
dotted.key = { p = 1, q = [1, { r = 2 }] }
many = [
  1, # ]
  "a,]",
  ["x",
   "y"],
]
long = """
[not]
a = "x" \\"""
"""
raw = \'\'\'
x = 1\'\'\'
when = 1979-05-27 07:32:00

[[array]]
k = 1
[[array]]
k = 2
[array.sub]
k = 3
'''

EXPECTED = {
    ("first",): 1,
    ("quoted",): 3,
    ("quoted", "a b", "c.d"): 3,
    ("quoted", "a b", "c.d", "dotted", "key", "p"): 4,
    ("quoted", "a b", "c.d", "dotted", "key", "q", 1, "r"): 4,
    ("quoted", "a b", "c.d", "many"): 5,
    ("quoted", "a b", "c.d", "many", 0): 6,
    ("quoted", "a b", "c.d", "many", 1): 7,
    ("quoted", "a b", "c.d", "many", 2, 1): 9,
    ("quoted", "a b", "c.d", "long"): 11,
    ("quoted", "a b", "c.d", "raw"): 15,
    ("quoted", "a b", "c.d", "when"): 17,
    ("array", 0): 19,
    ("array", 0, "k"): 20,
    ("array", 1, "k"): 22,
    ("array", 1, "sub", "k"): 24,
}


@pytest.mark.parametrize(("path", "line"), EXPECTED.items())
def test_every_way_to_write_a_key_is_found(path: lines.Path, line: int) -> None:
    tomllib.loads(TEXT)
    assert lines.scan(TEXT).marks[path] == line


def test_what_is_not_written_down_stands_where_its_table_does() -> None:
    assert lines.scan(TEXT).find(("array", 1, "missing")) == 21
    assert lines.scan(TEXT).find(("nowhere",)) == 1


def paths(values: Any, path: lines.Path = ()) -> set[lines.Path]:
    items = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    found = {path} if path else set()
    for key, value in items:
        found |= paths(value, (*path, key))
    return found


KEYS = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=0, max_size=8)
SCALARS = st.one_of(st.integers(-9, 9), st.booleans(), KEYS)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)


def written(value: Any) -> str:
    import json

    if isinstance(value, dict):
        return "{" + ", ".join(f"{written(key)} = {written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(f"\n # ] \n{written(item)}" for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_every_path_of_any_document_is_found(document: dict[str, Any]) -> None:
    text = "".join(f"{written(key)} = {written(value)}\n" for key, value in document.items())
    assert tomllib.loads(text) == document
    assert paths(document) == set(lines.scan(text).marks)


@given(st.text(st.sampled_from("[]{}=.,'\"#\n\\ ab1"), max_size=60))
def test_a_scan_never_fails(text: str) -> None:
    found = lines.scan(text)
    assert all(1 <= line <= text.count("\n") + 1 for line in found.marks.values())
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert paths(values) <= set(found.marks)
    assert not found.duplicates
