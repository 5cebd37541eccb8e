"""Exit codes of every verb, and how an error ends a verb.

0: done. 1: it could not be done; the message says whether market, ledger or limits refused. 2: bad input; nothing was
started and nothing was changed. 3: the ledger is damaged.
"""

import errno
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import typer

from agent.ledger.ledger_errors import Code, LedgerError

DONE = 0
FAILED = 1
BAD_INPUT = 2
DAMAGED = 3


def stop(code: int, lines: Iterable[str]) -> NoReturn:
    """Print the lines to stderr and end with `code`."""
    for line in lines:
        sys.stderr.write(f"gpubid: {line}\n")
    raise typer.Exit(code)


def unwritable(path: object, error: OSError) -> NoReturn:
    """End because a file or folder could not be written: bad input, but for a disk that is full or broken."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EIO}:
        stop(FAILED, [f"{path} cannot be written ({error.strerror}); free space there, or name one elsewhere"])
    why = f"({error.strerror}); name one in a folder that exists and that you may write to"
    stop(BAD_INPUT, [f"{path} cannot be written {why}"])


def must_be_new(path: Path) -> None:
    """End if a file exists or cannot be made, before any work is done for it."""
    try:
        # Making it shows permissions, read-only mounts and too long names.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        path.unlink()
    except FileExistsError:
        stop(BAD_INPUT, [f"{path} exists; name a new file"])
    except OSError as error:
        unwritable(path, error)


def refused(error: LedgerError) -> NoReturn:
    """End with the ledger's message. A file or a key of another fleet or account is bad input."""
    codes = {
        Code.CORRUPT: DAMAGED,
        Code.WRONG_ACCOUNT: BAD_INPUT,
        Code.FLEET_MISMATCH: BAD_INPUT,
        Code.NEWER_SCHEMA: BAD_INPUT,
        Code.UNRELEASED_SCHEMA: BAD_INPUT,
        Code.BAD_BACKUP: BAD_INPUT,
        Code.REHEARSED: BAD_INPUT,
    }
    stop(codes.get(error.code, FAILED), [error.sentence])
