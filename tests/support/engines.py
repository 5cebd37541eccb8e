"""The engine of a test's ledgers: SQLite, or PostgreSQL where a test is played on both.

`engine` is a fixture of the folders whose tests run on either. CI plays those marked `both_engines` on PostgreSQL too;
`GPUBID_ENGINES=both` plays all of them, as at night. A test marked `only_sqlite` is about a file.
"""

import contextlib
import hashlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from agent.ledger import storage
from agent.ledger.connection_thread import ConnectionThread
from agent.ledger.server_address import ServerAddress
from agent.ledger.storage_port import Storage
from agent.ledger.tables import schema as schema_tables
from tests.support import postgres

ROLE = "fleet"
_AT_NIGHT = os.environ.get("GPUBID_ENGINES") == "both"
PLAYED = ("sqlite", "postgresql") if _AT_NIGHT else ("sqlite",)
_server = ""
"""The address of the running server while a test is played on it, else empty."""


def names(definition: pytest.Item) -> list[str]:
    """Return the engines on which a test is played."""
    is_chosen = _AT_NIGHT or definition.get_closest_marker("both_engines") is not None
    is_fit = definition.get_closest_marker("only_sqlite") is None
    return ["sqlite", "postgresql"] if is_chosen and is_fit else []


@pytest.fixture(scope="session")
def database() -> Iterator[str]:
    """Return the address of a database whose role may create schemas and is no superuser."""
    if not postgres.is_here():
        pytest.skip("PostgreSQL is not installed (make tools)")
    with serving() as url:
        yield url


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """Start a server, and yield the address of a database for the role of the daemon."""
    with postgres.serving() as server:
        make_role(server.url)
        yield role_url(server.url)


def make_role(url: str) -> None:
    """Make the role of the daemon, which may create schemas and is no superuser."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{postgres.PASSWORD}'".encode())
        raw.execute(f"GRANT CREATE ON DATABASE postgres TO {ROLE}".encode())


def role_url(url: str) -> str:
    """Return the address of a superuser's database for the role of the daemon."""
    return url.replace("lab:", f"{ROLE}:")


@contextlib.contextmanager
def played_on(url: str) -> Iterator[None]:
    """Let the ledgers of tests be on a server of the test's own while the block runs."""
    global _server  # noqa: PLW0603 - as in `engine`
    before, _server = _server, url
    try:
        yield
    finally:
        _server = before


@pytest.fixture(autouse=True)
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """Play a test on the engine of its parameter."""
    global _server  # noqa: PLW0603 - one test runs at a time, and builders of configurations ask for it
    name = getattr(request, "param", "sqlite")
    _server = request.getfixturevalue("database") if name == "postgresql" else ""
    yield name
    _server = ""


def server(path: Path) -> ServerAddress | None:
    """Return the place of a ledger on the test's server, or None on SQLite. Each path has its own schema."""
    if not _server:
        return None
    return ServerAddress(_server, schema(path))


def schema(path: Path) -> str:
    """Return the name of the schema of a path's ledger."""
    return "t" + hashlib.sha256(str(path.absolute()).encode()).hexdigest()[:16]


def place(path: Path) -> Storage:
    """Return the storage of a ledger on the test's engine."""
    return storage.of(path, server(path))


def rows(path: Path, query: str, *parameters: str, on: ServerAddress | None = None) -> list[Any]:
    """Return the committed rows of a ledger, with a connection of our own."""
    address = on or server(path)
    if address is None:
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as ledger:
            return ledger.execute(query, parameters).fetchall()
    with connected(address) as raw:
        return raw.execute(query.replace("?", "%s").encode(), parameters).fetchall()


class Reading:
    """A connection to the committed rows of one ledger, which is kept."""

    def __init__(self, path: Path) -> None:
        address = server(path)
        self._is_served = address is not None
        self._raw: Any
        if address is None:
            self._raw = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            return
        from agent.ledger.server import session

        self._raw = session.connect(address, "", reads=True)

    def rows(self, query: str, *parameters: str) -> list[Any]:
        """Return the rows of a query in SQLite's words."""
        if self._is_served:
            query = query.replace("%", "%%").replace("?", "%s")
        return list(self._raw.execute(query, parameters).fetchall())

    def close(self) -> None:
        """Disconnect."""
        self._raw.close()


def play_on(url: str) -> None:
    """Let every ledger of this process be on a server, or in files if the address is empty."""
    global _server  # noqa: PLW0603 - as in `engine`
    _server = url


def drop(*paths: Path) -> None:
    """Remove the schemas of these ledgers, if they are on a server."""
    for address in filter(None, map(server, paths)):
        with connected(address) as raw:
            raw.execute(f'DROP SCHEMA IF EXISTS "{address.schema}" CASCADE'.encode())


def lose(path: Path) -> None:
    """Let a ledger be lost that nobody has open: its file, or its schema on the server. The fleet's id stays."""
    drop(path)
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def execute(path: Path, *statements: str) -> None:
    """Change a ledger behind the program's back."""
    address = server(path)
    if address is None:
        with contextlib.closing(sqlite3.connect(path)) as ledger:
            for statement in statements:
                ledger.execute(statement)
            ledger.commit()
        return
    with connected(address) as raw:
        for statement in statements:
            raw.execute(statement.encode())


@contextlib.contextmanager
def written(path: Path) -> Iterator[ConnectionThread]:
    """Yield a connection that writes to a ledger that nobody has open; the test closes it."""
    storage_here = place(path)
    lock = storage_here.lock()
    try:
        storage_here.prepare()
        yield ConnectionThread(storage_here.link("rw"), "test")
    finally:
        lock.release()


@contextlib.contextmanager
def plain_connection(url: str) -> Iterator[sa.Connection]:
    """Yield SQLAlchemy's own connection to new tables on a server, whose transactions are SQLAlchemy's."""
    from agent.ledger.server import dialect, server_tables, session

    address = ServerAddress(url, "plain")
    with session.connect(address, "", reads=False) as raw:
        server_tables.prepare(raw, address)
        raw.autocommit = False
        pool = sa.StaticPool(lambda: raw, dialect=dialect.dialect())  # type: ignore[arg-type]
        with sa.Engine(pool, dialect.dialect(), sa.make_url("postgresql+psycopg://")).connect() as link:
            yield link


def refuse_rows(path: Path, table: str) -> None:
    """Let a ledger refuse every new row of a table from now on, as a full disk would."""
    if server(path) is None:
        execute(path, f"CREATE TRIGGER full BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'full'); END")
        return
    function = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE disk_full; END $$"
    execute(path, function, f'CREATE TRIGGER "full" BEFORE INSERT ON {table} EXECUTE FUNCTION refuse()')


def let_write(path: Path, *, may: bool) -> None:
    """Let a ledger on a server be written, or let each write fail as on a full disk."""
    if may:
        execute(path, "DROP FUNCTION unwritable CASCADE")
        return
    function = "CREATE FUNCTION unwritable() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE disk_full; END $$"
    each = (
        f"CREATE TRIGGER unwritable BEFORE INSERT OR UPDATE OR DELETE ON {table} EXECUTE FUNCTION unwritable()"
        for table in schema_tables.METADATA.tables
    )
    execute(path, function, *each)


def accept_rows(path: Path) -> None:
    """Let a ledger accept new rows again."""
    execute(path, "DROP TRIGGER full") if server(path) is None else execute(path, "DROP FUNCTION refuse CASCADE")


@contextlib.contextmanager
def connected(address: ServerAddress) -> Iterator[Any]:
    """Yield a session of the daemon's role in the schema of a ledger. Its changes are committed at its end."""
    import psycopg

    with psycopg.connect(address.url, options=f"-csearch_path={address.schema}") as raw:
        yield raw
