"""The small files beside a ledger: its fleet id, the time of its newest backup, and a number of an earlier gpubid.

The fleet id outlives the ledger, so that instances of a lost ledger are still known as ours.
"""

import contextlib
import datetime as dt
import os
import re
import secrets
import shutil
import stat
from pathlib import Path

from agent.ledger.ledger_errors import Code, LedgerError

_SUFFIXES = ("", "-wal", "-shm", ".fleet", ".lock", ".ballast", ".backed-up")
_FLEET_ID = re.compile(r"[0-9a-f]{12}")


def sibling(path: Path, suffix: str) -> Path:
    """Return the file with a suffix beside a ledger."""
    return path.with_name(path.name + suffix)


def unwritable(path: Path, error: OSError) -> LedgerError:
    """Return the error for a file that cannot be written."""
    return LedgerError(
        Code.UNWRITABLE,
        f"{path} cannot be written ({error.strerror}): make the folder, or let the daemon's user write there",
    )


def new_fleet_id() -> str:
    """Return twelve random hexadecimal characters."""
    return secrets.token_hex(6)


def read_fleet_id(path: Path) -> str | None:
    """Return the fleet id of the second file, or None when there is no such file.

    Raises:
        LedgerError: FLEET_MISMATCH, the file has something else.
    """
    file = sibling(path, ".fleet")
    try:
        text = file.read_bytes()[:64].decode("ascii", "replace").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unwritable(file, error) from error
    if not _FLEET_ID.fullmatch(text):
        raise LedgerError(
            Code.FLEET_MISMATCH,
            f"{file} has no fleet id: restore it from a backup; if the ledger beside it is not damaged, delete "
            "this file and gpubid writes it again",
        )
    return text


def write_whole(file: Path, text: str) -> None:
    """Write a small file so that a crash leaves the old one or the new one, never a half.

    Raises:
        LedgerError: UNWRITABLE.
    """
    draft = sibling(file, ".new")
    try:
        draft.unlink(missing_ok=True)
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, text.encode())
            os.fsync(handle)
        finally:
            os.close(handle)
        draft.replace(file)
        sync_folder(file.parent)
    except OSError as error:
        raise unwritable(file, error) from error


def sync_folder(folder: Path) -> None:
    """Make a rename durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_fleet_id(path: Path, fleet_id: str) -> None:
    """Write the second file.

    Raises:
        LedgerError: UNWRITABLE.
    """
    write_whole(sibling(path, ".fleet"), fleet_id + "\n")


def read_number(path: Path, suffix: str) -> int | None:
    """Return the number in a small file, or None without one."""
    try:
        text = sibling(path, suffix).read_text("ascii")[:20].strip()
    except (OSError, ValueError):
        return None
    return int(text) if text.isdecimal() else None


def size_bytes(path: Path) -> int:
    """Return the size of a ledger and its write-ahead log; a missing file counts nothing."""
    total = 0
    for file in (path, sibling(path, "-wal")):
        with contextlib.suppress(OSError):
            total += file.stat().st_size
    return total


def free_bytes(path: Path) -> int:
    """Return the bytes free for us on a ledger's disk; 0 if the folder is gone."""
    try:
        return shutil.disk_usage(path.parent).free
    except OSError:
        return 0


def note_backup(path: Path, at: dt.datetime) -> None:
    """Store the time of the newest backup, in a file because the process of a backup may not write the ledger.

    Raises:
        LedgerError: UNWRITABLE.
    """
    file = sibling(path, ".backed-up")
    write_whole(file, at.astimezone(dt.UTC).isoformat() + "\n")
    _give(file)


def last_backup(path: Path) -> dt.datetime | None:
    """Return when the newest backup was made, or None without a readable note."""
    try:
        text = sibling(path, ".backed-up").read_text("ascii")[:40].strip()
        return dt.datetime.fromisoformat(text)
    except (OSError, ValueError):
        return None


def hand_over(path: Path, *others: Path) -> None:
    """Give a ledger, the files beside it and others to the owner of their folder: root makes them, the daemon writes.

    Raises:
        LedgerError: UNWRITABLE.
    """
    for file in (*(sibling(path, suffix) for suffix in _SUFFIXES), *others):
        _give(file)


def _give(file: Path) -> None:
    """Give a file to the owner of its folder, if we are root.

    The daemon's user can put anything into its folder. A link, of either kind, would give it somebody else's file.
    """
    owner = file.parent.stat()
    if os.geteuid() != 0 or owner.st_uid == 0:
        return
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        # It does not exist, or is a link.
        return
    try:
        found = os.fstat(handle)
        if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
            os.fchown(handle, owner.st_uid, owner.st_gid)
    except OSError as error:
        raise unwritable(file, error) from error
    finally:
        os.close(handle)
