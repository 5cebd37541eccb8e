"""The operators' holds of a ledger that a backup replaces. A kill since the backup must not be forgotten.

1. The holds of a sound and newer ledger of the same fleet replace those of the backup: a hold may have been lifted.
2. The holds of a damaged ledger, or of one that was itself lost, are added to those of the backup.
3. Nothing is read from an older ledger or from another fleet's.
"""

import datetime as dt
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.domain.record.hold import EVERYTHING, TargetKind, Word
from agent.ledger.file import connection, migrate
from agent.ledger.ledger_errors import LedgerError
from agent.ledger.single_facts import LOST_RUNS
from agent.ledger.tables.types import micros

_SCOPES = (*(word.value for word in Word), TargetKind.FLEET.value)
_IN_SCOPES = f"scope IN ({', '.join('?' * len(_SCOPES))})"


@dataclass(frozen=True, slots=True)
class ReplacedHolds:
    """The holds in force in a ledger that is replaced. `is_whole` says whether none can be missing."""

    rows: tuple[Mapping[str, Any], ...]
    """The rows of the table, by column; instants are microseconds since the epoch."""
    is_whole: bool

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of holds by word. A kill of everything is one, with or without disks."""
        fleet = TargetKind.FLEET.value
        of_targets = Counter(row["scope"] for row in self.rows if row["scope"] != fleet)
        is_killed = any((row["scope"], row["key"]) == (fleet, EVERYTHING.name) for row in self.rows)
        return of_targets + Counter({Word.KILL.value: int(is_killed)})


def read(path: Path, source: Path, fleet_id: str, at: dt.datetime) -> ReplacedHolds | None:
    """Return the holds at `at` of the ledger at `path`, which the backup `source` of a fleet replaces.

    None if there is no ledger, it cannot be read, or it is no later state of the fleet of the backup.
    """
    if not path.exists():
        return None
    is_sound = _is_sound(path)
    try:
        with closing(connection.connect(path, "ro")) as raw:
            if _fact(raw, "fleet_id") != fleet_id or (is_sound and _last_event(raw) < _last_event_of(source)):
                return None
            raw.row_factory = sqlite3.Row
            query = f"SELECT * FROM cooldowns WHERE {_IN_SCOPES} AND (until IS NULL OR until > ?)"  # noqa: S608
            rows = tuple(dict(row) for row in raw.execute(query, (*_SCOPES, micros(at))))
            return ReplacedHolds(rows, is_sound and _fact(raw, LOST_RUNS) is None)
    except sqlite3.Error:
        return None


def write(path: Path, replaced: ReplacedHolds) -> bool:
    """Record the holds in the restored ledger. Return False if its older schema cannot have one of them."""
    try:
        with closing(connection.connect(path, "rw")) as raw:
            known = {row[1] for row in raw.execute("PRAGMA table_info(cooldowns)")}
            raw.execute("BEGIN IMMEDIATE")
            if replaced.is_whole:
                raw.execute(f"DELETE FROM cooldowns WHERE {_IN_SCOPES}", _SCOPES)  # noqa: S608
            for row in replaced.rows:
                names = sorted(known & row.keys())
                places = ", ".join("?" * len(names))
                statement = f"INSERT OR REPLACE INTO cooldowns ({', '.join(names)}) VALUES ({places})"  # noqa: S608
                raw.execute(statement, [row[name] for name in names])
            raw.execute("COMMIT")
    except sqlite3.IntegrityError:
        return False
    except sqlite3.Error as error:
        raise connection.in_our_words(error, path) from error
    return True


def _is_sound(path: Path) -> bool:
    try:
        migrate.check_sound(path)
    except LedgerError:
        return False
    return True


def _fact(raw: sqlite3.Connection, key: str) -> str | None:
    row = raw.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def _last_event_of(path: Path) -> int:
    with closing(connection.connect(path, "ro")) as raw:
        return _last_event(raw)


def _last_event(raw: sqlite3.Connection) -> int:
    return int(raw.execute("SELECT coalesce(max(at), 0) FROM events").fetchone()[0])
