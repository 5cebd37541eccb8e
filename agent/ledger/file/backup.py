"""Copies of a ledger that are complete and checked, and never half written."""

import datetime as dt
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from agent.ledger.file import connection, sidecar
from agent.ledger.ledger_errors import Code, LedgerError

NAME = "ledger-*.sqlite"
"""The file names of copies in a folder; no other file there is ever touched but their drafts."""
DRAFT = ".part"
LONGEST = dt.timedelta(hours=1)
"""A draft that was written to before this is of a copy that was killed: a timed backup ends after half an hour."""


def name(at: dt.datetime) -> str:
    """Return the name of a copy made at an instant; names sort in the order of the copies."""
    return f"ledger-{at.astimezone(dt.UTC):%Y%m%dT%H%M%SZ}.sqlite"


def drop_old(made: Path, keep: int, at: dt.datetime) -> list[Path]:
    """Delete all but `made` and the newest other copies of its folder, `keep` in all, and return the deleted ones.

    What a copy that was killed left is deleted too, but not returned.

    Raises:
        LedgerError: UNWRITABLE.
    """
    # Where the clock was set back, the copy that was just made has not the newest name.
    others = sorted(file for file in made.parent.glob(NAME) if file != made)
    dropped = others[: max(len(others) - keep + 1, 0)]
    for old in (*dropped, *_unfinished(made.parent, at)):
        try:
            old.unlink(missing_ok=True)
        except OSError as error:
            raise sidecar.unwritable(old, error) from error
    return dropped


def _unfinished(folder: Path, at: dt.datetime) -> list[Path]:
    """Return the drafts of copies that nobody makes any more."""
    ends = (at - LONGEST).timestamp()
    return [file for file in folder.glob(NAME + DRAFT) if file.stat().st_mtime < ends]


def copy(path: Path, to: Path) -> None:
    """Copy a ledger, in use or not, to a file that does not exist yet, and check the copy.

    Raises:
        LedgerError: BAD_BACKUP, the target exists or the copy is damaged; UNWRITABLE; CORRUPT.
    """
    if to.exists():
        raise LedgerError(
            Code.BAD_BACKUP, f"{to} exists already: name a file that does not, a backup overwrites nothing"
        )
    draft = sidecar.sibling(to, DRAFT)
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
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_FULL:
            sentence = f"the copy {draft} cannot be written ({error}): free space on its disk, or name another place"
            raise LedgerError(Code.UNWRITABLE, sentence) from error
        raise connection.in_our_words(error, path) from error
    if verdict != "ok":
        raise LedgerError(Code.BAD_BACKUP, f"the copy of {path} is damaged ({verdict}): see `gpubid ledger verify`")
    handle = os.open(draft, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
