"""The tables of the vendors' surprises name payloads and tests that exist, and the page leaves out no payload."""

import re
from functools import lru_cache
from pathlib import Path

import pytest

from tests.markets.cards import CARDS

ROOT = Path(__file__).parents[2]
PAYLOADS = Path(__file__).parent / "payloads"
FEWEST = 40
"""There are more surprises, so a shorter list is a mistake of the search."""


def rows() -> list[tuple[str, list[str], list[str]]]:
    """Return surprise, payloads and tests of each row."""
    lines = (PAYLOADS / "README.md").read_text().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    bodies = [row for row in cells if row[0] not in {"surprise", "---"} and not row[0].startswith("**")]
    return [
        (surprise, re.findall("`(.+?)`", payloads), re.findall("`(.+?)`", tests))
        for surprise, payloads, tests in bodies
    ]


@lru_cache(maxsize=256)
def names(path: str) -> frozenset[str]:
    return frozenset(re.findall(r"^(?:async )?def (test_\w+)", (ROOT / path).read_text(), re.MULTILINE))


def test_there_are_tables() -> None:
    assert len(rows()) > FEWEST
    assert len({surprise for surprise, _, _ in rows()}) == len(rows())


@pytest.mark.parametrize(("surprise", "payloads", "tests"), rows(), ids=[row[0][:60] for row in rows()])
def test_every_name_of_a_row_exists(surprise: str, payloads: list[str], tests: list[str]) -> None:
    assert tests, surprise
    assert [name for name in payloads if not (PAYLOADS / name).is_file()] == []
    cards = {card.card_id for card in CARDS}
    paths = [test.partition("::") for test in tests if test not in cards]
    assert [path for path, _, _ in paths if not path.endswith(".py") or not (ROOT / path).is_file()] == []
    assert [test for path, _, test in paths if test not in names(path)] == []


def test_no_payload_is_left_out() -> None:
    named = set(re.findall("`(.+?)`", (PAYLOADS / "README.md").read_text()))
    assert {str(path.relative_to(PAYLOADS)) for path in PAYLOADS.rglob("*.json")} - named == set()
