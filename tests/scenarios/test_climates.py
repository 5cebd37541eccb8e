"""Every climate, with all strategies and with the shipped configuration: nothing lost, rented twice or misbilled.

In CI each climate is played once. Those of CROWDED are played with all strategies on two markets, the others with the
shipped configuration. At night each is played both ways and for longer, and on all markets. The two hundred seeds of
tests/disasters/ judge the same faults beside each other, in CI too.
"""

from pathlib import Path

import pytest

from agent.cli.rehearsing.rehearsal import Scene, rehearse
from agent.cli.shared import session
from tests.soak.__main__ import ALL, CLIMATES, CONFIG, live
from tests.support import verdict

AT_NIGHT = pytest.mark.nightly
TWO = ALL[:2]
"""Without auctions, which added a quarter to a third to the processor time of a slice."""
CROWDED = ("bidding_war", "host_death")
"""In the one others outbid us, in the other hosts die, within four hours already."""


@pytest.mark.long(15)
@pytest.mark.parametrize(
    ("climate", "hours", "markets"),
    [
        *(pytest.param(each, 4.0, TWO, marks=() if each in CROWDED else AT_NIGHT) for each in CLIMATES),
        *(pytest.param(each, 8.0, ALL, marks=AT_NIGHT) for each in CLIMATES),
    ],
)
def test_all_strategies_on_several_markets(climate: str, hours: float, markets: tuple[str, ...]) -> None:
    """A slice of the soak: workloads of both kinds and all strategies, with the judgements of the soak."""
    assert live(climate, hours, 11, "mixed", markets).wrong == []


@pytest.mark.long(6)
@pytest.mark.parametrize(
    ("climate", "hours", "seed"),
    [
        *(pytest.param(each, 4.0, 1, marks=AT_NIGHT if each in CROWDED else ()) for each in CLIMATES),
        *(pytest.param(each, 24.0, seed, marks=AT_NIGHT) for each in CLIMATES for seed in (1, 2, 3)),
    ],
)
async def test_the_shipped_configuration(climate: str, hours: float, seed: int, tmp_path: Path) -> None:
    config, tuned = session.read(CONFIG)
    told = await rehearse(config, tuned, Scene(climate, hours, seed), tmp_path)
    assert verdict.wrong(told) == []
    assert told.figures["useful_hours"] > 0
