"""A climate with processes runs for `gpubid simulate` and tests alone: a daemon and a bench refuse it."""

import dataclasses
import os
from pathlib import Path

import pytest

from agent.simulator import climate_files
from agent.simulator.climate import ClimateError
from agent.simulator.saved_market import Saved
from agent.simulator.simulated_clock import ScaledClock
from agent.simulator.vast.world import World
from tests.support import counter
from tests.support.market import START, STILL
from tests.support.programs import LIVE, gpubid
from tests.support.steered import Simulator

REAL = climate_files.named("real_processes")


def test_one_shipped_climate_runs_processes() -> None:
    assert [name for name in climate_files.names() if climate_files.named(name).processes] == ["real_processes"]
    with pytest.raises(ClimateError, match="true or false"):
        climate_files.parse("processes = 1", "mine")


def test_a_simulator_runs_them_only_if_the_climate_and_its_maker_both_say_so(tmp_path: Path) -> None:
    clock = ScaledClock(START, speed=0.0)
    real = World(dataclasses.replace(STILL, processes=True), seed=1, start=START, hosts=2)
    still = World(STILL, seed=1, start=START, hosts=2)
    with pytest.raises(ClimateError, match="runs real processes"):
        Simulator(real, clock)
    with pytest.raises(ClimateError, match="does not run real processes"):
        Simulator(still, clock, processes=counter.Registry(tmp_path)(clock))


def test_a_market_that_is_embedded_in_a_daemon_never_does(tmp_path: Path) -> None:
    with pytest.raises(ClimateError, match="real processes"):
        Saved(tmp_path / "market", REAL, 7, ScaledClock(START), str, keeps=True)


@pytest.mark.parametrize("verb", ["run", "check"])
async def test_a_daemon_refuses_the_climate_with_file_line_and_key(tmp_path: Path, verb: str) -> None:
    live = 'url = "{url}"\ncredential = "vast_api_key"\nspend = true\n'
    assert live in LIVE
    text = LIVE.replace(live, 'simulated = "real_processes"\n').format()
    (tmp_path / "agent.toml").write_text(text)
    line = text.splitlines().index('simulated = "real_processes"') + 1
    ran = await gpubid(tmp_path, verb)
    assert ran.code == 2
    assert ran.err.startswith(f"gpubid: agent.toml:{line}: markets.vast.simulated: the climate")
    assert "runs the workload's command on this machine" in ran.err
    assert os.listdir(tmp_path) == ["agent.toml"]  # noqa: PTH208 - a quick look


async def test_a_bench_in_memory_refuses_it(tmp_path: Path) -> None:
    ran = await gpubid(tmp_path, "lab", "bench", "--problem", "bids", "--climates", "real_processes")
    assert (ran.code, ran.out) == (2, "")
    assert "no real_processes" in ran.err
