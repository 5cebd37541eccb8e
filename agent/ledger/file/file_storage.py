"""A ledger in a file of SQLite."""

from datetime import datetime
from pathlib import Path

import sqlalchemy as sa

from agent.ledger.file import backup, ballast, ledger_check, ledger_lock, migrate, sidecar
from agent.ledger.file.connection import FileLink
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.tables import schema


class FileStorage:
    """The tables of one file; see `agent/ledger/storage_port.py` for each method."""

    is_served = False

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def shown(self) -> str:
        """The file."""
        return str(self.path)

    def is_missing(self) -> bool:
        """Return whether there is no file."""
        return not self.path.exists()

    def lock(self) -> ledger_lock.LedgerLock:
        """Lock the file beside the ledger."""
        return ledger_lock.LedgerLock(self.path)

    def prepare(self) -> None:
        """Create, check, copy and upgrade the file."""
        migrate.prepare(self.path)

    def link(self, mode: str) -> FileLink:
        """Return a way to the file."""
        return FileLink(self.path, mode)

    def check_readable(self) -> None:
        """Refuse a missing, foreign or unreadable file."""
        path = self.path
        ledger_check.refuse_unreadable(path, ", or start the daemon, which answers the members of its group")
        revision = migrate.stored_revision(path)
        if revision is None:
            sentence = f"there is no ledger at {path}: start the daemon once (`gpubid run`), or name the right file"
            raise LedgerError(Code.MISSING, sentence)
        migrate.refuse_foreign(path, revision)
        if revision != schema.REVISION:
            raise LedgerError(
                Code.OLDER_SCHEMA,
                f"{path} has schema {revision}, this gpubid reads {schema.REVISION}: the daemon upgrades it at its "
                "next start (`systemctl restart gpubid`)",
            )

    def leading(self) -> None:
        """Return None: a file has no other machine's daemon."""
        return

    def keep_room(self) -> bool:
        """Keep the ballast."""
        return ballast.keep(self.path)

    def free_room(self) -> None:
        """Free the ballast."""
        ballast.free(self.path)

    def size_bytes(self) -> int:
        """Return the size of the file and its journal."""
        return sidecar.size_bytes(self.path)

    def copy(self, to: Path) -> None:
        """Copy the file, in use or not."""
        backup.copy(self.path, to)

    def finish_copy(self, link: sa.Connection) -> None:
        """Do nothing: SQLite numbers rows after the highest number that a table ever had."""
        del link

    def replica_danger(self, link: sa.Connection) -> str:
        """Return nothing: a file has no replica."""
        del link
        return ""

    def put_aside(self, at: datetime) -> None:
        """Rename the file and its journal."""
        # Only a move of the ledger needs it.
        from agent.ledger.file import restore  # noqa: PLC0415

        restore.put_aside(self.path, at, "moved")

    def verify(self) -> ledger_check.Verification:
        """Check the file and its rows."""
        return ledger_check.verify(self.path)
