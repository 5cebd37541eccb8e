"""Restore: a backup replaces the ledger. The next start continues with it and gets newer facts from the market.

1. Nothing is deleted. An existing ledger is renamed, with the time in its new name.
2. The spend since the backup is unknown, and the ledger records that. At the next start the market's bill of this month
   is counted for every instance that the backup does not have.
3. The operators' holds of the replaced ledger stay in force, as far as they can be read.
4. The files get the owner of the folder: root restores a backup, and the daemon writes it later.
5. A draft beside the ledger is finished, with its marks and holds, before the ledger is renamed. A restore that breaks
   off leaves the ledger as it was, or a draft without a ledger, which no daemon starts beside.
"""

import contextlib
import datetime as dt
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from agent.ledger import moved_marks, single_facts
from agent.ledger.file import backup, connection, ledger_lock, migrate, replaced_holds, sidecar
from agent.ledger.ledger_errors import Code, LedgerError

_SIBLINGS = ("", "-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of a restore."""

    aside: Path | None
    """The new name of the earlier ledger; None if there was none."""
    holds: replaced_holds.ReplacedHolds | None
    """The earlier ledger's holds, which are in force now; None if the holds since the backup are unknown."""


def restore(source: Path, path: Path, at: dt.datetime, *, replaces: bool) -> Restored:
    """Make `path` a copy of the backup `source`, with the present holds of the earlier ledger.

    Raises:
        LedgerError: LOCKED, a daemon runs; BAD_BACKUP, it is no backup, is damaged, or a ledger exists and may not be
            replaced; MOVED, the ledger is elsewhere now; NEWER_SCHEMA, UNRELEASED_SCHEMA, UNWRITABLE.
    """
    _check(source, path)
    lock = ledger_lock.LedgerLock(path)
    try:
        if path.exists() and not replaces:
            raise LedgerError(Code.BAD_BACKUP, f"{path} exists: add --replace to put it aside")
        fleet_id, beside_id = _fleet_of(source), sidecar.read_fleet_id(path)
        if beside_id not in {None, fleet_id} and not replaces:
            sentence = f"{source} is of fleet {fleet_id}, the ledger here of {beside_id}: add --replace to give it up"
            raise LedgerError(Code.BAD_BACKUP, sentence)
        _refuse_moved(path, fleet_id)
        holds = replaced_holds.read(_previous(path), source, fleet_id, at)
        is_held = _draft(source, path, at, holds)
        aside = put_aside(path, at)
        _put_in_place(path, aside)
        sidecar.write_fleet_id(path, fleet_id)
        sidecar.hand_over(path, *(() if aside is None else _files(aside)))
    finally:
        lock.release()
    return Restored(aside, holds if is_held else None)


def _check(source: Path, path: Path) -> None:
    if source.absolute() in {file.absolute() for file in (migrate.draft_of(path), _unfinished(path))}:
        raise LedgerError(Code.BAD_BACKUP, f"{source} is what a restore that broke off left: name the backup itself")
    _refuse_unreadable(source)
    try:
        revision = migrate.stored_revision(source)
        migrate.refuse_foreign(source, revision or "")
        migrate.check_sound(source)
    except LedgerError as error:
        if error.code in {Code.NEWER_SCHEMA, Code.UNRELEASED_SCHEMA}:
            raise
        raise LedgerError(Code.BAD_BACKUP, f"{source} is damaged or no ledger; take an older backup") from error
    if revision is None:
        raise LedgerError(Code.BAD_BACKUP, f"{source} is no backup of a ledger; name one")


def _refuse_unreadable(source: Path) -> None:
    fix = "name a copy that `gpubid ledger backup` wrote"
    try:
        if not source.is_file():
            raise LedgerError(Code.BAD_BACKUP, f"there is no file {source}; {fix}")
        source.open("rb").close()
    except OSError as error:
        raise LedgerError(Code.BAD_BACKUP, f"{source} cannot be read ({error.strerror}); {fix}") from error


def _previous(path: Path) -> Path:
    """Return the ledger; if a restore broke off after it was renamed, its draft, which has the ledger's holds."""
    return path if path.exists() else migrate.draft_of(path)


def _draft(source: Path, path: Path, at: dt.datetime, holds: replaced_holds.ReplacedHolds | None) -> bool:
    """Write the whole restored ledger beside `path`, to the disk. Return whether it has the holds.

    Raises:
        LedgerError: UNWRITABLE; then an earlier draft stays as it was.
    """
    # Where an earlier restore broke off, its draft is all that is left of the ledger's holds until this one is whole.
    new = _unfinished(path)
    try:
        _drop(new)
        backup.copy(source, new)
        _mark(new, at)
        is_held = holds is not None and replaced_holds.write(new, holds)
        _fold(new)
        _take_over(new, migrate.draft_of(path))
    except BaseException:
        with contextlib.suppress(LedgerError):
            _drop(new)
        raise
    return is_held


def _unfinished(path: Path) -> Path:
    return sidecar.sibling(migrate.draft_of(path), "-new")


def _take_over(new: Path, draft: Path) -> None:
    try:
        new.replace(draft)
        sidecar.sync_folder(draft.parent)
    except OSError as error:
        raise sidecar.unwritable(draft, error) from error


def _drop(draft: Path) -> None:
    try:
        for file in _files(draft):
            file.unlink(missing_ok=True)
    except OSError as error:
        raise sidecar.unwritable(draft, error) from error


def _fold(draft: Path) -> None:
    """Bring the write-ahead log into the file: the file alone is renamed, and closing hides that this failed."""
    try:
        with closing(connection.connect(draft, "rw")) as raw:
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error as error:
        raise connection.in_our_words(error, draft) from error


def _put_in_place(path: Path, aside: Path | None) -> None:
    draft = migrate.draft_of(path)
    try:
        draft.replace(path)
        sidecar.sync_folder(path.parent)
    except OSError as error:
        previous = f"; the previous ledger is {aside}" if aside is not None else ""
        sentence = f"{path} cannot be written ({error.strerror}): give the same command again{previous}"
        raise LedgerError(Code.UNWRITABLE, sentence) from error


def put_aside(path: Path, at: dt.datetime, why: str = "before-restore") -> Path | None:
    """Rename a ledger and its journal; return the new name, None if there is no ledger.

    A journal without its ledger is renamed too: SQLite would play it into the next file of the ledger's name.

    Raises:
        LedgerError: UNWRITABLE.
    """
    was_there = path.exists()
    aside = sidecar.sibling(path, f".{why}-{at.astimezone(dt.UTC):%Y%m%dT%H%M%SZ}")
    try:
        for suffix in _SIBLINGS:
            old = sidecar.sibling(path, suffix)
            if old.exists():
                old.rename(sidecar.sibling(aside, suffix))
    except OSError as error:
        raise sidecar.unwritable(path, error) from error
    return aside if was_there else None


def _files(path: Path) -> tuple[Path, ...]:
    return tuple(sidecar.sibling(path, suffix) for suffix in _SIBLINGS)


def _fleet_of(source: Path) -> str:
    try:
        fleet_id = _facts(source).get("fleet_id")
    except sqlite3.Error as error:
        raise connection.in_our_words(error, source) from error
    if fleet_id is None:
        raise LedgerError(Code.BAD_BACKUP, f"{source} names no fleet; take an older backup")
    return fleet_id


def _refuse_moved(path: Path, fleet_id: str) -> None:
    """Refuse to restore over a ledger that was moved away: the restored one would be a second one of its fleet."""
    try:
        facts = _facts(path)
    except sqlite3.Error:
        # There is no ledger, or it is damaged.
        return
    why = moved_marks.sentence(facts, str(path))
    if why and facts.get("fleet_id") == fleet_id:
        raise LedgerError(Code.MOVED, f"{why}. If the ledger there is lost, rename {path} and give this command again")


def _facts(path: Path) -> dict[str, str]:
    with closing(connection.connect(path, "ro")) as raw:
        return dict(raw.execute("SELECT key, value FROM meta"))


def _mark(path: Path, at: dt.datetime) -> None:
    """Record in the ledger that spend and runs since the backup are unknown."""
    try:
        with closing(connection.connect(path, "rw")) as raw:
            raw.execute("BEGIN IMMEDIATE")
            for statement, values in single_facts.marks_of_loss(at):
                raw.execute(statement, values)
            raw.execute("COMMIT")
    except sqlite3.Error as error:
        raise connection.in_our_words(error, path) from error
