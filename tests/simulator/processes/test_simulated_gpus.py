"""The `nvidia-smi` of simulated containers."""

import os
import sys
from pathlib import Path

from agent.simulator.processes import simulated_gpus


def test_a_driver_of_an_earlier_run_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nexec /gone/python\n")
    for _ in range(2):
        simulated_gpus.put_driver(tmp_path)
    assert sys.executable in (tmp_path / "nvidia-smi").read_text()
    assert os.access(tmp_path / "nvidia-smi", os.X_OK)
    assert [path.name for path in tmp_path.iterdir()] == ["nvidia-smi"]
