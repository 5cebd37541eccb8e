"""Every climate, with all strategies and with the shipped configuration: nothing lost, rented twice or misbilled.

In CI each climate is played once with the shipped configuration. At night each is also played with all strategies on
all markets, and for longer. The seeds of tests/disasters/ judge the same faults beside each other, twenty-five in CI.
"""

import dataclasses
from pathlib import Path

import pytest

from agent.cli.rehearsing.rehearsal import Scene, rehearse
from agent.cli.shared import session
from tests.soak.__main__ import CLIMATES, CONFIG, live
from tests.support import verdict
from tests.support.scene import MINUTE

AT_NIGHT = pytest.mark.nightly
IN_CI = 4.0
"""Hours of the rehearsals that poll each minute. The longer ones of the night poll as shipped."""


@pytest.mark.nightly
@pytest.mark.parametrize("climate", CLIMATES)
@pytest.mark.parametrize("hours", [IN_CI, 8.0])
def test_all_strategies_on_all_markets(climate: str, hours: float) -> None:
    """A slice of the soak: workloads of both kinds and all strategies, with the judgements of the soak."""
    assert live(climate, hours, 11, "mixed", poll=MINUTE if hours == IN_CI else None).wrong == []


@pytest.mark.long(6)
@pytest.mark.parametrize(
    ("climate", "hours", "seed"),
    [
        *(pytest.param(each, IN_CI, 1) for each in CLIMATES),
        *(pytest.param(each, 24.0, seed, marks=AT_NIGHT) for each in CLIMATES for seed in (1, 2, 3)),
    ],
)
async def test_the_shipped_configuration(climate: str, hours: float, seed: int, tmp_path: Path) -> None:
    config, tuned = session.read(CONFIG)
    if hours == IN_CI:
        config = dataclasses.replace(config, poll=MINUTE)
    told = await rehearse(config, tuned, Scene(climate, hours, seed), tmp_path)
    assert verdict.wrong(told) == []
    assert told.figures["useful_hours"] > 0
