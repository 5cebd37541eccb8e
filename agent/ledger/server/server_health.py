"""The facts of a ledger's server that `gpubid doctor` judges."""

from dataclasses import dataclass
from typing import Any

import psycopg

from agent.clock import SystemClock
from agent.ledger.server import replicas, server_errors, session
from agent.ledger.server.replicas import Replicas
from agent.ledger.server_address import ServerAddress

_PROBES = 5
_LEADER_ROLE = """
    SELECT leader.rolname, leader.rolsuper AND NOT own.rolsuper,
        pg_has_role(leader.oid, 'USAGE') OR pg_has_role('pg_signal_backend', 'USAGE'),
        pg_has_role(leader.oid, 'USAGE') OR pg_has_role('pg_read_all_stats', 'USAGE')
    FROM pg_stat_activity JOIN pg_roles AS leader ON leader.oid = usesysid
        JOIN pg_roles AS own ON own.rolname = current_user
    WHERE pid = %s
"""


@dataclass(frozen=True, slots=True)
class LeaderRole:
    """The role of the session that leads, and what our role may do with that session.

    `outranks` is whether its role is a superuser and ours is not: then only a superuser may end the session.
    `may_be_seen` is whether we see that its commit waits for a synchronous replica of the server.
    """

    name: str
    outranks: bool
    may_be_ended: bool
    may_be_seen: bool


@dataclass(frozen=True, slots=True)
class ServerHealth:
    """The facts of one session. `latency_seconds` is the shortest round trip of five.

    `keepalive_seconds` is the longest time in which the server notices that we are gone; None on a local socket.
    `keeps_session` says whether two statements reached the same session, with the lock that the first one took.
    """

    version: str
    role: str
    is_superuser: bool
    may_write: bool
    is_in_recovery: bool
    latency_seconds: float
    keepalive_seconds: int | None
    replicas: Replicas
    is_durable: bool
    keeps_session: bool
    leader_role: LeaderRole | None
    """None while nobody leads."""


def look(address: ServerAddress, password: str) -> ServerHealth:
    """Return the facts of the role that writes.

    Raises:
        LedgerError: as the server refuses, in the ledger's words.
    """
    try:
        with session.connect(address, password, reads=False) as raw:
            return _seen(raw, address)
    except psycopg.Error as error:
        raise server_errors.in_our_words(error, address.shown) from error


def _seen(raw: "psycopg.Connection[Any]", address: ServerAddress) -> ServerHealth:
    idle, interval, count = (int(_one(raw, f"SHOW {name}")) for name in session.KEEPALIVE)
    return ServerHealth(
        version=_one(raw, "SHOW server_version"),
        role=_one(raw, "SELECT current_user"),
        is_superuser=_one(raw, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"),
        may_write=_may_write(raw, address.schema),
        is_in_recovery=_one(raw, "SELECT pg_is_in_recovery()"),
        latency_seconds=min(_round_trip(raw) for _ in range(_PROBES)),
        keepalive_seconds=idle + interval * count if idle else None,
        replicas=replicas.look(raw),
        is_durable=_one(raw, "SHOW fsync") == "on" and _one(raw, "SHOW full_page_writes") == "on",
        keeps_session=_keeps_session(raw),
        leader_role=_leader_role(raw, address.schema),
    )


def _may_write(raw: "psycopg.Connection[Any]", schema: str) -> bool:
    """Return whether the role may write the ledger, or make it where the schema is not there yet."""
    known = _one(raw, "SELECT count(*) FROM pg_namespace WHERE nspname = %s", schema)
    if not known:
        return bool(_one(raw, "SELECT has_database_privilege(current_database(), 'CREATE')"))
    return bool(_one(raw, "SELECT has_schema_privilege(%s, 'CREATE')", schema))


def _leader_role(raw: "psycopg.Connection[Any]", schema: str) -> LeaderRole | None:
    holder = session.holder(raw, schema, session.LEADER)
    found = None if holder is None else raw.execute(_LEADER_ROLE.encode(), (holder.process,)).fetchone()
    if found is None:
        return None
    name, outranks, may_be_ended, may_be_seen = found
    return LeaderRole(name, outranks, may_be_ended and not outranks, may_be_seen)


def _keeps_session(raw: "psycopg.Connection[Any]") -> bool:
    """Take a lock of our own, and look for it with another statement: a pooler by transaction loses it."""
    number = session.lock_key(f"doctor {raw.info.backend_pid}")
    process = _one(raw, "SELECT CASE WHEN pg_try_advisory_lock(%s) THEN pg_backend_pid() END", number)
    query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND pid = %s"
    return bool(_one(raw, query, process))


def _round_trip(raw: "psycopg.Connection[Any]") -> float:
    clock = SystemClock()
    began = clock.monotonic()
    raw.execute("SELECT 1")
    return clock.monotonic() - began


def _one(raw: "psycopg.Connection[Any]", query: str, *values: object) -> Any:  # noqa: ANN401 - any value
    row = raw.execute(query.encode(), values).fetchone()
    return None if row is None else row[0]
