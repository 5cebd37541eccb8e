"""A rehearsal that a signal ends leaves nothing in the folder of temporary files."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.support.programs import LIVE, PATIENCE_SECONDS, until


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_ends_it_and_leaves_no_folder(tmp_path: Path, number: signal.Signals) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (tmp_path / "agent.toml").write_text(LIVE.format(url="http://127.0.0.1:1"))
    words = [sys.executable, "-m", "agent", "rehearse", "--climate", "calm", "--hours", "1000"]
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(Path(__file__).parents[2])}
    program = await asyncio.create_subprocess_exec(*words, cwd=tmp_path, env=environment)
    try:
        await until(lambda: list(temporary.glob("*/*.sqlite")), "the ledger of the rehearsal")
        program.send_signal(number)
        assert await asyncio.wait_for(program.wait(), PATIENCE_SECONDS) == 128 + number
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()
    assert list(temporary.iterdir()) == []
