"""The shipped configuration in every climate: nothing lost, rented twice, misbilled, or moved to and fro."""

from pathlib import Path

import pytest

from agent.cli.rehearsing.rehearsal import Scene, rehearse
from agent.cli.shared import session
from tests.soak.__main__ import CLIMATES, CONFIG, live
from tests.support import verdict

AT_NIGHT = pytest.mark.nightly


UNEVENTFUL = frozenset({"calm", "price_spike"})
"""Climates in which nothing has happened after four hours: the others hold all that they would show."""


@pytest.mark.long(15)
@pytest.mark.parametrize(
    ("climate", "hours"),
    [
        *(pytest.param(each, 4.0, marks=AT_NIGHT if each in UNEVENTFUL else ()) for each in CLIMATES),
        *(pytest.param(each, 8.0, marks=AT_NIGHT) for each in CLIMATES),
    ],
)
def test_all_strategies_on_both_markets(climate: str, hours: float) -> None:
    """A slice of the soak: four workloads of both kinds and all strategies, with the judgements of the soak."""
    assert live(climate, hours, 11, "mixed").wrong == []


@pytest.mark.long(12)
@pytest.mark.parametrize(
    ("hours", "seed"), [(8.0, 1), *(pytest.param(24.0, seed, marks=AT_NIGHT) for seed in (1, 2, 3))]
)
@pytest.mark.parametrize("climate", CLIMATES)
async def test_the_shipped_configuration(climate: str, hours: float, seed: int, tmp_path: Path) -> None:
    config, tuned = session.read(CONFIG)
    told = await rehearse(config, tuned, Scene(climate, hours, seed), tmp_path)
    assert verdict.wrong(told) == []
    assert told.figures["useful_hours"] > 0
