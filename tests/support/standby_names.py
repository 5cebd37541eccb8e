"""The setting that makes the replicas of a test's server confirm commits."""

import contextlib
from collections.abc import Iterator
from typing import Any

from agent.ledger.server_address import ServerAddress
from tests.support import engines


def set_names(url: str, value: str) -> None:
    """Set `synchronous_standby_names` by the superuser's address, and wait until the server has read it."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{value}'".encode())
        raw.execute("SELECT pg_reload_conf()")
        while raw.execute("SHOW synchronous_standby_names").fetchone() != (value,):
            """The server reads its settings again in a moment."""


def administrator_url(address: ServerAddress) -> str:
    """Return the address of the server for its superuser."""
    return address.url.replace(f"{engines.ROLE}:", "lab:")


@contextlib.contextmanager
def administered(address: ServerAddress) -> Iterator[Any]:
    """Yield a session of the server's own superuser."""
    import psycopg

    with psycopg.connect(administrator_url(address), autocommit=True) as raw:
        yield raw


@contextlib.contextmanager
def lacking_replica(address: ServerAddress) -> Iterator[Any]:
    """Let every commit wait for a replica that is not there, while the block runs."""
    with administered(address) as raw:
        set_names(administrator_url(address), "nobody")
        try:
            while not commit_waits(raw, address):
                """Commits wait once the server's checkpointer, too, has read the settings again."""
            yield raw
        finally:
            set_names(administrator_url(address), "")


def commit_waits(raw: Any, address: ServerAddress) -> bool:
    """Commit something, and return whether that had to wait for the replica. Then the wait is cancelled."""
    asked = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid = %s AND wait_event = 'SyncRep'"
    with administered(address) as probe:
        probe.pgconn.send_query(b"SELECT pg_logical_emit_message(true, 'test', '')")
        is_waiting = False
        while probe.pgconn.is_busy():
            is_waiting = is_waiting or bool(raw.execute(asked, (probe.info.backend_pid,)).fetchall())
            probe.pgconn.consume_input()
        while probe.pgconn.get_result() is not None:
            """To the end of its answer."""
    return is_waiting
