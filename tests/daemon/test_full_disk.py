"""A disk that fills under a running daemon: while it cannot write it pays for nothing, and its metrics say why."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import programs
from tests.support.programs import LIVE, Daemon, until


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a disk of six megabytes."""
    order = ["mount", "-t", "tmpfs", "-o", "size=6m", "state", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(order, check=False).returncode != 0:
        pytest.skip("NO DISK WAS FILLED: it takes the right to mount one")
    yield tmp_path
    subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


def fill(file: Path) -> None:
    with file.open("wb", buffering=0) as stream:
        try:
            while stream.write(b"\0" * 4096):
                pass
        except OSError:
            return


async def _shows(daemon: Daemon, figure: float) -> bool:
    return await daemon.figure("gpubid_ledger_writable") == figure


async def test_a_ledger_that_takes_no_word_shows_on_the_metrics(small: Path) -> None:
    async with programs.running(small, config=LIVE.replace("max_instances = 4", "max_instances = 0")) as (
        market,
        daemon,
    ):
        assert await _shows(daemon, 1.0)
        # Written while there is room, read when there is none.
        (small / "agent.toml").write_text(LIVE.format(url=market.url))
        fill(small / "filler")
        await daemon.reload()
        await until(lambda: _shows(daemon, 0.0), "that it cannot be written")
        assert await market.billing() == []
        (small / "filler").unlink()
        await until(lambda: _shows(daemon, 1.0), "that it can")
        await until(market.billing, "a rent")
        assert await daemon.stop() == 0
