"""The one row of table `leader`: the number of the epoch, who began it, and the last beat.

1. An epoch is its number and when it began: a database that goes back in time gives a number a second time.
2. A commit locks the row with FOR KEY SHARE, which no beat waits for. The begin of an epoch locks it with FOR UPDATE,
   so it waits until no commit of the former leader is pending.
"""

import socket
from datetime import datetime
from typing import Any, NamedTuple

import psycopg

from agent.ledger.leader import Leader
from agent.ledger.server import session
from agent.ledger.server.server_errors import NotCommitted
from agent.ledger.server_address import ServerAddress

SHOWN_SECONDS = 8.0
"""How long a beat shows the lead. It is less than a standby's wait before it ends a frozen leader's session, and less
than the time in which the server's keepalives notice a lost client."""
TABLE = """
    CREATE TABLE leader (one BIGINT PRIMARY KEY CHECK (one = 1), epoch BIGINT NOT NULL,
        since TIMESTAMPTZ NOT NULL DEFAULT now(), beat_at TIMESTAMPTZ NOT NULL DEFAULT now(),
        host TEXT NOT NULL DEFAULT '', page TEXT NOT NULL DEFAULT '', session BIGINT NOT NULL DEFAULT 0)
"""
_ADDED = {
    "host": "TEXT NOT NULL DEFAULT ''",
    "page": "TEXT NOT NULL DEFAULT ''",
    "session": "BIGINT NOT NULL DEFAULT 0",
}
"""The columns that the first table `leader` lacked."""
HELD = "SELECT 1 / count(*) FROM (SELECT 1 FROM leader WHERE epoch = %s AND since = %s FOR KEY SHARE) AS held"
"""It fails if the epoch is over. In a pipeline the server then skips the commit, so both take one round trip."""
_BEGIN = """
    INSERT INTO leader (one, epoch, host) VALUES (1, 1, %s) ON CONFLICT (one) DO UPDATE
    SET epoch = leader.epoch + 1, since = now(), beat_at = now(), host = excluded.host, page = '', session = 0
    RETURNING epoch, since, host, page, 0::float8, beat_at, session
"""
_READ = """
    SELECT epoch, since, host, page, extract(epoch FROM clock_timestamp() - beat_at)::float8, beat_at,
        coalesce((to_jsonb(leader) ->> 'session')::bigint, 0)
    FROM leader
"""
"""The column of the session is read as JSON, because the table of a leader that is not upgraded yet lacks it."""
_BEAT = """
    UPDATE leader SET beat_at = clock_timestamp(), page = %s, session = pg_backend_pid() WHERE epoch = %s AND since = %s
"""


class Epoch(NamedTuple):
    """The number of an epoch, and when it began by the server's clock."""

    number: int
    since: datetime


def complete(raw: "psycopg.Connection[Any]") -> None:
    """Add the columns that the table of an older gpubid lacks.

    A whole table is not altered: that waits for every open transaction that has read it, such as that of a backup, and
    whoever reads the table waits behind it.
    """
    query = "SELECT attname FROM pg_attribute WHERE attrelid = 'leader'::regclass AND NOT attisdropped"
    present = {name for (name,) in raw.execute(query)}
    missing = ", ".join(f"ADD COLUMN {name} {kind}" for name, kind in _ADDED.items() if name not in present)
    if missing:
        raw.execute(f"ALTER TABLE leader {missing}".encode())


def begin(raw: "psycopg.Connection[Any]") -> Leader:
    """Begin the epoch of this daemon.

    Raises:
        NotCommitted: the server warned. A commit that waited for no replica can be lost, and its number be given again.
    """
    warnings: list[str] = []

    def hear(notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            warnings.append(notice.message_primary or "")

    raw.add_notice_handler(hear)
    try:
        with raw.transaction():
            raw.execute("SELECT 1 FROM leader FOR UPDATE")
            row = raw.execute(_BEGIN, (socket.gethostname(),)).fetchone()
    finally:
        raw.remove_notice_handler(hear)
    if warnings:
        raise NotCommitted(f"it warned: {warnings[0]}")
    if row is None:
        raise RuntimeError("an upsert returns its row")
    return _leader(row)


def beat(raw: "psycopg.Connection[Any]", epoch: Epoch, page: str) -> bool:
    """Write one beat of an epoch, in the session that has the lock. Return False if the epoch is over."""
    return raw.execute(_BEAT, (page, *epoch)).rowcount == 1


def read(raw: "psycopg.Connection[Any]") -> Leader | None:
    """Return the present leader by the server's clock; None if there was none yet."""
    try:
        row = raw.execute(_READ).fetchone()
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn):
        # The first daemon is still creating or upgrading the tables.
        return None
    return None if row is None else _leader(row)


def _leader(row: tuple[Any, ...]) -> Leader:
    epoch, since, host, page, age, beat_at, process = row
    shown = age < SHOWN_SECONDS
    return Leader(int(epoch), since, host, page, beat_at, max(0.0, age), is_shown=shown, process=int(process))


def refuse_deposed(raw: "psycopg.Connection[Any]", address: ServerAddress, epoch: Epoch) -> None:
    """Raise LedgerError DEPOSED if another daemon has begun an epoch since.

    Raises:
        LedgerError: DEPOSED.
    """
    row = raw.execute("SELECT epoch, since FROM leader").fetchone()
    if row is None or Epoch(*row) != epoch:
        raise session.deposed(address)
