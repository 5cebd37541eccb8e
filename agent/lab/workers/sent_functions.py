"""Functions that are sent to workers and schedulers as code: what would this worker compute with?

They are not called by their names there, because a worker's own copy of this file could return anything. They use the
standard library and Dask alone, and return plain values.
"""

import hashlib
import importlib
import importlib.metadata
import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import distributed

STALE = "stale"
"""The key that is there only if files of the program are newer than the process, which may run the older ones."""
SHOWN = "gpubid_build"
"""The attribute of Dask's worker that keeps its build, because it is read once."""
SLACK_SECONDS = 2.0
"""What the start of a process may be wrong by: the kernel gives its own start in whole seconds."""


def build(packages: Sequence[str]) -> dict[str, str]:
    """Return versions and digests by name: `python`, `gpubid`, `file agent/app.py`; "missing" for what is not there.

    `packages` are the import names of the folders whose files count.
    """
    # Without the patch level, because no result differs by it.
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in ("gpubid", "distributed", "numpy", "scipy"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "missing"
    for each in importlib.metadata.entry_points(group="gpubid.strategies"):
        owner = "nobody" if each.dist is None else f"{each.dist.name} {each.dist.version}"
        found[f"strategy {each.name}"] = f"{each.value} of {owner}"
    newest = 0.0
    for package in packages:
        for name, path in _files(package):
            found[f"file {name}"] = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
            newest = max(newest, path.stat().st_ctime)
    if newest > _started() + SLACK_SECONDS:
        found[STALE] = "files of the program are newer than the process"
    return found


def _files(package: str) -> list[tuple[str, Path]]:
    """Return the files of a package by their names, or none if the package is missing.

    Hidden files, such as those that editors and tests leave, decide no result.
    """
    try:
        folders = importlib.import_module(package).__path__
    except (ImportError, AttributeError):
        return []
    return sorted(
        (f"{package}/{path.relative_to(folder).as_posix()}", path)
        for folder in map(Path, folders)
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    )


def _started() -> float:
    """Return the start of this process, in seconds since 1970."""
    born = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    booted = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime "))
    return int(booted.split()[1]) + born


def digest(shown: Mapping[str, str]) -> str:
    """Return the digest of a build."""
    return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()


def answer(
    compute: Callable[[bytes, Any], tuple[float, Any]],
    packed: bytes,
    part: Any,  # noqa: ANN401 - a part of any work
    packages: Sequence[str],
    wanted: str,
) -> dict[str, Any]:
    """Compute a part on a worker if its build has the wanted digest; else return the build.

    The fields are those of `dask_workers.Answer`.
    """
    here = distributed.get_worker()
    # A bench and the disasters ask for other packages of one worker.
    builds: dict[tuple[str, ...], dict[str, str]] = vars(here).setdefault(SHOWN, {})
    shown = builds.get(tuple(packages))
    if shown is None:
        shown = builds[tuple(packages)] = build(packages)
    is_alike = digest(shown) == wanted
    seconds, result = compute(packed, part) if is_alike else (0.0, None)
    return {
        "worker": here.address,
        "name": str(here.name),
        "threads": here.state.nthreads,
        "seconds": seconds,
        "result": result,
        "build": {} if is_alike else shown,
    }


def allow_failures(count: int, dask_scheduler: Any = None) -> None:  # noqa: ANN401 - Dask's own scheduler
    """Let a part be tried on so many lost workers. Dask's own three blame the part for what happens to machines."""
    dask_scheduler.allowed_failures = max(count, dask_scheduler.allowed_failures)
