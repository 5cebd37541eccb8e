"""Copies of a ledger that are complete and checked, and never half written."""

import datetime as dt
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from agent.ledger.file import connection, sidecar
from agent.ledger.ledger_errors import Code, LedgerError

NAME = "ledger-*.sqlite"
"""The file names of copies in a folder; no other file there is ever touched."""


def name(at: dt.datetime) -> str:
    """Return the name of a copy made at an instant; names sort in the order of the copies."""
    return f"ledger-{at.astimezone(dt.UTC):%Y%m%dT%H%M%SZ}.sqlite"


def drop_old(folder: Path, keep: int) -> list[Path]:
    """Delete all but the newest `keep` copies of a folder and return the deleted ones.

    Raises:
        LedgerError: UNWRITABLE.
    """
    dropped = sorted(folder.glob(NAME))[:-keep]
    for old in dropped:
        try:
            old.unlink()
        except OSError as error:
            raise sidecar.unwritable(old, error) from error
    return dropped


def copy(path: Path, to: Path) -> None:
    """Copy a ledger, in use or not, to a file that does not exist yet, and check the copy.

    Raises:
        LedgerError: BAD_BACKUP, the target exists or the copy is damaged; UNWRITABLE; CORRUPT.
    """
    if to.exists():
        raise LedgerError(
            Code.BAD_BACKUP, f"{to} exists already: name a file that does not, a backup overwrites nothing"
        )
    draft = sidecar.sibling(to, ".part")
    try:
        _vacuum_into(path, draft)
        draft.replace(to)
        sidecar.sync_folder(to.parent)
    except OSError as error:
        raise sidecar.unwritable(to, error) from error
    finally:
        draft.unlink(missing_ok=True)


def _vacuum_into(path: Path, draft: Path) -> None:
    draft.unlink(missing_ok=True)
    try:
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with closing(connection.connect(path, "ro")) as raw:
            raw.execute("VACUUM INTO ?", (str(draft),))
        with closing(sqlite3.connect(connection.uri(draft, "ro"), uri=True)) as raw:
            verdict = raw.execute("PRAGMA integrity_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        raise connection.in_our_words(error, path) from error
    if verdict != "ok":
        raise LedgerError(Code.BAD_BACKUP, f"the copy of {path} is damaged ({verdict}): see `gpubid ledger verify`")
    handle = os.open(draft, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
