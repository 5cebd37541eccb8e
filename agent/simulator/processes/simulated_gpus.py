"""The GPUs of a simulated host as its driver shows them to a container: the truth, or a lie of the weather."""

import dataclasses
import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agent.simulator.processes import simulated_driver

VARIABLE = "SIM_GPUS"
DRIVER, POWER_WATTS = "550.90.07", 300.0
"""Used where a market's model has neither. Assumed."""


@dataclasses.dataclass(frozen=True, slots=True)
class SimulatedGpus:
    """Cards of one model in one container."""

    name: str
    count: int
    memory_mb: int
    driver: str = DRIVER
    power_watts: float = POWER_WATTS
    errors: int = 0

    @property
    def driver_value(self) -> str:
        """Return the value of SIM_GPUS for the container's driver."""
        return json.dumps(dataclasses.asdict(self))


def shown(truth: SimulatedGpus, machine_id: int, lies: Iterable[Mapping[str, Any]]) -> SimulatedGpus:
    """Return the GPUs that a machine's driver shows. The newest lie about the machine wins."""
    gpus = truth
    for lie in lies:
        if lie.get("machine_id") in (None, machine_id):
            gpus = dataclasses.replace(
                truth,
                name=str(lie.get("gpu", truth.name)),
                count=int(lie.get("gpus", truth.count)),
                errors=int(lie.get("errors", truth.errors)),
            )
    return gpus


def driver_name(model: str) -> str:
    """Return a market's name of a model as a driver writes it."""
    words = model.split()
    is_geforce = words[:1] in (["RTX"], ["GTX"]) and "".join(words[1:2])[:1].isdigit() and "ADA" not in model.upper()
    return f"NVIDIA {'GeForce ' if is_geforce else ''}{model}"


def put_driver(folder: Path) -> None:
    """Write the program that containers find as `nvidia-smi`. That of an earlier run may name a Python that is gone."""
    folder.mkdir(mode=0o700, exist_ok=True)
    program = folder / f"nvidia-smi.{os.getpid()}"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{simulated_driver.__file__}" "$@"\n')
    program.chmod(0o755)
    program.replace(folder / "nvidia-smi")


def path_with(folder: Path) -> str:
    """Return our PATH with the simulated programs before it."""
    return f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
