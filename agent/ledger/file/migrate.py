"""The schema of a file, and its upgrade to the present one before anything else opens it.

1. A new ledger gets the present tables at once. A test compares them with those that all migrations lead to.
2. An older ledger is copied before it is changed. The copy is named after its schema, and the newest few are kept.
3. All steps are one transaction: a crash leaves the old schema, whole.
4. A newer schema is refused, because an older program does not know the meaning of its columns. A schema from before
   the first release is refused too. Neither is reported as damage.
"""

import functools
import glob
import importlib.resources
import os
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import cast

import sqlalchemy as sa
from sqlalchemy import exc

from agent.ledger.file import backup, connection, sidecar
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.tables import schema

COPIES_KEPT = 2
"""Copies from before the last upgrade and from the one before that, to go back. Each is as large as the ledger was."""
_COPY = ".schema-{}.sqlite"
_VERSION = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""Alembic's own table. It is written down here because Alembic takes a third of a second to import."""


def stored_revision(path: Path) -> str | None:
    """Return the schema of a file, None if it has no ledger yet.

    Raises:
        LedgerError: CORRUPT, it is not a database, a damaged one, or another program's; UNRELEASED_SCHEMA.
    """
    if not path.exists() or path.stat().st_size == 0:
        return None
    with _opened(path) as raw:
        return _revision(raw, path)


def check_sound(path: Path) -> None:
    """Let SQLite check the file quickly.

    Raises:
        LedgerError: CORRUPT, with the first finding.
    """
    with _opened(path) as raw:
        _check_sound(raw)


def _check_sound(raw: sqlite3.Connection) -> None:
    verdict = raw.execute("PRAGMA quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise sqlite3.DatabaseError(verdict)


@contextmanager
def _opened(path: Path) -> Generator[sqlite3.Connection]:
    """Open a file to read it; the errors of SQLite are ours outside."""
    try:
        with closing(connection.connect(path, "ro")) as raw:
            yield raw
    except sqlite3.Error as error:
        raise connection.in_our_words(error, path) from error


def refuse_foreign(path: Path, revision: str) -> None:
    """Refuse a schema of a later release, or from before the first one. The file is sound and is not changed.

    Raises:
        LedgerError: NEWER_SCHEMA, UNRELEASED_SCHEMA.
    """
    if revision and revision < schema.FIRST:
        raise _unreleased(path, revision)
    if revision > schema.REVISION:
        raise LedgerError(
            Code.NEWER_SCHEMA,
            f"{path} has schema {revision}, this gpubid knows {schema.REVISION}: install the release that wrote it, or "
            "restore the copy from before the upgrade with `gpubid ledger restore COPY --replace`",
        )


def refuse_unreleased(raw: sqlite3.Connection, path: Path, revision: str) -> None:
    """Refuse a file with the first schema's name but other tables: no released gpubid wrote it.

    Raises:
        LedgerError: UNRELEASED_SCHEMA.
    """
    if revision == schema.FIRST and not _first_tables() <= _tables(raw):
        raise _unreleased(path, f"{revision} with other tables")


def prepare(path: Path) -> None:
    """Bring a file to the present schema: create it, check it, copy and upgrade it, or refuse it.

    Raises:
        LedgerError: CORRUPT, NEWER_SCHEMA, UNRELEASED_SCHEMA, UNWRITABLE; BAD_BACKUP, a restore broke off.
    """
    revision = _sound_revision(path)
    if revision is None:
        _refuse_unrestored(path)
        _touch(path)
        _create(path)
    else:
        if revision == schema.REVISION:
            return
        kept = sidecar.sibling(path, _COPY.format(revision))
        kept.unlink(missing_ok=True)
        backup.copy(path, kept)
        upgrade_to(path)
    _drop_old_copies(path)


def draft_of(path: Path) -> Path:
    """Return the file in which a restore prepares the ledger at `path`."""
    return sidecar.sibling(path, ".restoring")


def _refuse_unrestored(path: Path) -> None:
    """Refuse to begin a new ledger where a restore broke off: it would know no order, not even a kill."""
    draft = draft_of(path)
    if draft.exists():
        raise LedgerError(
            Code.BAD_BACKUP,
            f"a restore of {path} broke off: give `gpubid ledger restore BACKUP --replace` again; to begin a new "
            f"ledger instead, delete {draft}",
        )


def _sound_revision(path: Path) -> str | None:
    """Return the schema of a sound file that this program knows, None if it has no ledger yet.

    It is one connection for both questions, because each connection reads the whole schema first.
    """
    if not path.exists() or path.stat().st_size == 0:
        return None
    with _opened(path) as raw:
        revision = _revision(raw, path)
        if revision is not None:
            refuse_foreign(path, revision)
            _check_sound(raw)
    return revision


def upgrade_to(path: Path, revision: str = "head") -> None:
    """Run the migrations up to a revision, in one transaction.

    Raises:
        LedgerError: as SQLite refuses.
    """
    # The import of Alembic takes a third of a second, and it is needed once per release.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    steps = importlib.resources.files("migrations")
    with importlib.resources.as_file(steps) as folder, _at_once(path) as link:
        config = Config()
        config.set_main_option("script_location", str(folder).replace("%", "%%"))
        config.attributes["connection"] = link
        command.upgrade(config, revision)


def _create(path: Path) -> None:
    with _at_once(path) as link:
        for statement in _present_tables():
            link.exec_driver_sql(statement)
        link.execute(_VERSION.insert().values(version_num=schema.REVISION))


@functools.cache
def _present_tables() -> tuple[str, ...]:
    """Return the statements that create the present tables and indexes; cached, because compiling them is slow."""
    statements: list[str] = []

    def keep(command: object, *_: object) -> None:
        statements.append(str(cast("sa.schema.ExecutableDDLElement", command).compile(dialect=link.dialect)))

    link = sa.create_mock_engine("sqlite://", keep)
    schema.METADATA.create_all(link, checkfirst=False)
    _VERSION.create(link, checkfirst=False)
    return tuple(statements)


@contextmanager
def _at_once(path: Path) -> Generator[sa.Connection]:
    # A rebuilt table is dropped for a moment. With enforced keys the rows that refer to it would be deleted.
    engine = connection.engine(path, "rw", enforces_keys=False)
    try:
        with engine.begin() as link:
            yield link
    except (exc.SQLAlchemyError, sqlite3.Error) as error:
        raise connection.in_our_words(error, path) from error
    finally:
        engine.dispose()


def _drop_old_copies(path: Path) -> None:
    """Delete all but the newest copies, by time and not by schema, since a restored ledger may have an older schema."""
    copies = path.parent.glob(glob.escape(path.name) + _COPY.format("*"))
    for old in sorted(copies, key=lambda file: (file.stat().st_mtime_ns, file.name))[:-COPIES_KEPT]:
        with suppress(OSError):
            old.unlink()


def _revision(raw: sqlite3.Connection, path: Path) -> str | None:
    tables = {name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables:
        return None
    if not {"alembic_version", "meta", "intents"} <= tables:
        raise LedgerError(
            Code.CORRUPT, f"{path} is a database, but no ledger of gpubid: give the daemon another [ledger] path"
        )
    row = raw.execute("SELECT version_num FROM alembic_version").fetchone()
    if row is None:
        return None
    refuse_unreleased(raw, path, str(row[0]))
    return str(row[0])


def _tables(raw: sqlite3.Connection) -> frozenset[str]:
    return frozenset(text for (text,) in raw.execute("SELECT sql FROM sqlite_master WHERE type = 'table'"))


@functools.cache
def _first_tables() -> frozenset[str]:
    """Return the statements that create the first schema's tables, as SQLite stores them."""
    text = importlib.resources.files("migrations").joinpath("versions", f"{schema.FIRST}_ledger.sql").read_text()
    commands = "\n".join(line for line in text.splitlines() if not line.startswith("--")).split(";\n")
    return frozenset(each.strip() for each in commands if each.strip().startswith("CREATE TABLE"))


def _unreleased(path: Path, name: str) -> LedgerError:
    return LedgerError(
        Code.UNRELEASED_SCHEMA,
        f"{path} has schema {name}, from before the first release, and this gpubid knows no way from there; it "
        "is sound and was not touched. End its leases with the gpubid that wrote it, or with `gpubid kill`, which "
        "ends them by their label; then move the file away, and the daemon begins a new one",
    )


def _touch(path: Path) -> None:
    # The file is created before SQLite does it, so that nobody else may read it.
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise sidecar.unwritable(path, error) from error
