"""The guard as in a container: its archive, run by Python, with a command, and with a folder as the disk."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agent.config import guard_archive

PATIENCE_SECONDS = 120.0
ROOT = "prefix/fleet/train/0/1"
SPEED = 50.0
"""Seconds of the guard in a real second. Beats and looks are faster by this factor."""


def until(ask: Callable[[], Any], what: str, text: Callable[[], str] = str) -> Any:
    """Return the first true answer, asked for a bounded time. `text` explains a failure."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"never seen: {what}: {text()[-3000:]}"
        time.sleep(0.02)
    return answer


class Guarded:
    """One start of a guard. Its output goes to a file."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log

    def text(self) -> str:
        return self._log.read_text(errors="replace")

    def beats(self) -> list[dict[str, Any]]:
        """Return the beats in the log."""
        lines = [line for line in self.text().splitlines(keepends=True) if line.startswith("gpubid-guard {")]
        return [json.loads(line.partition(" ")[2]) for line in lines if line.endswith("\n")]

    def said(self, part: str) -> None:
        """Wait until the guard has printed a text."""
        until(lambda: part in self.text(), repr(part), self.text)

    def phase(self, phase: str) -> dict[str, Any]:
        """Wait for a beat of a phase, and return it."""
        found = until(lambda: [beat for beat in self.beats() if beat["phase"] == phase], phase, self.text)
        return dict(found[0])

    def ended(self) -> int:
        """Wait for the guard's end, and return the exit code."""
        return self.process.wait(PATIENCE_SECONDS)


class Instance:
    """A disk, and the starts of guards on it."""

    def __init__(self, place: Path, python: str = sys.executable) -> None:
        place.mkdir(parents=True, exist_ok=True)
        self.place = place
        self.home = place / "home"
        self.work = place / "work"
        self.work.mkdir(exist_ok=True)
        self.archive = place / guard_archive.NAME
        self.archive.write_bytes(guard_archive.packed())
        self._python = python
        self._starts = 0

    def settings(self, **changes: Any) -> dict[str, Any]:
        return {
            "version": 1,
            "paths": [str(self.work)],
            "complete": None,
            "ask": "SIGUSR1",
            "keep": 2,
            "final_within_seconds": 8,
            "done_codes": [0],
            "interval_seconds": 300,
            "bucket": None,
            "rclone": None,
            "lease": "L1",
            "run": 1,
            "manifest_exists": False,
            **changes,
        }

    @contextlib.contextmanager
    def started(
        self,
        *command: str,
        env: Any = None,
        before: Any = (),
        store: Any = None,
        **changes: Any,
    ) -> Iterator[Guarded]:
        """Run a command under the guard. At the end all its processes are killed."""
        self._starts += 1
        if store is not None:
            changes.setdefault("bucket", store.place(ROOT))
        log = self.place / f"log-{self._starts}"
        environment = {
            "PATH": os.environ["PATH"],
            "GPUBID_GUARD_HOME": str(self.home),
            "GPUBID_GUARD": json.dumps(self.settings(**changes)),
            "SIM_SPEED": f"{SPEED:g}",
            **(store.keys if store is not None else {}),
            **(env or {}),
        }
        words = [*before, self._python, "-I", "-S", str(self.archive), "--", *command]
        with log.open("wb") as out:
            process = subprocess.Popen(
                words, env=environment, cwd=self.place, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
            )
        try:
            yield Guarded(process, log)
        finally:
            # The end of a container kills all of it. The guard's own death ends only what it started itself.
            below = _below(process.pid)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            for number in below:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
            process.wait(PATIENCE_SECONDS)


def _below(top: int) -> list[int]:
    """Return the processes below one; the guard adopts every orphan of its work."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    found, ahead = [], [top]
    while ahead:
        mine = children.get(ahead.pop(), [])
        found += mine
        ahead += mine
    return found
