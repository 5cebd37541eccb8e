"""The sleep of a machine counts as time: meanwhile machines bill, and nobody looks at them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SLEPT_SECONDS = 100_000
SHOWS = "import time; from agent.clock import SystemClock; print(SystemClock().monotonic() - time.monotonic())"


@pytest.mark.skipif(shutil.which("unshare") is None or os.geteuid() != 0, reason="takes root and unshare")
def test_the_clock_goes_on_while_the_machine_sleeps() -> None:
    asleep = ("unshare", "--time", "--fork", "--boottime", str(SLEPT_SECONDS))
    here = Path(__file__).parents[2]
    done = subprocess.run((*asleep, sys.executable, "-c", SHOWS), cwd=here, capture_output=True, text=True, check=False)
    if done.stderr.startswith("unshare"):
        pytest.skip(f"no namespace of time here: {done.stderr}")
    assert float(done.stdout) == pytest.approx(SLEPT_SECONDS, abs=60), done.stderr
