"""Starts our programs as separate processes, forked from one that has already imported the libraries and our modules.

A cold start takes about a second of processor time, nearly all of it imports. A program starts cold if GPUBID_COLD is
set, for the whole run or for that program, and if its environment has other settings for Python or asks for coverage.
"""

import asyncio
import atexit
import ctypes
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of Linux: orphans below this process become its children."""
HEEDED = {"PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHONUNBUFFERED"}
"""Variables that Python reads at its start, and that a forked program respects too or does not need."""
COLD = {"GPUBID_COLD": "1"}
"""The variable of a program that must start cold."""
_ASKING = threading.Lock()


class Forked:
    """A forked program, with the part of `asyncio.subprocess.Process` that tests use."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin = None
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None
        self._loop = asyncio.get_running_loop()
        self._end: asyncio.Future[int] = self._loop.create_future()
        self._watch = os.pidfd_open(pid)
        self._loop.add_reader(self._watch, self._ended)

    def _ended(self) -> None:
        self._loop.remove_reader(self._watch)
        os.close(self._watch)
        _, status = os.waitpid(self.pid, 0)
        self.returncode = os.waitstatus_to_exitcode(status)
        self._end.set_result(self.returncode)

    async def wait(self) -> int:
        """Wait for the program's end and return its exit code."""
        return await asyncio.shield(self._end)

    async def communicate(self) -> tuple[bytes, bytes]:
        """Return everything that the program wrote, once it has ended."""
        out, err = await asyncio.gather(*(self._all(stream) for stream in (self.stdout, self.stderr)))
        await self.wait()
        return out, err

    @staticmethod
    async def _all(stream: asyncio.StreamReader | None) -> bytes:
        return b"" if stream is None else await stream.read()

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


Process = asyncio.subprocess.Process | Forked


async def start(
    module: str,
    *arguments: str,
    folder: Path,
    environment: Mapping[str, str],
    stdin: int = asyncio.subprocess.DEVNULL,
    stdout: int = asyncio.subprocess.PIPE,
    stderr: int | None = asyncio.subprocess.PIPE,
) -> Process:
    """Start `python -m MODULE ARGUMENTS`. Each stream may be an open file of ours. `stderr` None means our own."""
    if not _can_be_forked(environment):
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module, *arguments),
            cwd=folder,
            env=environment,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
        )
    with Path(os.devnull).open("r+b", 0) as nothing:  # noqa: ASYNC230
        there = _ends(stdin, nothing)[1]
        out, err = _ends(stdout, nothing), (None, 2) if stderr is None else _ends(stderr, nothing)
        forked = Forked(_fork(_request(module, arguments, folder, environment), (there, out[1], err[1])))
    forked.stdout, forked.stderr = await _read(out), await _read(err)
    return forked


class Typed:
    """A program at a terminal, with the part of `subprocess.Popen` that tests use."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return the program's exit code, or None while it runs."""
        if self._code is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def kill(self) -> None:
        """End it, unless it has ended."""
        if self.poll() is None:
            os.kill(self._pid, signal.SIGKILL)


def at_terminal(
    module: str, *arguments: str, folder: Path, environment: Mapping[str, str], terminal: int
) -> "Typed | subprocess.Popen[bytes]":
    """Start `python -m MODULE ARGUMENTS` with all three streams at a terminal."""
    if _can_be_forked(environment):
        return Typed(_fork(_request(module, arguments, folder, environment), (terminal, terminal, terminal)))
    words = [sys.executable, "-m", module, *arguments]
    return subprocess.Popen(words, cwd=folder, env=environment, stdin=terminal, stdout=terminal, stderr=terminal)


def _request(module: str, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> bytes:
    asked = {"module": module, "arguments": arguments, "folder": str(folder), "environment": dict(environment)}
    return json.dumps(asked).encode()


def _can_be_forked(environment: Mapping[str, str]) -> bool:
    is_cold = "GPUBID_COLD" in os.environ or "GPUBID_COLD" in environment
    has_words = any((name[:6] == "PYTHON" and name not in HEEDED) or name[:3] == "COV" for name in environment)
    return sys.platform == "linux" and not is_cold and not has_words


def _ends(where: int, nothing: BinaryIO) -> tuple[BinaryIO | None, int]:
    if where == asyncio.subprocess.DEVNULL:
        return None, nothing.fileno()
    if where != asyncio.subprocess.PIPE:
        return None, where
    here, there = os.pipe()
    return os.fdopen(here, "rb", 0), there


async def _read(ends: tuple[BinaryIO | None, int]) -> asyncio.StreamReader | None:
    pipe, there = ends
    if pipe is None:  # the file is not ours to close
        return None
    os.close(there)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader


def _fork(request: bytes, files: Sequence[int]) -> int:
    with _ASKING:
        link = _prepared()
        socket.send_fds(link, [request], list(files))
        return int(link.recv(32))


@functools.cache
def _prepared() -> socket.socket:
    """Start the process that has the libraries. It ends with this process."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(SUBREAPER, 1, 0, 0, 0) == 0, os.strerror(ctypes.get_errno())
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    script = Path(__file__).with_name("forkserver.py")
    # OpenBLAS must have no threads that a fork would lose.
    environment = {name: value for name, value in os.environ.items() if name[:6] != "PYTHON"}
    environment["OPENBLAS_NUM_THREADS"] = "1"
    with theirs:
        server = subprocess.Popen(
            [sys.executable, str(script), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
        )

    def end() -> None:
        ours.close()
        server.wait()

    atexit.register(end)
    return ours
