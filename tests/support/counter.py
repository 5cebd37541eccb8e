"""A tiny workload for real processes: it counts into a file on its disk, and goes on where that file says."""

import sys
from pathlib import Path

from agent.simulator.processes.process_registry import ProcessRegistry
from agent.simulator.simulated_clock import ScaledClock

_CODE = """
import os, time
count = int(open("count").read()) if os.path.exists("count") else 0
print("from", count, flush=True)
while True:
    count += 1
    with open("count.new", "w") as out:
        out.write(str(count))
    os.replace("count.new", "count")
    time.sleep(0.02)
"""


def command(mark: str) -> list[str]:
    """Return the counter's command line; `mark` is a word in it by which its processes are found."""
    return python(_CODE, mark)


def python(code: str, *words: str) -> list[str]:
    """Return the command line of a Python program that starts quickly."""
    return [sys.executable, "-I", "-S", "-c", code, *words]


def counted(disk: Path) -> int:
    """Return how far it counted on a disk."""
    file = disk / "count"
    return int(file.read_text()) if file.exists() else 0


def alive(mark: str) -> list[int]:
    """Return the numbers of the processes that have a word in their command line; a dead one has none."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and mark.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


class Registry:
    """What a test hands to a market so that its containers run; keeps what was made."""

    def __init__(self, folder: Path, *, isolates: bool = True, most_running: int = 4) -> None:
        """Keep disks in a folder."""
        self.folder = folder
        self._isolates = isolates
        self._most_running = most_running

    def __call__(self, clock: ScaledClock) -> ProcessRegistry:
        """Make the registry of a market."""
        return ProcessRegistry(
            clock, speed=30.0, folder=self.folder, isolates=self._isolates, most_running=self._most_running
        )
