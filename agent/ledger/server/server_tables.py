"""The tables of a ledger in a schema of a server: created, upgraded, and shown to the reading role.

1. A new ledger gets the present tables at once. The first schema that a server ever had is `FIRST`.
2. All steps of an upgrade are one transaction, so a crash leaves the old schema, whole.
3. Table `leader` has the epoch of the daemon that writes. It exists only on a server and is never moved.
"""

import importlib.resources
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg import sql

from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.server import leader_row
from agent.ledger.server.dialect import dialect
from agent.ledger.server_address import ServerAddress
from agent.ledger.tables import schema

FIRST = "0126"
"""The first schema that was ever on a server."""
_GRANTS = (
    "a daemon whose file names that role as reader grants it when it begins to lead; name it on both boxes, then "
    "restart the leader"
)
VERSION = "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"


def revision(raw: "psycopg.Connection[Any]", address: ServerAddress) -> str | None:
    """Return the schema of a ledger, None if there is none yet.

    Raises:
        LedgerError: UNREADABLE, the role has no right; CORRUPT, the schema has other tables; NEWER_SCHEMA,
            UNRELEASED_SCHEMA.
    """
    query = "SELECT tablename FROM pg_tables WHERE schemaname = %s"
    tables = {name for (name,) in raw.execute(query, (address.schema,))}
    if not tables:
        return None
    if not _one(raw, "SELECT has_schema_privilege(%s, 'USAGE')", address.schema):
        sentence = f"{_one(raw, 'SELECT current_user')} may not read {address.shown}"
        raise LedgerError(Code.UNREADABLE, f"{sentence}: {_GRANTS}")
    if not {"alembic_version", "leader", "meta", "intents"} <= tables:
        sentence = f"{address.shown} has tables, but no ledger of gpubid: name another [ledger] schema"
        raise LedgerError(Code.CORRUPT, sentence)
    row = raw.execute("SELECT version_num FROM alembic_version").fetchone()
    found = "" if row is None else str(row[0])
    if found > schema.REVISION:
        sentence = f"{address.shown} has schema {found}, this gpubid knows {schema.REVISION}"
        raise LedgerError(Code.NEWER_SCHEMA, f"{sentence}: install the release that wrote it")
    if found < FIRST:
        raise LedgerError(Code.UNRELEASED_SCHEMA, f"{address.shown} has schema {found!r}, which no gpubid wrote there")
    return found


def prepare(raw: "psycopg.Connection[Any]", address: ServerAddress) -> None:
    """Create the ledger, or bring it to the present schema.

    Raises:
        LedgerError: as `revision`.
        psycopg.Error: the role may not create the schema or its tables.
    """
    found = revision(raw, address)
    if found is None:
        with raw.transaction():
            _create(raw, address)
    elif found != schema.REVISION:
        upgrade(raw)
    leader_row.complete(raw)
    _show(raw, address)


def _create(raw: "psycopg.Connection[Any]", address: ServerAddress) -> None:
    known = raw.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (address.schema,)).fetchone()
    if known is None:
        raw.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(address.schema)))
    for statement in statements():
        raw.execute(statement.encode())
    for statement in (leader_row.TABLE, VERSION):
        raw.execute(statement.encode())
    raw.execute("INSERT INTO alembic_version VALUES (%s)", (schema.REVISION,))


def statements() -> Iterator[str]:
    """Yield the statements that create the present tables and their indexes."""
    found: list[str] = []

    def keep(command: Any, *_: object) -> None:  # noqa: ANN401 - SQLAlchemy's own
        found.append(str(command.compile(dialect=dialect())))

    link = sa.create_mock_engine("postgresql+psycopg://", keep)
    schema.METADATA.create_all(link, checkfirst=False)
    yield from found


def upgrade(raw: "psycopg.Connection[Any]", to: str = "head") -> None:
    """Run the migrations, in one transaction."""
    # The import of Alembic takes a third of a second, and it is needed once per release.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    steps = importlib.resources.files("migrations")
    with importlib.resources.as_file(steps) as folder, _at_once(raw) as link:
        config = Config()
        config.set_main_option("script_location", str(folder).replace("%", "%%"))
        config.attributes["connection"] = link
        command.upgrade(config, to)


@contextmanager
def _at_once(raw: "psycopg.Connection[Any]") -> Iterator[sa.Connection]:
    """Yield the session as SQLAlchemy's connection, in a transaction of its own."""
    raw.autocommit = False

    def same() -> Any:  # noqa: ANN401 - SQLAlchemy names its own protocol
        return raw

    engine = sa.Engine(sa.StaticPool(same, dialect=dialect()), dialect(), sa.make_url("postgresql+psycopg://"))
    try:
        with engine.connect() as link, link.begin():
            yield link
    finally:
        raw.rollback()
        raw.autocommit = True


def renumber(link: sa.Connection) -> None:
    """Let new rows of numbered tables get numbers above those of the present rows."""
    for table in schema.METADATA.tables.values():
        column = table._autoincrement_column  # noqa: SLF001 - SQLAlchemy's own question
        if column is not None:
            sequence = sa.func.pg_get_serial_sequence(table.name, column.name)
            last = sa.func.max(column)
            link.execute(sa.select(sa.func.setval(sequence, sa.func.coalesce(last, 1), last.is_not(None)))).close()


def _show(raw: "psycopg.Connection[Any]", address: ServerAddress) -> None:
    """Let the reading role read, and nothing else."""
    refuse_missing_reader(raw, address)
    if not address.reader:
        return
    names = {"schema": sql.Identifier(address.schema), "reader": sql.Identifier(address.reader)}
    for grant in ("USAGE ON SCHEMA {schema}", "SELECT ON ALL TABLES IN SCHEMA {schema}"):
        raw.execute(sql.SQL(f"GRANT {grant} TO {{reader}}").format(**names))


def refuse_missing_reader(raw: "psycopg.Connection[Any]", address: ServerAddress) -> None:
    """Refuse a reading role that the server does not have: nothing could be granted to it.

    Raises:
        LedgerError: UNREADABLE.
    """
    if address.reader and not _one(raw, "SELECT count(*) FROM pg_roles WHERE rolname = %s", address.reader):
        fix = f"CREATE ROLE {address.reader} LOGIN PASSWORD '...' there, or take reader out of [ledger]"
        raise LedgerError(Code.UNREADABLE, f"{address.shown} has no role {address.reader}, the reader: {fix}")


def _one(raw: "psycopg.Connection[Any]", query: str, *values: object) -> Any:  # noqa: ANN401 - any value
    row = raw.execute(query.encode(), values).fetchone()
    return None if row is None else row[0]
