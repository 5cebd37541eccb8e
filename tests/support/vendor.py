"""The vendor's own programs, run unmodified as subprocesses against a simulated market."""

import asyncio
import dataclasses
import os
import pathlib
import sys

from agent.simulator.vast.http import call_gate
from tests.support import launch

_PROGRAM, _ROOT = "tests.support.vastai_program", pathlib.Path(__file__).parents[2]
_FOLDERS = {"CONFIG": "config", "CACHE": "cache", "STATE": "state"}


@dataclasses.dataclass(frozen=True, slots=True)
class Ran:
    """The exit code and the output of a program."""

    code: int
    out: str
    err: str


@dataclasses.dataclass(frozen=True, slots=True)
class Vendor:
    """Runs the vendor's programs in a separate home."""

    url: str
    home: pathlib.Path
    key: str = call_gate.DEFAULT_KEY

    async def cli(self, *arguments: str) -> Ran:
        """Run `vastai ARGUMENTS`."""
        environment = {**self._environment(), "PYTHONPATH": str(_ROOT)}
        words = (*arguments, "--no-color")
        return await _ended(await launch.start(_PROGRAM, *words, folder=self.home, environment=environment))

    async def python(self, code: str) -> Ran:
        """Run a program that uses the vendor's package. It gets `url` and `key` in its environment."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", code), env=self._environment(), stdout=pipe, stderr=pipe
        )
        return await _ended(process)

    def _environment(self) -> dict[str, str]:
        # The vendor's program makes its folders unguarded: two that start at once in a new home fail each other.
        for folder in _FOLDERS.values():
            (self.home / folder / "vastai").mkdir(parents=True, exist_ok=True)
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            **{f"XDG_{kind}_HOME": str(self.home / folder) for kind, folder in _FOLDERS.items()},
            "VAST_URL": self.url,
            "VAST_API_KEY": self.key,
            "VASTAI_NO_UPDATE_CHECK": "1",
            "COLUMNS": "220",
        }


async def _ended(process: launch.Process) -> Ran:
    out, err = await asyncio.wait_for(process.communicate(), 120)
    return Ran(process.returncode or 0, out.decode(), err.decode())
