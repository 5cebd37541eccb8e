"""Exit codes of every verb, and how an error ends a verb.

0: done. 1: it could not be done; the message says whether market, ledger or limits refused. 2: bad input; nothing was
started and nothing was changed. 3: the ledger is damaged.
"""

import sys
from collections.abc import Iterable
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
    """End because a file or folder could not be written."""
    why = f"({error.strerror}); name one in a folder that exists and that you may write to"
    stop(FAILED, [f"{path} cannot be written {why}"])


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
