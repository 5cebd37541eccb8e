"""Errors of the ledger, with a code for programs and a sentence for the operator."""

from enum import Enum


class Code(Enum):
    """The reasons why the ledger refuses."""

    LOCKED = "locked"
    """Another process writes this ledger."""
    NEWER_SCHEMA = "newer_schema"
    OLDER_SCHEMA = "older_schema"
    """Only for a reader: the daemon migrates at its next start."""
    UNRELEASED_SCHEMA = "unreleased_schema"
    """Written before the first release: sound, but there is no upgrade from it."""
    CORRUPT = "corrupt"
    MISSING = "missing"
    FLEET_MISMATCH = "fleet_mismatch"
    WRONG_ACCOUNT = "wrong_account"
    UNREADABLE = "unreadable"
    """The file belongs to another user."""
    UNWRITABLE = "unwritable"
    BAD_TRANSITION = "bad_transition"
    SLOT_BUSY = "slot_busy"
    """A second open paying intent for one slot."""
    CONFLICT = "conflict"
    """A constraint of the tables was violated: a duplicate id, a negative amount."""
    BAD_BACKUP = "bad_backup"
    NO_DRIVER = "no_driver"
    """The ledger is on a server, and the extra with its driver is not installed."""
    UNREACHABLE = "unreachable"
    """The server does not answer at the start, or refuses the role."""
    DEPOSED = "deposed"
    """Another daemon has written this ledger since; this one may write nothing any more, releases included."""
    UNLED = "unled"
    """This daemon cannot show that it still leads; until it can, it sends nothing, releases included."""
    REHEARSED = "rehearsed"
    """A rehearsal wrote this ledger. Its market is gone, so nothing continues from it."""
    MOVED = "moved"
    """The ledger was moved elsewhere; what was recorded since is there."""


class LedgerError(Exception):
    """The ledger refused; `code` says why, the text says what to do."""

    def __init__(self, code: Code, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
