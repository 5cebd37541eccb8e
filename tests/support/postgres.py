"""A PostgreSQL server of Debian's package for one test, with its own folder, port and password."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.support import ports

PASSWORD = "f0und-4nd-n3v3r-sh0wn"
PACKAGED = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


def is_here() -> bool:
    """Return whether the package is installed."""
    return bool(PACKAGED)


@contextlib.contextmanager
def running() -> Iterator[str]:
    """Start a server and yield the address of an empty database."""
    # Not in pytest's folder: the package's user may not enter what root alone may.
    with tempfile.TemporaryDirectory(prefix="gpubid-postgres-") as place, _serving(Path(place)) as url:
        yield url


@contextlib.contextmanager
def _serving(place: Path) -> Iterator[str]:
    folder, word = place / "data", place / "password"
    word.write_text(PASSWORD)
    port = ports.free()
    if os.geteuid() == 0:
        # The server refuses to run as root.
        for each in (place, word):
            shutil.chown(each, "postgres", "postgres")
    _call(place, "initdb", "-D", str(folder), "-U", "lab", "-A", "scram-sha-256", "--pwfile", str(word), "-N")
    options = f"-h 127.0.0.1 -p {port} -k {place} -F"
    _call(place, "pg_ctl", "-D", str(folder), "-o", options, "-l", str(place / "log"), "-w", "start")
    try:
        yield f"postgresql+psycopg://lab:{PASSWORD}@127.0.0.1:{port}/postgres"
    finally:
        _call(place, "pg_ctl", "-D", str(folder), "-m", "immediate", "-w", "stop")


def _call(place: Path, program: str, *words: str) -> None:
    lower = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
    command = [*lower, str(PACKAGED[-1].with_name(program)), *words]
    # A started server keeps its streams open, so a pipe would never end.
    with (place / f"{program}.out").open("wb") as said:
        subprocess.run(command, check=True, stdout=said, stderr=said, cwd=place)
