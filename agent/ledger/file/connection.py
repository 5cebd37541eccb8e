"""The way to a ledger's file: SQLite's settings, transactions and errors."""

import functools
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.util import LRUCache

from agent.ledger.ledger_errors import Code, LedgerError

BUSY_MILLISECONDS = 5000
"""How long to wait for a reader's checkpoint of the log; only we have the writer's lock."""

_URL = "sqlite://"
_COMPILED: LRUCache[Any, Any] = LRUCache(500)
"""Compiled statements, which all engines share; otherwise each engine would compile all of them again."""

_UNWRITABLE = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
_UNWRITABLE |= {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOLFS}
_BROKEN_RULE = {sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG}


def uri(path: Path, mode: str) -> str:
    """Return the URI by which SQLite opens a file: mode is ro, rw or rwc."""
    return f"file:{quote(str(path.absolute()))}?mode={mode}"


def connect(path: Path, mode: str, *, enforces_keys: bool = True) -> sqlite3.Connection:
    """Return a connection to the file with our settings: a power loss must not undo a recorded intent."""
    raw = sqlite3.connect(uri(path, mode), uri=True, isolation_level=None, check_same_thread=False)
    try:
        raw.execute(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")
        raw.execute(f"PRAGMA foreign_keys={int(enforces_keys)}")
        raw.execute("PRAGMA trusted_schema=OFF")
        raw.execute("PRAGMA synchronous=FULL")
        if mode != "ro":
            raw.execute("PRAGMA journal_mode=WAL")
    except BaseException:
        raw.close()
        raise
    return raw


def engine(path: Path, mode: str, *, enforces_keys: bool = True) -> sa.Engine:
    """Return an engine whose transactions begin explicitly; the driver alone would begin at the first write."""
    new_engine = _engine(path, mode, enforces_keys=enforces_keys)

    @event.listens_for(new_engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        raw: Any = connection.connection.driver_connection
        raw.execute(_begin_of(mode))

    return new_engine


def _engine(path: Path, mode: str, *, enforces_keys: bool = True) -> sa.Engine:
    """Return an engine that leaves transactions to its user."""
    dialect = _dialect()

    def opened() -> Any:  # noqa: ANN401 - SQLAlchemy names its own protocol
        return connect(path, mode, enforces_keys=enforces_keys)

    pool = sa.NullPool(opened, dialect=dialect)
    return sa.Engine(pool, dialect, sa.make_url(_URL), execution_options={"compiled_cache": _COMPILED})


def _begin_of(mode: str) -> str:
    return "BEGIN" if mode == "ro" else "BEGIN IMMEDIATE"


@functools.cache
def _dialect() -> sa.Dialect:
    """Return the one dialect of this process: compiled statements are kept by dialect."""
    parent = sa.create_engine(_URL, poolclass=sa.NullPool)
    with parent.connect():
        # The first connection gives the dialect the features of this SQLite.
        return parent.dialect


def in_our_words(error: Exception, path: Path) -> LedgerError:
    """Return the ledger's error for an error of SQLite or SQLAlchemy."""
    cause = error.orig if isinstance(error, exc.StatementError) and error.orig is not None else error
    code = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in _UNWRITABLE:
        return LedgerError(
            Code.UNWRITABLE,
            f"{path} cannot be written ({cause}): free space on its disk, or give the daemon's user the right to write "
            "there; until then nothing is paid for",
        )
    if code in _BROKEN_RULE or not isinstance(cause, sqlite3.Error):
        return LedgerError(Code.CONFLICT, f"the ledger refused a value ({cause}): this is a defect, report it")
    return LedgerError(
        Code.CORRUPT,
        f"{path} is damaged or no ledger ({cause}): restore the newest backup with `gpubid ledger restore BACKUP "
        "--replace`; without a backup, move the file away, keep the .fleet file, and start the daemon",
    )


class FileLink:
    """The way to one file; mode is ro or rw."""

    errors = (sqlite3.Error,)
    probe = sa.text("SELECT count(*) FROM sqlite_master")

    def __init__(self, path: Path, mode: str) -> None:
        self._path = path
        self._engine = _engine(path, mode)
        self._begin = _begin_of(mode)

    def connect(self) -> sa.Connection:
        """Connect."""
        return self._engine.connect()

    def begin(self, raw: Any) -> None:  # noqa: ANN401 - the driver's own connection
        """Begin a transaction; a writing one locks at once."""
        raw.execute(self._begin)

    def commit(self, raw: Any, *, reads: bool) -> None:  # noqa: ANN401 - as above
        """Commit it, to the disk."""
        del reads
        raw.commit()

    def rollback(self, raw: Any) -> None:  # noqa: ANN401 - as above
        """Drop it."""
        raw.rollback()

    def in_our_words(self, error: Exception) -> LedgerError:
        """Return the ledger's error."""
        return in_our_words(error, self._path)

    def is_lost(self, error: LedgerError) -> bool:
        """Return that the connection stays: the file is the same after every error."""
        del error
        return False

    def sever(self) -> None:
        """Do nothing: a local disk answers, or the machine hangs."""

    def dispose(self) -> None:
        """Forget the engine."""
        self._engine.dispose()
