"""Schedulers and workers of Dask on loopback: Dask's own commands, as processes that a test may kill.

They are forked from one process that has imported Dask and the lab, because a cold start takes seconds. `cold` starts a
worker without that, for another tree of files.
"""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support import ports

PARENT_DEATH = 1
"""PR_SET_PDEATHSIG of Linux."""
ROOT = Path(__file__).parents[2]


class Forker:
    """The process that forks the others. All end with it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        command = [sys.executable, "-m", "tests.support.dask_boxes"]
        pipe = subprocess.PIPE
        self._forker = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **environment}, stdin=pipe, stdout=pipe, text=True
        )

    def fork(self, module: str, words: list[str], before: str, log: Path) -> int:
        """Run a command of Dask, and return its pidfd. `before` is a function "module:name" to call first."""
        assert self._forker.stdin is not None
        assert self._forker.stdout is not None
        asked = {"module": module, "words": words, "before": before, "log": str(log)}
        self._forker.stdin.write(json.dumps(asked) + "\n")
        self._forker.stdin.flush()
        return os.pidfd_open(int(self._forker.stdout.readline()))

    def end(self) -> None:
        """End it, and with it every process that it forked."""
        self._forker.communicate()


@dataclass(slots=True)
class Boxes:
    """The processes of a cluster: their pidfds, by name."""

    folder: Path
    address: str
    forker: Forker
    alive: dict[str, int] = field(default_factory=dict)
    cold_ones: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    def scheduler(self) -> None:
        """Start the scheduler."""
        protocol, _, place = self.address.partition("://")
        host, _, port = place.partition(":")
        words = ["--host", host, "--port", port, "--protocol", protocol, "--no-dashboard", "--no-show"]
        self.alive["scheduler"] = self.forker.fork(
            "distributed.cli.dask_scheduler", words, "", self.folder / "scheduler.log"
        )

    def worker(self, name: str, *, threads: int = 1, before: str = "", port: int = 0) -> None:
        """Start a worker, at a port or at any. `before` is a function "module:name" that its process calls first."""
        words, log = [*self._worker(name, threads), "--worker-port", str(port)], self.folder / f"{name}.log"
        self.alive[name] = self.forker.fork("distributed.cli.dask_worker", words, before, log)

    def cold(self, name: str, tree: Path) -> None:
        """Start a worker whose program is in another tree of files."""
        command = [sys.executable, "-m", "distributed.cli.dask_worker", *self._worker(name, 1)]
        with (self.folder / f"{name}.log").open("wb") as log:
            environment = {**os.environ, "PYTHONPATH": str(tree)}
            started = subprocess.Popen(command, cwd=tree, env=environment, stdout=log, stderr=log)
        self.cold_ones.append(started)
        self.alive[name] = os.pidfd_open(started.pid)

    def kill(self, name: str) -> None:
        """End a process at once, if it has not ended by itself."""
        process = self.alive.pop(name)
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, signal.SIGKILL)
        os.close(process)

    def await_workers(self, count: int) -> None:
        """Wait until so many workers are connected."""
        import distributed

        with distributed.Client(self.address, set_as_default=False, timeout=60) as client:
            client.wait_for_workers(count, timeout=120)

    def _worker(self, name: str, threads: int) -> list[str]:
        place = ["--name", name, "--local-directory", str(self.folder / name), "--no-dashboard"]
        return [self.address, "--no-nanny", "--nthreads", str(threads), "--memory-limit", "0", *place]


@contextlib.contextmanager
def forking(**environment: str) -> Iterator[Forker]:
    """Yield a process that forks the others, and end them all."""
    forker = Forker(environment)
    try:
        yield forker
    finally:
        forker.end()


@contextlib.contextmanager
def boxes(forker: Forker, folder: Path, *names: str, protocol: str = "tcp") -> Iterator[Boxes]:
    """Start a scheduler and workers of these names, and kill what is left of them at the end.

    Over TCP, wait until they are connected.
    """
    found = Boxes(folder, f"{protocol}://127.0.0.1:{ports.free()}", forker)
    try:
        found.scheduler()
        for name in names:
            found.worker(name)
        if names and protocol == "tcp":
            found.await_workers(len(names))
        yield found
    finally:
        for name in list(found.alive):
            found.kill(name)
        for each in found.cold_ones:
            each.wait()


def main() -> None:
    """Fork a process for each line of the input."""
    import threading

    import distributed.cli.dask_scheduler
    import distributed.cli.dask_worker  # noqa: F401 - so that forks have it

    import agent.lab.deadline.deadline_problem
    import agent.lab.workers.dask_workers  # noqa: F401 - so that forks have it

    assert threading.active_count() == 1, "a fork has none of the threads, and waits for their locks"
    # Nobody waits for them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    own = os.getpid()
    for line in sys.stdin:
        if pid := os.fork():
            sys.stdout.write(f"{pid}\n")
            sys.stdout.flush()
            continue
        _forked(json.loads(line), own)


def _forked(asked: Mapping[str, str], parent: int) -> None:
    """Run a command in a forked process, and end with it."""
    import importlib

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(PARENT_DEATH, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    log = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), log, log)):
        os.dup2(file, number)
    if asked["before"]:
        module, _, name = asked["before"].partition(":")
        getattr(importlib.import_module(module), name)()
    importlib.import_module(asked["module"]).main(asked["words"], standalone_mode=False)
    os._exit(0)


if __name__ == "__main__":
    main()
