"""Two hundred fixed seeds hold: ten in CI, the others with `make nightly`, a few of them on PostgreSQL."""

import os
from pathlib import Path

import pytest

from tests.support import launch, postgres

SEEDS, IN_CI, PART = 200, 10, 10
ON_SERVER = 2
ROOT = Path(__file__).parents[2]


@pytest.mark.long(40)
@pytest.mark.parametrize(
    "first", [pytest.param(each, marks=[pytest.mark.nightly] if each > IN_CI else []) for each in range(1, SEEDS, PART)]
)
async def test_two_hundred_seeds_hold(first: int) -> None:
    """Each part is a program of its own, so that workers share them."""
    await hold(PART, "--first", str(first), "--processes", "1", "--shrink", "2")


@pytest.mark.skipif(not postgres.is_here(), reason="PostgreSQL is not installed (make tools)")
@pytest.mark.nightly
async def test_seeds_hold_with_the_ledger_on_postgresql() -> None:
    """A night plays more of them (`tests/night/parts.py`)."""
    pytest.importorskip("psycopg")
    await hold(ON_SERVER, "--postgresql", "--processes", "1", "--shrink", "1")


async def hold(seeds: int, *words: str) -> None:
    """Play so many seeds as a program, and insist that all of them hold."""
    whole = ("--seeds", str(seeds), *words)
    played = await launch.start("tests.disasters", *whole, folder=ROOT, environment=dict(os.environ))
    out, err = ((each.decode()) for each in await played.communicate())
    assert played.returncode == 0, out + err
    assert f"{seeds} seeds" in out
    assert "0 failed" in out
