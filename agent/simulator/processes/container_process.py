"""The real side of one simulated instance: its disk, its ports, its log and its processes, over all of its starts."""

import asyncio
import contextlib
import dataclasses
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from agent.simulator.processes import printed_lines, supervisor

LONGEST_END_SECONDS = 60.0
"""A killed process that is not dead by then hangs in the machine's kernel."""
_PIECE = 64 * 1024
_MOST_LEFT = 2 * printed_lines.MOST_BYTES
_ADDRESS = "127.0.0.1"


@dataclasses.dataclass(frozen=True, slots=True)
class Start:
    """The start of a container: a command as its first process, or a script beside a first process that stays."""

    command: Sequence[str] = ()
    script: str = ""
    env: Mapping[str, str] = dataclasses.field(default_factory=dict)


class ContainerProcess:
    """One instance's processes. A volume outlives its container; without one the whole disk is the container's."""

    def __init__(
        self,
        folder: Path,
        ports: Iterable[int],
        *,
        has_volume: bool,
        now: Callable[[], float],
        isolates: bool = True,
        shared: Path | None = None,
    ) -> None:
        """Make an empty disk and reserve the ports. A `shared` folder takes the place of the instance's own volume."""
        self._folder = folder
        if not _remove(folder):
            raise FileExistsError(f"{folder} cannot be removed")
        self.home = folder / "root" if has_volume or shared else folder
        self.place = shared or (folder / "workspace" if has_volume else folder)
        self._restore()
        self._doors = {port: _reserved() for port in ports}
        self._now = now
        self._isolates = isolates
        self._lines = printed_lines.PrintedLines()
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_idle = False
        self._is_refused = False
        self.starts = 0

    @property
    def ports(self) -> Mapping[int, int]:
        """Return {port of the container: port on loopback}."""
        return {port: door.getsockname()[1] for port, door in self._doors.items()}

    @property
    def is_alive(self) -> bool:
        """Return whether any process of the container is alive."""
        return self._supervisor is not None and self._supervisor.poll() is None

    @property
    def has_ended(self) -> bool:
        """Return whether the first process of the container has ended by itself, or could not begin."""
        return self._is_refused or (self._supervisor is not None and self._supervisor.poll() is not None)

    @property
    def is_busy(self) -> bool:
        """Return whether anything of the workload runs."""
        if self._line is not None and not self._is_idle:
            with contextlib.suppress(OSError):
                self._is_idle = self._line.recv(1, socket.MSG_DONTWAIT) == supervisor.IDLE
        return self.is_alive and not self._is_idle

    def printed(self) -> tuple[int, Sequence[tuple[float, str]]]:
        """Return how many lines were dropped, and time and text of those after them."""
        return self._lines.dropped, self._lines.lines()

    def start(self, start: Start) -> None:
        """Run the container on its disk, with nothing of our own environment; its log begins anew."""
        self.kill()
        try:
            self._restore()
        except OSError as error:
            self.refuse(f"the disk cannot be used: {error}")
            return
        self._lines.clear()
        self.starts += 1
        self._is_idle = False
        order = {
            "command": list(start.command),
            "script": start.script,
            "env": dict(start.env),
            "folder": str(self.place),
            "isolates": self._isolates,
        }
        self._line, theirs = socket.socketpair()
        with theirs:
            self._supervisor = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-I", "-S", supervisor.__file__],
                stdin=theirs.fileno(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={},
                start_new_session=True,
            )
        with contextlib.suppress(OSError):
            self._line.sendall(json.dumps(order).encode() + b"\n")
        self._loop = asyncio.get_running_loop()
        os.set_blocking(self._output, False)
        self._loop.add_reader(self._output, self._read)

    def refuse(self, sentence: str) -> None:
        """Print a sentence instead of a start."""
        self.kill()
        self._lines.clear()
        self.starts += 1
        self._is_refused = True
        self._say(sentence)

    def terminate(self) -> None:
        """Send SIGTERM to the container's first process."""
        if self._line is not None:
            with contextlib.suppress(OSError):
                self._line.send(supervisor.TERMINATE)

    def kill(self) -> None:
        """Kill every process; return when all are dead."""
        self._is_refused = False
        if self._supervisor is None or self._line is None:
            return
        with contextlib.suppress(OSError):
            self._line.send(supervisor.KILL)
        self._line.close()
        self._supervisor.wait(LONGEST_END_SECONDS)
        self._drain()
        self._supervisor = self._line = None

    def wipe(self) -> None:
        """Empty the container's own disk; a volume keeps its files."""
        self.kill()
        try:
            self._restore()
            left = [str(each) for each in self.home.iterdir() if not _remove(each)]
        except OSError as error:
            left = [str(error)]
        if left:
            self._say(f"the disk is not empty: {', '.join(left)}")

    def remove(self) -> None:
        """Kill everything, remove every file that may be removed, and give the ports back."""
        self.kill()
        if not _remove(self._folder):
            self._say(f"the disk is not removed: {self._folder}")
        for door in self._doors.values():
            door.close()
        self._doors = {}

    def _restore(self) -> None:
        """Recreate the folders that the workload removed or replaced, and reopen those that it closed."""
        for each in (self._folder, self.home, self.place):
            # A link may lead out of the disk.
            if each.is_symlink() or not each.is_dir():
                each.unlink(missing_ok=True)
                each.mkdir(mode=0o700)
            each.chmod(each.stat().st_mode | 0o700)

    def _say(self, sentence: str) -> None:
        self._lines.take(sentence.encode(errors="replace") + b"\n", self._now())

    @property
    def _output(self) -> int:
        if self._supervisor is None or self._supervisor.stdout is None:
            raise RuntimeError("nothing was started")
        return self._supervisor.stdout.fileno()

    def _read(self) -> None:
        piece = self._piece()
        if piece:
            self._lines.take(piece, self._now())
        elif piece is not None:
            self._listen_no_more()

    def _piece(self) -> bytes | None:
        """Return new output: empty bytes at its end, None while there is none."""
        try:
            return os.read(self._output, _PIECE)
        except BlockingIOError:
            return None

    def _drain(self) -> None:
        """Read the output that dead processes left behind."""
        left = 0
        while left < _MOST_LEFT and (piece := self._piece()):
            self._lines.take(piece, self._now())
            left += len(piece)
        self._lines.end(self._now())
        self._listen_no_more()
        if self._supervisor is not None and self._supervisor.stdout is not None:
            self._supervisor.stdout.close()

    def _listen_no_more(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._output)


def _reserved() -> socket.socket:
    """Take a free port without listening: a process that sets SO_REUSEADDR, as servers do, may listen on it."""
    door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    door.bind((_ADDRESS, 0))
    return door


def _remove(path: Path) -> bool:
    """Remove a file or a folder as far as possible; return whether it is gone. Closed folders are opened first."""
    if path.is_symlink() or not path.is_dir():
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
    else:
        _open(path)
        for folder, names, _ in os.walk(path):
            for name in names:
                _open(Path(folder, name))
        shutil.rmtree(path, ignore_errors=True)
    return not (path.is_symlink() or path.exists())


def _open(folder: Path) -> None:
    # A folder of another user stays closed. A link may lead out of the disk.
    with contextlib.suppress(OSError):
        if not folder.is_symlink():
            folder.chmod(0o700)
