"""The small files beside a ledger: its lock, its fleet id, its ballast, the time of its newest backup.

1. The lock is held by the kernel, not by the file: a killed daemon leaves none behind.
2. The fleet id outlives the ledger, so that instances of a lost ledger are still known as ours.
3. The ballast is real bytes. Freeing it gives a full disk room for the last records.
"""

import contextlib
import datetime as dt
import fcntl
import os
import re
import secrets
import shutil
from pathlib import Path

from agent.ledger.ledger_errors import Code, LedgerError

BALLAST_BYTES = 1024 * 1024
"""Room for some hundreds of releases and their events. A commit needs a few pages of the write-ahead log."""

_FLEET_ID = re.compile(r"[0-9a-f]{12}")


def sibling(path: Path, suffix: str) -> Path:
    """Return the file with a suffix beside a ledger."""
    return path.with_name(path.name + suffix)


class Lock:
    """The right to write one ledger, held until `release` or the end of the process."""

    def __init__(self, path: Path) -> None:
        """Take the lock.

        Raises:
            LedgerError: LOCKED, another process has it; UNWRITABLE, the file cannot be made.
        """
        self._path = sibling(path, ".lock")
        try:
            self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise unwritable(self._path, error) from error
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._handle, 20, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._handle)
            raise LedgerError(
                Code.LOCKED,
                f"{path} is in use by process {holder}: stop that daemon first, or use another [ledger] path",
            ) from error
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Give up the lock. The file stays, because removing it would let two processes lock two files of one name."""
        os.close(self._handle)


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
            f"{file} holds no fleet id: restore it from a backup; if the ledger beside it is not damaged, delete "
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
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
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


def write_number(path: Path, suffix: str, number: int) -> None:
    """Store a number in a small file beside a ledger.

    Raises:
        LedgerError: UNWRITABLE.
    """
    write_whole(sibling(path, suffix), f"{number}\n")


def read_number(path: Path, suffix: str) -> int | None:
    """Return the number in a small file, or None without one."""
    try:
        text = sibling(path, suffix).read_text("ascii")[:20].strip()
    except (OSError, ValueError):
        return None
    return int(text) if text.isdecimal() else None


def keep_ballast(path: Path) -> bool:
    """Make sure that the ballast exists in full; return False if the disk has no room for it and as much again.

    The same room again is needed because a disk with room only for the ballast is full: the ballast would be freed and
    created in turns.
    """
    file = sibling(path, ".ballast")
    try:
        if file.is_file() and file.stat().st_size == BALLAST_BYTES:
            return True
        if shutil.disk_usage(file.parent).free < 2 * BALLAST_BYTES:
            return False
        # The bytes are random, because a compressing file system would store zeros without using space.
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, os.urandom(BALLAST_BYTES))
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError:
        free_ballast(path)
        return False
    return True


def free_ballast(path: Path) -> None:
    """Free the ballast's megabyte; on a read-only disk nothing is freed."""
    try:
        sibling(path, ".ballast").unlink(missing_ok=True)
    except OSError:
        return


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
    write_whole(sibling(path, ".backed-up"), at.astimezone(dt.UTC).isoformat() + "\n")


def last_backup(path: Path) -> dt.datetime | None:
    """Return when the newest backup was made, or None without a readable note."""
    try:
        text = sibling(path, ".backed-up").read_text("ascii")[:40].strip()
        return dt.datetime.fromisoformat(text)
    except (OSError, ValueError):
        return None
