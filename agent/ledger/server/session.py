"""One session at the server with our settings, and the locks that let only one daemon lead and write.

1. A fleet has two locks: one of the session that leads (`leadership.py`), and one of the session that writes. So a
   commit can only happen while its session has its lock. The server gives a lock up when the session ends. A session
   whose commit waits for a replica keeps it, so nobody reads what may change.
2. The number of the epoch rises with each start. A commit checks it.
"""

import hashlib
import math
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import adapt, conninfo, sql
from psycopg.types import numeric

from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.server_address import ServerAddress

CONNECT_SECONDS = 5
KEEPALIVE = {"tcp_keepalives_idle": 5, "tcp_keepalives_interval": 2, "tcp_keepalives_count": 3}
"""A client that is cut off loses its session after about eleven seconds; by default the server waits two hours."""
UNANSWERED_SECONDS = 11
"""The same for a client that is cut off while an answer is on its way: then no keepalive is sent."""
READ_PATIENCE_SECONDS = 5.0
"""How long a session that only reads waits for a table that somebody else has locked whole."""
WRITER, LEADER = "ledger", "leader"
"""The lock of the session that writes, and of the session that leads."""
LOCK_PATIENCE_SECONDS = 3.0
"""How long a start waits for the session of a daemon that has just ended."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A session that has a lock: its process at the server, and its client's address, empty on the same machine."""

    process: int
    client: str
    waits_for_replica: bool
    """Whether its commit waits for a synchronous replica of the server."""


class _WholeLoader(adapt.Loader):
    """Sums of whole numbers, which the server sends as numeric."""

    def load(self, data: Any) -> int:  # noqa: ANN401 - as psycopg has it
        """Return the number; a fraction would be a defect, and fails."""
        return int(bytes(data))


class _NumberDumper(numeric.FloatDumper):
    """Numbers as SQLite stores them: it has no NaN, and no rule between rows allows one."""

    def dump(self, obj: float) -> Any:  # noqa: ANN401 - as psycopg has it
        """Return the text of a number."""
        if math.isnan(obj):
            raise ValueError("the ledger stores no NaN")
        return super().dump(obj)


def lock_key(schema: str, lock: str = WRITER) -> int:
    """Return the number of an advisory lock of a fleet: the first eight bytes of a digest of its schema's name."""
    digest = hashlib.sha256(f"gpubid {lock} {schema}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def connect(address: ServerAddress, password: str, *, reads: bool) -> "psycopg.Connection[Any]":
    """Return a session with our settings that leaves transactions to its user.

    Raises:
        psycopg.Error: the server cannot be reached, or refuses the role.
    """
    given = conninfo.conninfo_to_dict(address.url)
    words: dict[str, Any] = {
        "connect_timeout": CONNECT_SECONDS,
        "application_name": "gpubid",
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": 10_000,
        "target_session_attrs": "read-write",
        **given,
    }
    if reads:
        # Not from a replica, whose rows are older. A reading role may have only read-only sessions.
        words["target_session_attrs"] = "primary"
    if reads and address.reader:
        words["user"] = address.reader
    if password:
        words["password"] = password
    raw: psycopg.Connection[Any] = psycopg.connect(**words, autocommit=True)
    try:
        raw.adapters.register_loader("numeric", _WholeLoader)
        raw.adapters.register_dumper(float, _NumberDumper)
        with severed_after(raw, CONNECT_SECONDS):
            _set(raw, address, reads=reads)
    except BaseException:
        raw.close()
        raise
    return raw


def _set(raw: "psycopg.Connection[Any]", address: ServerAddress, *, reads: bool) -> None:
    """Set the session's settings. Its role or database may have others, such as asynchronous commits."""
    settings: dict[str, object] = {
        "search_path": address.schema,
        "timezone": "UTC",
        "client_min_messages": "warning",
        "default_transaction_read_only": "on" if reads else "off",
        # remote_apply adds a wait that only readers of a replica need.
        "synchronous_commit": "on",
        "tcp_user_timeout": UNANSWERED_SECONDS * 1000,
        **KEEPALIVE,
    }
    if reads:
        settings["lock_timeout"] = round(READ_PATIENCE_SECONDS * 1000)
    chosen = sql.SQL(", ").join(
        sql.SQL("set_config({}, {}, false)").format(sql.Literal(name), sql.Literal(str(value)))
        for name, value in settings.items()
    )
    raw.execute(sql.SQL("SELECT {}").format(chosen))


def take_lock(
    raw: "psycopg.Connection[Any]", address: ServerAddress, patience_seconds: float = 0.0, lock: str = WRITER
) -> None:
    """Take a lock of a fleet for this session.

    Raises:
        LedgerError: LOCKED, another session has it.
    """
    key, milliseconds = lock_key(address.schema, lock), round(patience_seconds * 1000)
    try:
        if milliseconds:
            raw.execute("SELECT set_config('lock_timeout', %s, false)", (str(milliseconds),))
            raw.execute("SELECT pg_advisory_lock(%s)", (key,))
            raw.execute("RESET lock_timeout")
            return
    except psycopg.errors.LockNotAvailable:
        raw.execute("RESET lock_timeout")
        raise LedgerError(Code.LOCKED, _in_use(raw, address, lock)) from None
    if not try_lock(raw, address, lock):
        raise LedgerError(Code.LOCKED, _in_use(raw, address, lock))


def try_lock(raw: "psycopg.Connection[Any]", address: ServerAddress, lock: str) -> bool:
    """Take a lock of a fleet for this session, and return whether it was free."""
    return bool(_scalar(raw, "SELECT pg_try_advisory_lock(%s)", lock_key(address.schema, lock)))


def holder(raw: "psycopg.Connection[Any]", schema: str, lock: str = WRITER) -> Holder | None:
    """Return the session that has a lock; None if nobody has it."""
    found = raw.execute(
        "SELECT pid, coalesce(host(client_addr), ''), coalesce(wait_event, '') "
        "FROM pg_locks JOIN pg_stat_activity USING (pid) "
        "WHERE locktype = 'advisory' AND granted AND objsubid = 1 "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
        "AND (classid::bigint << 32) | objid::bigint = %s LIMIT 1",
        (lock_key(schema, lock),),
    ).fetchone()
    return None if found is None else Holder(int(found[0]), str(found[1]), found[2] == "SyncRep")


def end(raw: "psycopg.Connection[Any]", process: int) -> None:
    """End a session of our own role at the server, and wait up to five seconds for its end."""
    raw.execute("SELECT pg_terminate_backend(%s, 5000)", (process,))


def _in_use(raw: "psycopg.Connection[Any]", address: ServerAddress, lock: str) -> str:
    found = holder(raw, address.schema, lock)
    who = "another session" if found is None else f"session {found.process} of {found.client or 'the same machine'}"
    if lock == LEADER:
        return f"{address.shown} is led by a daemon, {who}: give the order on its machine, or stop that daemon first"
    return f"{address.shown} is in use by {who}: stop that daemon first, or use another [ledger] schema for this one"


def _scalar(raw: "psycopg.Connection[Any]", query: str, *values: object) -> Any:  # noqa: ANN401 - any value
    row = raw.execute(query.encode(), values).fetchone()
    return None if row is None else row[0]


def deposed(address: ServerAddress) -> LedgerError:
    """Return the error of a daemon after which another one has begun to write."""
    return LedgerError(
        Code.DEPOSED,
        f"another daemon has begun to write {address.shown}: this one writes nothing any more, to the ledger or to a "
        "market; start it again when the other one has ended",
    )


@contextmanager
def severed_after(raw: "psycopg.Connection[Any]", seconds: float) -> Iterator[None]:
    """Shut the connection down if the block takes longer: a server that is stopped answers no statement."""
    late = threading.Timer(seconds, sever, (raw,))
    late.daemon = True
    late.start()
    try:
        yield
    finally:
        late.cancel()


def sever(raw: "psycopg.Connection[Any]") -> None:
    """Shut the connection down from another thread. The server is not asked to cancel: no commit may be."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(raw.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)
