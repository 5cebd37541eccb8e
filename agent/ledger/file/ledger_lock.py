"""The lock of a ledger: one process writes it. The kernel holds the lock, so a killed daemon leaves none behind."""

import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from agent.ledger.file import sidecar
from agent.ledger.ledger_errors import Code, LedgerError


class LedgerLock:
    """The right to write one ledger, held until `release` or the end of the process."""

    def __init__(self, path: Path) -> None:
        """Take the lock.

        Raises:
            LedgerError: LOCKED, another process has it; UNWRITABLE, the file cannot be made.
        """
        self._path = sidecar.sibling(path, ".lock")
        try:
            # Root takes the lock too, in a folder where the daemon's user may have put a link to another file.
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self._handle = os.open(self._path, flags, 0o600)
        except OSError as error:
            raise sidecar.unwritable(self._path, error) from error
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._handle, 20, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._handle)
            raise LedgerError(
                Code.LOCKED,
                f"{path} is in use by process {holder}: stop that daemon first, or use another [ledger] path",
            ) from error
        # The number is only for messages: on a full disk the lock is taken without it.
        with suppress(OSError):
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, f"{os.getpid()}\n".encode(), 0)

    def lost(self) -> LedgerError | None:
        """Return None: the kernel takes the lock from no process."""
        return None

    def permit(self, *, is_paying: bool) -> Callable[[], str]:
        """Return a function that lets every request leave."""
        del is_paying
        return str

    def leader(self) -> None:
        """Return None: nobody stands by for a file."""

    def announce(self, page: str) -> None:
        """Do nothing."""

    def release(self) -> None:
        """Give up the lock. The file stays, because removing it would let two processes lock two files of one name."""
        os.close(self._handle)
