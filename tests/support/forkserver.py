"""A process that has imported the libraries, and forks into the programs that `launch.py` starts.

1. A forked program is an orphan at once. The requesting process is the parent of orphans and waits for it.
2. A forked program has its own arguments, folder, environment and files.
3. All of our code except APART is imported before the fork: importing it reads no environment, clock or file, and
   starts no thread.
4. A forked program that ends with a number runs Python's exit handlers and then frees nothing. Freeing took two thirds
   of the processor time of a short program, because it copies every shared page.
"""

import sys

sys.path.pop(0)  # this folder is none of the program's

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import site
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any

LIBRARIES = (
    *("aiohttp", "aiohttp.web", "alembic.command", "alembic.config", "alembic.ddl.sqlite", "alembic.runtime.migration"),
    *(
        "apscheduler.schedulers.asyncio",
        "apscheduler.triggers.interval",
        "jinja2",
        "jinja2.sandbox",
        "msgspec",
        "numpy",
    ),
    *("prometheus_client", "pydantic", "pydantic.dataclasses", "rich.console", "rich.table", "sqlalchemy"),
    *("sqlalchemy.dialects.sqlite", "structlog", "typer", "typer.rich_utils", "typer.main"),
    *("Crypto.Hash.SHA256", "Crypto.PublicKey.RSA", "distutils.util", "psutil", "requests"),
    *("concurrent.futures", "fractions", "random", "sqlite3", "ssl", "statistics", "tomllib", "uuid"),
)
OURS = ("agent", "strategies")
APART = ("agent.__main__", "agent.lab", "agent.guard")
"""Modules that run as programs, and modules that few programs need."""
MOST_BYTES = 1_000_000


def serve(link: socket.socket) -> dict[str, Any] | None:
    """Fork once for each request. Return the request in the forked program, or None after the last request."""
    while True:
        message, files, _, _ = socket.recv_fds(link, MOST_BYTES, 3)
        if not message:
            return None
        if not (pid := _forked()):
            link.close()
            _take(files)
            return dict(json.loads(message))
        for file in files:
            os.close(file)
        link.send(str(pid).encode())


def _forked() -> int:
    """Fork an orphan. Return its process id, or 0 in the orphan."""
    there, here = os.pipe()
    between = os.fork()
    if not between:
        if not (pid := os.fork()):
            os.close(there)
            os.close(here)
            return 0
        os.write(here, str(pid).encode())
        os._exit(0)
    os.waitpid(between, 0)
    pid = int(os.read(there, 32))
    os.close(there)
    os.close(here)
    return pid


def _take(files: Sequence[int]) -> None:
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(  # type: ignore[misc]  # noqa: SIM115
        2, "w", buffering=1, errors="backslashreplace", closefd=False
    )


def become(request: dict[str, Any]) -> None:
    """Run a module as `python -m` does."""
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    before = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:0] = [request["folder"], *before]
    if before:
        sys.modules.pop("sitecustomize", None)  # Debian's Python has one of its own
        site.execsitecustomize()
    sys.argv = [request["module"], *request["arguments"]]
    if not hasattr(sys.modules.get(request["module"]), "__path__"):
        sys.modules.pop(request["module"], None)  # it is to be run anew, under the name of the program
    code: object = 0
    try:
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    _end(code)


def _end(code: object) -> None:
    """End as Python does, but do not free memory if the exit code is a number."""
    if code is None or isinstance(code, int):
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit((code or 0) & 0xFF)
    sys.exit(code)  # type: ignore[arg-type]


def prepare() -> None:
    """Import the modules that programs need, without the garbage collector: it took a fifth of the time."""
    gc.disable()
    for library in LIBRARIES:
        importlib.import_module(library)
    for name in OURS:
        _import_all(name)
    _build_commands()
    gc.enable()
    gc.collect()
    gc.freeze()


def _build_commands() -> None:
    """Build the tree of verbs before the fork: half of the processor time of a short one went there."""
    typer_main: Any = importlib.import_module("typer.main")
    app = importlib.import_module("agent.cli.main").app
    build, built = typer_main.get_command, typer_main.get_command(app)
    typer_main.get_command = lambda asked: built if asked is app else build(asked)


def _import_all(name: str) -> None:
    package = importlib.import_module(name)
    for found in pkgutil.iter_modules(package.__path__, f"{name}."):
        if found.name in APART:
            continue
        if found.ispkg:
            _import_all(found.name)
        else:
            importlib.import_module(found.name)


if __name__ == "__main__":
    prepare()
    asked = serve(socket.socket(fileno=int(sys.argv[1])))
    if asked is not None:
        become(asked)
