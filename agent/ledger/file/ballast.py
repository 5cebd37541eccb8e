"""The ballast beside a ledger: real bytes. Freeing them gives a full disk room for the last records."""

import os
import shutil
from pathlib import Path

from agent.ledger.file import sidecar

BALLAST_BYTES = 1024 * 1024
"""Room for some hundreds of releases and their events. A commit needs a few pages of the write-ahead log."""


def keep(path: Path) -> bool:
    """Make sure that the ballast exists in full; return False if the disk has no room for it and as much again.

    The disk must have the same room again: with room only for the ballast, it would be freed and created by turns.
    """
    file = sidecar.sibling(path, ".ballast")
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
        free(path)
        return False
    return True


def free(path: Path) -> None:
    """Free the ballast's megabyte; on a read-only disk nothing is freed."""
    try:
        sidecar.sibling(path, ".ballast").unlink(missing_ok=True)
    except OSError:
        return
