"""A rehearsal in which the workload's own command runs, on a clock that runs with the machine's."""

import asyncio
import os
import shlex
import signal
import sys
import uuid
from pathlib import Path

import pytest

from agent import strategy_files
from agent.app import App
from agent.cli.rehearsing.rehearsal import Scene, rehearse
from agent.config import loading
from agent.cycle import Pass
from agent.simulator.climate import ClimateError
from tests.support import counter
from tests.support.programs import LIVE, PATIENCE_SECONDS, until


class SeenError(Exception):
    """The command ran: the rehearsal may end."""


async def test_a_rehearsal_runs_the_workloads_command_and_ends_it(tmp_path: Path) -> None:
    mark, ran = uuid.uuid4().hex, tmp_path / "ran"
    code = "import os, sys\nopen(sys.argv[2], 'w').write(os.environ['SIM_SPEED'])\nimport time\ntime.sleep(3600)"
    command = shlex.join(counter.python(code, mark, str(ran)))
    (tmp_path / "agent.toml").write_text(f"{LIVE.format(url='http://127.0.0.1:1')}command = '''{command}'''\n")
    config = loading.load(tmp_path / "agent.toml", strategies=strategy_files.installed().keys())

    def look(_app: App, _done: Pass) -> None:
        if ran.exists() and ran.read_text():
            raise SeenError

    scene = Scene("real_processes", 2.0, 1, speed=20.0, on_pass=look)
    with pytest.raises(SeenError):
        await rehearse(config, strategy_files.load(config.strategies), scene)
    assert ran.read_text() == "20"
    assert counter.alive(mark) == []


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_ends_a_rehearsal_and_leaves_no_process_and_no_folder(
    tmp_path: Path, number: signal.Signals
) -> None:
    mark, ran, temporary = uuid.uuid4().hex, tmp_path / "ran", tmp_path / "temporary"
    temporary.mkdir()
    command = shlex.join(counter.python("import sys, time\nopen(sys.argv[2], 'w')\ntime.sleep(3600)", mark, str(ran)))
    (tmp_path / "agent.toml").write_text(f"{LIVE.format(url='http://127.0.0.1:1')}command = '''{command}'''\n")
    words = [sys.executable, "-m", "agent", "rehearse", "--climate", "real_processes", "--hours", "10"]
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(Path(__file__).parents[3])}
    program = await asyncio.create_subprocess_exec(*words, cwd=tmp_path, env=environment)
    try:
        await until(ran.exists, "the workload's command")
        assert len(list(temporary.iterdir())) == 2
        program.send_signal(number)
        assert await asyncio.wait_for(program.wait(), PATIENCE_SECONDS) == 128 + number
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()
    await until(lambda: counter.alive(mark) == [], "the death of all")
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("climate", "speed", "part"), [("real_processes", 31.0, "1 to 30"), ("calm", 30.0, "no real processes")]
)
async def test_a_speed_that_cannot_be_is_refused(tmp_path: Path, climate: str, speed: float, part: str) -> None:
    (tmp_path / "agent.toml").write_text(LIVE.format(url="http://127.0.0.1:1"))
    config = loading.load(tmp_path / "agent.toml", strategies=strategy_files.installed().keys())
    with pytest.raises(ClimateError, match=part):
        await rehearse(config, strategy_files.load(config.strategies), Scene(climate, 1.0, 1, speed=speed))
