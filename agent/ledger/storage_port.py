"""The port to a place of the ledger's tables: a file of SQLite, or a schema on a PostgreSQL server."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    import sqlalchemy as sa

    from agent.ledger.connection_thread import Link
    from agent.ledger.file.ledger_check import Verification
    from agent.ledger.leader import Leader
    from agent.ledger.ledger_errors import LedgerError

Password = Callable[[str, Path | None], str]
"""A function that returns the password of a credential's name or of a file. It may raise the caller's own error."""


class WriteRight(Protocol):
    """The right to write a ledger."""

    def lost(self) -> "LedgerError | None":
        """Return why this process cannot show that it still has the right, or None while it can."""
        ...

    def permit(self, *, is_paying: bool) -> Callable[[], str]:
        """Return a function to be asked before the first byte of what is now recorded as sent.

        It returns why the request must not leave, or an empty text.
        """
        ...

    def leader(self) -> "Leader | None":
        """Return this process as the leader of its fleet; None on a file, where there is no other."""
        ...

    def announce(self, page: str) -> None:
        """Give standbys the address of this process's page."""
        ...

    def release(self) -> None:
        """Give up the right."""
        ...


class Storage(Protocol):
    """One ledger's tables. `path` names the small files, which are on this machine in either case."""

    path: Path
    is_served: bool
    """Whether the tables are on a server, where a standby may take the lead."""

    @property
    def shown(self) -> str:
        """The place for messages."""
        ...

    def is_missing(self) -> bool:
        """Return whether it is certain that there are no tables; false for a server, which only a session can ask."""
        ...

    def lock(self) -> WriteRight:
        """Take the right to write.

        Raises:
            LedgerError: LOCKED, UNWRITABLE.
        """
        ...

    def prepare(self) -> None:
        """Create the tables or bring them to the present schema, while the right to write is held.

        Raises:
            LedgerError: CORRUPT, NEWER_SCHEMA, UNRELEASED_SCHEMA, UNWRITABLE.
        """
        ...

    def link(self, mode: str) -> "Link":
        """Return a way to the tables; mode is ro, or rw while the right to write is held."""
        ...

    def check_readable(self) -> None:
        """Raise if a reader cannot read these tables.

        Raises:
            LedgerError: MISSING, UNREADABLE, CORRUPT, OLDER_SCHEMA, NEWER_SCHEMA, UNRELEASED_SCHEMA.
        """
        ...

    def leading(self) -> "Leader | None":
        """Return the daemon that leads these tables now, on any machine; None if nobody does, and on a file.

        Raises:
            LedgerError: UNREACHABLE, UNWRITABLE.
        """
        ...

    def keep_room(self) -> bool:
        """Make sure that room is kept for the last records; return whether there is room."""
        ...

    def free_room(self) -> None:
        """Free the kept room."""
        ...

    def size_bytes(self) -> int:
        """Return the size of the tables on this machine."""
        ...

    def copy(self, to: Path) -> None:
        """Copy the ledger to a file of SQLite that does not exist yet, and check the copy.

        Raises:
            LedgerError: BAD_BACKUP, UNWRITABLE, CORRUPT.
        """
        ...

    def finish_copy(self, link: "sa.Connection") -> None:
        """Let rows be numbered after those that were just copied, in the open transaction."""
        ...

    def replica_danger(self, link: "sa.Connection") -> str:
        """Return why a replica could take over without a committed order, and the command that prevents it.

        The text is empty if no replica could.

        `link` is of the session that writes.
        """
        ...

    def put_aside(self, at: "datetime") -> None:
        """Rename the tables; the new name contains the instant. The right to write is held.

        Raises:
            LedgerError: UNWRITABLE.
        """
        ...

    def verify(self) -> "Verification":
        """Return the check of the tables and of the rules between their rows."""
        ...
