"""The vendor's own programs, run unmodified as subprocesses against a simulated market."""

import asyncio
import dataclasses
import os
import pathlib
import sys

from agent.simulator.vast.http import call_gate

_PROGRAM = pathlib.Path(sys.executable).parent / "vastai"
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
        return await self._run(str(_PROGRAM), *arguments, "--no-color")

    async def python(self, code: str) -> Ran:
        """Run a program that uses the vendor's package. It gets `url` and `key` in its environment."""
        return await self._run(sys.executable, "-c", code)

    async def _run(self, *command: str) -> Ran:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            **{f"XDG_{kind}_HOME": str(self.home / folder) for kind, folder in _FOLDERS.items()},
            "VAST_URL": self.url,
            "VAST_API_KEY": self.key,
            "VASTAI_NO_UPDATE_CHECK": "1",
            "COLUMNS": "220",
        }
        # The vendor's program makes its folders unguarded: two that start at once in a new home fail each other.
        for folder in _FOLDERS.values():
            (self.home / folder / "vastai").mkdir(parents=True, exist_ok=True)
        process = await asyncio.create_subprocess_exec(
            *command, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, err = await asyncio.wait_for(process.communicate(), 120)
        return Ran(process.returncode or 0, out.decode(), err.decode())
