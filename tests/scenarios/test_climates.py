"""A day of the shipped configuration in every climate: nothing lost, rented twice, misbilled, or moved to and fro."""

from pathlib import Path

import pytest

from agent.cli import session
from agent.cli.rehearsal import Scene, rehearse
from tests.soak.__main__ import CLIMATES, CONFIG, live
from tests.support import verdict


@pytest.mark.parametrize("climate", CLIMATES)
def test_a_workday_of_all_strategies_on_both_markets(climate: str) -> None:
    """A slice of the soak: four workloads of both kinds and all strategies, judged by what it is judged by."""
    assert live(climate, 8.0, 11, "mixed").wrong == []


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (2, 3))])
@pytest.mark.parametrize("climate", CLIMATES)
async def test_a_day(climate: str, seed: int, tmp_path: Path) -> None:
    config, tuned = session.read(CONFIG)
    told = await rehearse(config, tuned, Scene(climate, 24.0, seed), tmp_path)
    assert verdict.wrong(told) == []
    assert told.figures["useful_hours"] > 0
