"""The parent of one simulated container's processes, as a separate program. Standard library only.

1. Standard input is the connection to the simulator. It carries the order as JSON and a newline, then the letters T
   (SIGTERM) and K (the end). A closed connection means K: no process outlives the simulator, even after SIGKILL.
2. It ends only once every process of the container is dead, with the exit code of the first one.
3. Where the machine allows it, the container has a PID namespace, whose processes all die with the first. Elsewhere the
   supervisor adopts processes that leave the process group, and kills them by their numbers.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

SET_DEATH_SIGNAL, SET_CHILD_SUBREAPER = 1, 36
NEW_USER_NAMESPACE, NEW_PID_NAMESPACE = 0x10000000, 0x20000000
LINE = 0
TERMINATE, KILL, IDLE = b"T", b"K", b"I"
CANNOT_START = 127
_LIBC = ctypes.CDLL(None, use_errno=True)


def main() -> NoReturn:
    """Run one container to its end."""
    line = _Line()
    order = json.loads(line.first())
    _LIBC.prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    is_isolated = bool(order["isolates"]) and isolate()
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes)
    first = os.fork()
    if first == 0:
        _contain(order, is_isolated=is_isolated)
    # The log ends when the container's processes do, so nobody else may hold it open.
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    code = _watch(first, line, woken)
    if code is None:
        code = _end(first, is_isolated=is_isolated)
    _end(None, is_isolated=is_isolated)
    os._exit(code)


class _Line:
    """The connection to the simulator, which sends the order, then single letters."""

    def __init__(self) -> None:
        self._received = b""

    def first(self) -> bytes:
        """Return the order. Exit if the connection closes without one."""
        while b"\n" not in self._received:
            if not (piece := os.read(LINE, 65_536)):
                sys.exit(0)
            self._received += piece
        order, _, self._received = self._received.partition(b"\n")
        return order

    def letters(self, *, is_due: bool) -> bytes:
        """Return the letters that came. A closed connection counts as K."""
        waiting, self._received = self._received, b""
        return waiting + ((os.read(LINE, 4_096) or KILL) if is_due else b"")


def isolate() -> bool:
    """Let the next child be the first of a PID namespace; False where the machine does not allow it."""
    if _LIBC.unshare(NEW_PID_NAMESPACE) == 0:
        return True
    # A user namespace without mapped ids would leave us the rights of nobody, so a child tries it first.
    trial = os.fork()
    if trial == 0:
        os._exit(0 if _isolate_as_user() else 1)
    return os.waitpid(trial, 0)[1] == 0 and _isolate_as_user()


def _isolate_as_user() -> bool:
    user, group = os.geteuid(), os.getegid()
    if _LIBC.unshare(NEW_USER_NAMESPACE | NEW_PID_NAMESPACE) != 0:
        return False
    maps = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
    try:
        for name, text in maps.items():
            with open(f"/proc/self/{name}", "w", encoding="ascii") as out:  # noqa: PTH123 - pathlib is slow to import
                out.write(text)
    except OSError:
        return False
    return True


def _watch(first: int, line: _Line, woken: int) -> int | None:
    """Pass letters on until the first process ends, and return its exit code; None once K came."""
    is_due = False
    while KILL not in (letters := line.letters(is_due=is_due)):
        if TERMINATE in letters:
            os.kill(first, signal.SIGTERM)
        ready, _, _ = select.select([LINE, woken], [], [])
        is_due = LINE in ready
        if woken in ready:
            os.read(woken, 4_096)
            if (code := _reaped(first)) is not None:
                return code
    return None


def _reaped(first: int) -> int | None:
    """Reap dead processes; return the exit code of the first process if it is among them."""
    code = None
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            if found[0] == first:
                code = _code(found[1])
    return code


def _end(first: int | None, *, is_isolated: bool) -> int:
    """Kill everything and wait until it is dead; return the code of the first process."""
    code = 0
    while True:
        for process in [each for each in (first,) if each is not None] if is_isolated else _children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        try:
            dead, status = os.waitpid(-1, 0)
        except ChildProcessError:
            return code
        if dead == first:
            first, code = None, _code(status)


def _children() -> list[int]:
    """Return the numbers of our children; those whose parent died are ours too."""
    mine, found = str(os.getpid()), []
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as read:  # noqa: PTH123
                # After the name in brackets, which may hold anything: the state and the parent.
                if read.read().rpartition(")")[2].split()[1] == mine:
                    found.append(int(name))
    return found


def _code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _contain(order: Mapping[str, Any], *, is_isolated: bool) -> NoReturn:
    """Be the first process of the container: the command itself, or one that stays when its script has ended."""
    os.setsid()
    _LIBC.prctl(SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    line = os.dup(LINE)
    os.dup2(os.open(os.devnull, os.O_RDONLY), LINE)
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.chdir(order["folder"])
    if order["command"]:
        _become(order["command"], order["env"])
    _stay(order, line, is_isolated=is_isolated)


def _stay(order: Mapping[str, Any], line: int, *, is_isolated: bool) -> NoReturn:
    """Run the script, reap the processes that it leaves behind, and stay."""
    _LIBC.prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def pass_on(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with contextlib.suppress(ProcessLookupError):
            # All of the namespace, or of our group.
            os.kill(-1 if is_isolated else 0, signal.SIGTERM)

    if order["script"] and os.fork() == 0:
        with contextlib.suppress(FileNotFoundError):
            os.execvpe("bash", ["bash", "-c", order["script"]], order["env"])  # noqa: S606, S607 - as in _become
        _become(["sh", "-c", order["script"]], order["env"])
    signal.signal(signal.SIGTERM, pass_on)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    with contextlib.suppress(OSError):
        os.write(line, IDLE)
    while True:
        signal.pause()


def _become(command: list[str], environment: Mapping[str, str]) -> NoReturn:
    try:
        os.execvpe(command[0], command, environment)  # noqa: S606 - the tenant's command is what is asked for
    except (OSError, ValueError) as error:
        os.write(2, f"cannot start {command[0]!r}: {error}\n".encode(errors="replace"))
        os._exit(CANNOT_START)


if __name__ == "__main__":
    main()
