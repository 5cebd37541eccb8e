"""The real processes of a simulator: their disks in one folder, the most that may run, and their common end.

A climate with `processes = true` runs the tenant's command on this machine, as the user of the simulator. Only
`gpubid simulate`, a rehearsal and tests make a registry; a simulator without one refuses such a climate.
"""

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from agent.simulator.processes import simulated_gpus
from agent.simulator.processes.container_process import ContainerProcess, Start
from agent.simulator.simulated_clock import Clock

MOST_RUNNING = 32
LEAST_SPEED, MOST_SPEED = 1.0, 30.0


class ProcessRegistry:
    """Makes and ends the real side of instances."""

    def __init__(
        self,
        clock: Clock,
        *,
        speed: float = 1.0,
        folder: Path | None = None,
        below: Path | None = None,
        isolates: bool = True,
        most_running: int = MOST_RUNNING,
    ) -> None:
        """Keep disks in `folder`, which is made and stays. Without one, a temporary folder is removed at the end.

        The temporary folder is made in `below`, which is made and stays; registries may share it. `speed` is simulated
        seconds per real second, as the processes read it. Without `isolates` no PID namespace is tried.
        """
        self._clock = clock
        self._speed = speed
        self._isolates = isolates
        self._most_running = most_running
        self._is_ours = folder is None
        if folder is None:
            if below is not None:
                below.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix="gpubid-simulated-", dir=below))
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder = folder.resolve()
        self._programs = self.folder / ".programs"
        self._made: dict[str, ContainerProcess] = {}

    def made(self, name: str, ports: Iterable[int], *, has_volume: bool, shared: str = "") -> ContainerProcess:
        """Return the processes of the instance of that name, which is also its folder; its disk is empty at first.

        `shared` names a volume that all instances share which name it; it stays until the registry is closed.
        """
        if name not in self._made:
            self._made[name] = ContainerProcess(
                self.folder / name,
                ports,
                has_volume=has_volume,
                now=self._clock.time,
                isolates=self._isolates,
                shared=self.folder / shared if shared else None,
            )
        return self._made[name]

    def start(self, process: ContainerProcess, start: Start, *, port_names: Iterable[str]) -> None:
        """Run a container; `port_names` are the vendor's variables for a port, with {} for its number.

        PATH is that of our environment with the simulated `nvidia-smi` before it. Then come the variables of the tenant
        and the market, and last those of the simulator: SIM_SPEED, SIM_DISK, SIM_PORT_n.
        """
        process.kill()
        simulated_gpus.put_driver(self._programs)
        if sum(each.is_alive for each in self._made.values()) >= self._most_running:
            process.refuse(f"the simulator runs at most {self._most_running} containers at once: this one does not run")
            return
        simulated = {
            "HOME": str(process.home),
            "SIM_DISK": str(process.place),
            "SIM_SPEED": f"{self._speed:g}",
            **{
                name.format(inside): str(outside)
                for inside, outside in process.ports.items()
                for name in ("SIM_PORT_{}", *port_names)
            },
        }
        env = {"PATH": simulated_gpus.path_with(self._programs), **_usable(start.env), **simulated}
        process.start(Start(start.command, start.script, env))

    def close(self) -> None:
        """Kill everything, then remove every disk; what cannot be removed stays."""
        # One that hangs in the machine's kernel must not save the others.
        for process in self._made.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.kill()
        for process in self._made.values():
            with contextlib.suppress(subprocess.TimeoutExpired, OSError):
                process.remove()
        self._made.clear()
        shutil.rmtree(self._programs, ignore_errors=True)
        if self._is_ours:
            shutil.rmtree(self.folder, ignore_errors=True)


def _usable(env: Mapping[str, str]) -> dict[str, str]:
    """Drop variables that no environment can hold, and arguments for a container among the variables."""
    return {
        name: text
        for name, text in env.items()
        if name and not name.startswith("-") and "=" not in name and "\0" not in name + text
    }
