"""The fleet id of a ledger that cannot be opened: from its file as far as it is readable, else from its second file."""

import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from agent.ledger.file import connection, sidecar
from agent.ledger.ledger_errors import LedgerError

_ID = re.compile(r"[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class FleetIds:
    """The ids in the ledger's file and in the second file; empty if one has none."""

    ledger: str
    second: str

    @property
    def agreed(self) -> str:
        """The id if the files do not contradict each other, else nothing."""
        if self.ledger and self.second and self.ledger != self.second:
            return ""
        return self.ledger or self.second


def is_fleet_id(text: str) -> bool:
    """Return whether a text is a fleet id: twelve hexadecimal characters."""
    return _ID.fullmatch(text) is not None


def of(path: Path) -> FleetIds:
    """Return the ids that can be read. It writes nothing and raises nothing."""
    return FleetIds(_in_ledger(path), _in_second(path))


def _in_ledger(path: Path) -> str:
    try:
        with closing(connection.connect(path, "ro")) as raw:
            row = raw.execute("SELECT value FROM meta WHERE key = 'fleet_id'").fetchone()
    except (sqlite3.Error, OSError):
        return ""
    fleet_id = str(row[0]) if row is not None else ""
    return fleet_id if is_fleet_id(fleet_id) else ""


def _in_second(path: Path) -> str:
    try:
        return sidecar.read_fleet_id(path) or ""
    except LedgerError:
        return ""
