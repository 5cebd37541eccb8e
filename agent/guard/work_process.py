"""The work: one command in a process group of its own, below the guard."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
from dataclasses import dataclass
from typing import Iterator, Mapping, Sequence

from agent.guard.guard_output import GuardOutput
from agent.guard.reaper import Reaper, die_with_parent

NOT_EXECUTABLE, NOT_FOUND = 126, 127
LAST_OUTPUT_SECONDS = 2.0
"""A process that left the group may hold the output open for ever."""
_FIELD = re.compile(r"^(Pid|NSpid|PPid|SigCgt):\s*([^\n]*)$", re.MULTILINE)


@dataclass(frozen=True)
class WorkCommand:
    """The command to start: its words, and its environment."""

    words: Sequence[str]
    environment: Mapping[str, str]


class WorkProcess:
    """One start of the command."""

    def __init__(self, command: WorkCommand, reaper: Reaper) -> None:
        """Start it; raise OSError where it cannot be."""
        self._reaper = reaper
        self.was_asked = False
        self._printing: threading.Thread | None = None
        self._process = reaper.start(
            lambda: subprocess.Popen(  # noqa: S603 - the tenant's command is what is asked for
                list(command.words),
                env=dict(command.environment),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                restore_signals=True,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - one call of the kernel, looked up before
            )
        )

    def print_to(self, output: GuardOutput) -> None:
        """Let its output be passed on."""
        if self._process.stdout is not None and self._process.stderr is not None:
            # The descriptors outlive the objects: a daemon of the work may print after its end.
            sources = os.dup(self._process.stdout.fileno()), os.dup(self._process.stderr.fileno())
            self._process.stdout.close()
            self._process.stderr.close()
            self._printing = output.pass_on({sources[0]: 1, sources[1]: 2})

    def end(self) -> None:
        """Kill the rest of the group, as the end of a container would, and pass on its last output."""
        self.signal(signal.SIGKILL)
        self._reaper.reap()
        if self._printing is not None:
            self._printing.join(LAST_OUTPUT_SECONDS)

    @property
    def code(self) -> int | None:
        """Return the exit code of the command, negative for a signal, or None while it runs."""
        return self._reaper.code(self._process)

    @property
    def has_others(self) -> bool:
        """Return whether anything of its process group is alive."""
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def signal(self, number: int) -> None:
        """Send a signal to the whole group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def ask(self) -> bool:
        """Send SIGUSR1 to the topmost processes that handle it; it would end any other. Return whether one does."""
        asked = False
        for number in _handlers(self._process.pid, signal.SIGUSR1):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                self.was_asked = True
                os.kill(number, signal.SIGUSR1)
                asked = True
        return asked


@dataclass(frozen=True)
class _Process:
    """A process as /proc shows it: its number there, those by PID namespace from the outermost on, its parent."""

    number: int
    numbers: tuple[int, ...]
    parent: int
    caught: int


def _handlers(top: int, number: int) -> Iterator[int]:
    """Yield the topmost processes at and below one that handle a signal; none if /proc does not show them.

    The /proc of a container may be that of the machine, where all numbers differ. We are found in it as `self`, and the
    others by their place below us.
    """
    own = _process("self")
    if own is None:
        return
    depth = len(own.numbers) - 1
    children: dict[int, list[_Process]] = {}
    for process in filter(None, map(_process, _names())):
        if len(process.numbers) > depth:
            children.setdefault(process.parent, []).append(process)
    ahead = [process for process in children.get(own.number, []) if process.numbers[depth] == top]
    while ahead:
        process = ahead.pop()
        if process.caught >> (number - 1) & 1:
            yield process.numbers[depth]
        else:
            ahead.extend(children.pop(process.number, ()))


def _names() -> list[str]:
    try:
        return [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - names are enough
    except OSError:
        return []


def _process(name: str) -> _Process | None:
    fields: dict[str, str] = dict(_FIELD.findall(_read(f"/proc/{name}/status")))
    try:
        number = int(fields["Pid"])
        numbers = tuple(map(int, fields.get("NSpid", fields["Pid"]).split()))
        return _Process(number, numbers, int(fields["PPid"]), int(fields["SigCgt"], 16))
    except (KeyError, ValueError):
        return None


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - many, and short
            return file.read(65_536)
    except OSError:
        return ""
