"""Days on RunPod alone and on both markets, served by one simulator on one clock: nothing lost, doubled, misbilled."""

from pathlib import Path

import pytest

from agent.cli import session
from agent.cli.rehearsal import Scene, rehearse
from tests.soak.__main__ import CLIMATES
from tests.support import verdict

CONFIG = """\
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


def config(folder: Path, *markets: str, strategy: str, slots: int = 1) -> Path:
    tables = "".join(f'[markets.{market}]\nsimulated = "calm"\n' for market in markets)
    path = folder / "agent.toml"
    path.write_text(CONFIG.format(markets=tables, strategy=strategy, slots=slots), encoding="utf-8")
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
