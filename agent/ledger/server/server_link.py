"""The way to a ledger on a server: sessions, transactions whose commit is certain, and errors."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlalchemy.util import LRUCache

from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.server import leader_row, server_errors, session
from agent.ledger.server.dialect import dialect
from agent.ledger.server.server_errors import NotCommitted
from agent.ledger.server_address import ServerAddress

_COMPILED: LRUCache[Any, Any] = LRUCache(500)
"""Compiled statements, which all engines share."""
_ENDED = (Code.UNWRITABLE, Code.DEPOSED, Code.LOCKED)


class ServerLink:
    """The way to one server. A writing link's sessions have the lock and belong to one epoch."""

    errors = (psycopg.Error, NotCommitted)
    probe = sa.text("SELECT count(*) FROM meta")

    def __init__(
        self, address: ServerAddress, opened: "Callable[[], psycopg.Connection[Any]]", epoch: leader_row.Epoch | None
    ) -> None:
        """Get sessions from `opened`; a reading link has no epoch."""
        self._address = address
        self._opened = opened
        self._epoch = epoch
        self._raw: psycopg.Connection[Any] | None = None
        self._warnings: list[str] = []
        self._engine = _engine(self._open)

    def connect(self) -> sa.Connection:
        """Connect. A writing link comes back only to its own epoch.

        Raises:
            LedgerError: DEPOSED, LOCKED.
        """
        return self._engine.connect()

    def begin(self, raw: "psycopg.Connection[Any]") -> None:
        """Begin a transaction; a reading one sees one instant."""
        raw.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" if self._epoch is None else "BEGIN")

    def commit(self, raw: "psycopg.Connection[Any]", *, reads: bool) -> None:
        """Commit it.

        Raises:
            LedgerError: DEPOSED, another daemon's epoch has begun.
            NotCommitted: the server did not commit, or warned: a commit whose wait for the replica was cancelled ends
                without an error and can be lost.
        """
        if self._epoch is None or reads:
            # The check of the epoch locks a row, so it would make the commit wait for a replica.
            raw.execute("COMMIT")
            return
        self._warnings.clear()
        try:
            with raw.pipeline():
                raw.execute(leader_row.HELD, self._epoch)
                done = raw.execute("COMMIT")
        except psycopg.errors.DivisionByZero:
            raise session.deposed(self._address) from None
        if done.statusmessage != "COMMIT":
            raise NotCommitted(f"the server answered {done.statusmessage}")
        if self._warnings:
            raise NotCommitted(f"it warned: {self._warnings[0]}")

    def rollback(self, raw: "psycopg.Connection[Any]") -> None:
        """Drop it. A session that is gone has dropped it already."""
        with suppress(psycopg.Error):
            if not raw.closed and raw.info.transaction_status is not psycopg.pq.TransactionStatus.IDLE:
                raw.execute("ROLLBACK")

    def in_our_words(self, error: Exception) -> LedgerError:
        """Return the ledger's error."""
        return server_errors.in_our_words(error, self._address.shown)

    def is_lost(self, error: LedgerError) -> bool:
        """Return whether the session must end. After a commit without an answer a new one shows what took place."""
        return error.code in _ENDED or (self._raw is not None and self._raw.closed)

    def sever(self) -> None:
        """Shut the connection down. The transaction ends as UNWRITABLE, whatever becomes of it at the server."""
        raw = self._raw
        if raw is not None and not raw.closed:
            session.sever(raw)

    def dispose(self) -> None:
        """Forget the engine."""
        self._engine.dispose()

    def _open(self) -> "psycopg.Connection[Any]":
        self._raw = self._opened()
        self._raw.add_notice_handler(self._hear)
        return self._raw

    def _hear(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            self._warnings.append(notice.message_primary or "")


def _engine(opened: Any) -> sa.Engine:  # noqa: ANN401 - SQLAlchemy names its own protocol
    """Return an engine that leaves transactions to its user; the sessions commit nothing by themselves."""
    pool = sa.NullPool(opened, dialect=dialect())
    words = {"compiled_cache": _COMPILED}
    return sa.Engine(pool, dialect(), sa.make_url("postgresql+psycopg://"), execution_options=words)
