"""Days on RunPod alone and on both markets, served by one simulator on one clock: nothing lost, doubled, misbilled."""

from pathlib import Path

import pytest

from agent.cli.rehearsing.rehearsal import Scene, rehearse
from agent.cli.shared import session
from tests.soak.__main__ import CLIMATES
from tests.support import verdict
from tests.support.wiring import IS_NIGHT

CONFIG = """\
[agent]
poll = "{poll}"
{markets}
[limits]
max_price_per_instance_hour = 0.80
max_fleet_per_hour = 2.00
max_per_day = 30.00
max_per_month = 500.00
max_instances = 4

[workloads.train]
image = "pytorch/pytorch:latest"
gpu = ["RTX 4090"]
disk_gb = 40.0
max_price = 0.75
slots = {slots}
strategy = "{strategy}"
"""


POLL = "30s" if IS_NIGHT else "60s"


def config(folder: Path, *markets: str, strategy: str, slots: int = 1) -> Path:
    tables = "".join(f'[markets.{market}]\nsimulated = "calm"\n' for market in markets)
    path = folder / "agent.toml"
    path.write_text(CONFIG.format(poll=POLL, markets=tables, strategy=strategy, slots=slots), encoding="utf-8")
    return path


async def test_a_blackout_on_runpod_alone(tmp_path: Path) -> None:
    settings, tuned = session.read(config(tmp_path, "runpod", strategy="ondemand"))
    told = await rehearse(settings, tuned, Scene("blackout", 5.0, 2), tmp_path)
    assert verdict.wrong(told) == []
    assert told.figures["useful_hours"] > 4.0
    assert 0.5 < told.figures["charged"] < 4.0
    assert told.figures["ondemand_cost"] > 0
    assert {lease.market for lease in told.leases} == {"runpod"}


async def test_both_markets_are_counted_as_one(tmp_path: Path) -> None:
    settings, tuned = session.read(config(tmp_path, "vast", "runpod", strategy="hedged", slots=2))
    told = await rehearse(settings, tuned, Scene("recorded", 4.0, 5), tmp_path)
    assert verdict.wrong(told) == []
    assert told.figures["charged"] > 0
    assert told.figures["hosts"] > 300


@pytest.mark.nightly
@pytest.mark.parametrize("climate", CLIMATES)
async def test_a_day_on_both(climate: str, tmp_path: Path) -> None:
    settings, tuned = session.read(config(tmp_path, "vast", "runpod", strategy="hedged", slots=2))
    told = await rehearse(settings, tuned, Scene(climate, 24.0, 1), tmp_path)
    assert verdict.wrong(told) == []
    assert told.figures["useful_hours"] > 0


OWN = {
    "warm": ("keep_warm = true\n", 'slots = 4\n[workloads.train.checkpoint]\nat = "remote"\n'),
    "due": (
        "",
        (
            'slots = 1\nkind = "batch"\ndone_line = "all done"\n[workloads.train.checkpoint]\nat = "remote"\n'
            "[workloads.train.deadline]\nhours = 6.0\nby = 2026-07-27T14:00:00Z\n"
        ),
    ),
}
"""By name: numbers of hedged that differ from those shipped, and the workload that shows their effect."""


@pytest.mark.nightly
@pytest.mark.parametrize("own", OWN)
@pytest.mark.parametrize(("climate", "seed"), [("bidding_war", 2), ("blackout", 3)])
async def test_hours_on_both_by_what_hedged_weighs(own: str, climate: str, seed: int, tmp_path: Path) -> None:
    """Slots kept warm by the worth of an hour short, and markets weighed for a deadline: over the whole program."""
    numbers, workload = OWN[own]
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "own.toml").write_text(f'strategy = "hedged"\n{numbers}', encoding="utf-8")
    file = config(tmp_path, "vast", "runpod", strategy="own")
    text = file.read_text(encoding="utf-8").replace("slots = 1\n", "").replace("max_instances = 4", "max_instances = 8")
    file.write_text(f'{text}{workload}[strategies]\ndirectory = "own"\n', encoding="utf-8")
    settings, tuned = session.read(file)
    told = await rehearse(settings, tuned, Scene(climate, 5.0, seed), tmp_path)
    assert verdict.wrong(told) == []
    # Work with a deadline may wait; of four slots three are to be warm.
    assert told.figures["useful_hours"] > (3.0 if own == "due" else 9.0)
