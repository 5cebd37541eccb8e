"""Two hundred fixed seeds hold: fifty in CI, the others with `make nightly`."""

import os
from pathlib import Path

import pytest

from tests.support import launch

SEEDS, IN_CI, PART = 200, 50, 25
ROOT = Path(__file__).parents[2]


@pytest.mark.long(40)
@pytest.mark.parametrize(
    "first", [pytest.param(each, marks=[pytest.mark.nightly] if each > IN_CI else []) for each in range(1, SEEDS, PART)]
)
async def test_two_hundred_seeds_hold(first: int) -> None:
    """Each part is a program of its own, so that workers share them."""
    words = ["--seeds", str(PART), "--first", str(first), "--processes", "1", "--shrink", "2"]
    played = await launch.start("tests.disasters", *words, folder=ROOT, environment=dict(os.environ))
    out, err = ((each.decode()) for each in await played.communicate())
    assert played.returncode == 0, out + err
    assert f"{PART} seeds" in out
    assert "0 failed" in out
