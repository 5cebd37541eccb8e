"""A rehearsed day with a failover every ten minutes, and the comparison that judges it."""

import dataclasses
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.failovers import day
from tests.failovers.day import Day
from tests.support import postgres

CALM = Day(Counter({"rent": 3, "release": 1}), (7, 8, 9), 3, 10.0, 0, 0.0)


@pytest.mark.nightly
@pytest.mark.only_sqlite
@pytest.mark.skipif(not postgres.is_here(), reason="PostgreSQL is not installed (make tools)")
def test_a_failover_every_ten_minutes_changes_no_order_of_a_day(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    lines, wrong = day.compared(tmp_path, 24.0)
    assert wrong == []
    assert lines[0].startswith("143 failovers in 24 rehearsed hours")


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 0),
        ({"dollars": 10.19}, 0),
        ({"dollars": 9.7}, 1),
        ({"dollars": 10.4, "gap_seconds": 3600.0}, 0),
        ({"orders": Counter({"rent": 4, "release": 1})}, 1),
        ({"hosts": (7, 9, 8), "running": 2}, 2),
    ],
)
def test_a_day_that_differs_is_found(changes: dict[str, Any], count: int) -> None:
    assert len(day.wrong(dataclasses.replace(CALM, **changes), CALM, hours=24.0)) == count
