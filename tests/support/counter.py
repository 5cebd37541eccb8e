"""A tiny workload for real processes: it counts into a file on its disk, and continues from that file."""

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
    """Return the counter's command line. `mark` is a word in it that identifies its processes."""
    return python(_CODE, mark)


def python(code: str, *words: str) -> list[str]:
    """Return the command line of a Python program that starts quickly."""
    return [sys.executable, "-I", "-S", "-c", code, *words]


def counted(disk: Path) -> int:
    """Return the count on a disk."""
    file = disk / "count"
    return int(file.read_text()) if file.exists() else 0


def alive(mark: str) -> list[int]:
    """Return the ids of the processes with a word in their command line. A dead process has no command line."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and mark.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


class Registry:
    """A factory that a test gives to a market so that its containers run. It keeps the registry that it made."""

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
