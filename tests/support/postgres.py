"""A PostgreSQL server of Debian's package for one test, with its own folder, port and password, and its replicas."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
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
    with serving() as server:
        yield server.url.replace("postgresql:", "postgresql+psycopg:")


@dataclass(frozen=True, slots=True)
class Server:
    """One server: its own folder and port, and the addresses at which it listens."""

    place: Path
    port: int
    addresses: str = "127.0.0.1"

    @property
    def url(self) -> str:
        """The address of an empty database for the superuser."""
        return f"postgresql://lab:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start it; its folder is there."""
        options = f"-h {self.addresses} -p {self.port} -k {self.place} -F"
        self.control("-o", options, "-l", str(self.place / "log"), "-w", "start")

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self.control("-m", "immediate", "-w", "stop")

    def promote(self) -> None:
        """Let a replica take over."""
        self.control("-w", "promote")

    def copy(self, primary: "Server", name: str, *, slot: bool = False) -> None:
        """Fill its folder from a primary that it will follow under a name. Whatever it had is lost."""
        shutil.rmtree(self.place / "data", ignore_errors=True)
        source = f"host=127.0.0.1 port={primary.port} user=lab application_name={name}"
        words = ("-d", source, "-D", str(self.place / "data"), "-R", "-c", "fast", "-N")
        _call(self.place, "pg_basebackup", *words, *(("-C", "-S", name) if slot else ()))

    def control(self, *words: str) -> None:
        """Run pg_ctl."""
        _call(self.place, "pg_ctl", "-D", str(self.place / "data"), *words)

    def signal(self, process: int, number: int) -> None:
        """Send a signal to one of its processes."""
        os.kill(process, number)

    def processes(self, kind: str) -> list[int]:
        """Return the processes of a kind, such as `walreceiver`."""
        return _processes(int((self.place / "data" / "postmaster.pid").read_text().split()[0]), kind)


@contextlib.contextmanager
def serving(address: str = "") -> Iterator[Server]:
    """Start a server while the block runs. It listens on loopback, and at another address if one is given."""
    with _placed(address) as server:
        word = server.place / "password"
        word.write_text(PASSWORD)
        if os.geteuid() == 0:
            shutil.chown(word, "postgres", "postgres")
        words = ("-D", str(server.place / "data"), "-U", "lab", "-A", "scram-sha-256", "--pwfile", str(word), "-N")
        _call(server.place, "initdb", *words)
        if address:
            with (server.place / "data" / "pg_hba.conf").open("a") as rules:
                rules.write(f"host all all {address}/24 scram-sha-256\n")
        with _started(server):
            yield server


@contextlib.contextmanager
def following(primary: Server, name: str, *, slot: bool = False) -> Iterator[Server]:
    """Start a replica that streams from a server under a name, while the block runs; with a slot of that name."""
    with _placed() as server:
        server.copy(primary, name, slot=slot)
        with _started(server):
            _wait_until_it_streams(primary, name)
            yield server


def _wait_until_it_streams(primary: Server, name: str) -> None:
    """Wait until a server lists its replica: before that nobody could know that it has one."""
    import psycopg

    with psycopg.connect(primary.url, autocommit=True) as raw:
        query = "SELECT 1 FROM pg_stat_replication WHERE application_name = %s AND state = 'streaming'"
        for _ in range(600):
            if raw.execute(query, (name,)).fetchone() is not None:
                return
            time.sleep(0.05)
    raise AssertionError(f"the replica {name} does not stream after half a minute")


@contextlib.contextmanager
def receiving(primary: Server) -> Iterator[None]:
    """Let pg_receivewal store a server's log while the block runs."""
    with _placed() as server:
        words = ("-h", "127.0.0.1", "-p", str(primary.port), "-U", "lab", "-D", str(server.place))
        program = subprocess.Popen(_command("pg_receivewal", *words), cwd=server.place, env=_environment())
        try:
            yield
        finally:
            program.terminate()
            program.wait()


@contextlib.contextmanager
def _placed(address: str = "") -> Iterator[Server]:
    # Not in pytest's folder: the package's user may not enter what root alone may.
    with tempfile.TemporaryDirectory(prefix="gpubid-postgres-") as folder:
        if os.geteuid() == 0:
            # The server refuses to run as root.
            shutil.chown(folder, "postgres", "postgres")
        yield Server(Path(folder), ports.free(), ",".join(filter(None, ("127.0.0.1", address))))


@contextlib.contextmanager
def _started(server: Server) -> Iterator[None]:
    server.start()
    try:
        yield
    finally:
        if (server.place / "data" / "postmaster.pid").exists():
            server.kill()


def _processes(parent: int, kind: str) -> list[int]:
    listed = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(parent)], check=True, capture_output=True, text=True
    )
    rows = (line.split(maxsplit=1) for line in listed.stdout.splitlines())
    return [int(pid) for pid, words in rows if kind in words]


def _environment() -> dict[str, str]:
    return {**os.environ, "PGPASSWORD": PASSWORD}


def _command(program: str, *words: str) -> list[str]:
    lower = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
    return [*lower, str(PACKAGED[-1].with_name(program)), *words]


def _call(place: Path, program: str, *words: str) -> None:
    # A started server keeps its streams open, so a pipe would never end.
    with (place / f"{program}.out").open("wb") as said:
        subprocess.run(_command(program, *words), check=True, stdout=said, stderr=said, cwd=place, env=_environment())
