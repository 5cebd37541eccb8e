"""A day of the shipped configuration in every climate under three seeds: nothing lost, rented twice or misbilled."""

from pathlib import Path

import pytest

from agent.cli import session
from agent.cli.rehearsal import Scene, rehearse
from tests.soak.__main__ import CLIMATES, CONFIG
from tests.support import verdict


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("climate", CLIMATES)
async def test_a_day(climate: str, seed: int, tmp_path: Path) -> None:
    config, tuned = session.read(CONFIG)
    told = await rehearse(config, tuned, Scene(climate, 24.0, seed), tmp_path)
    assert verdict.wrong(told) == []
    assert told.figures["useful_hours"] > 0
