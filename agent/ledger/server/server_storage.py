"""A ledger in a schema of a PostgreSQL server. The small files beside a ledger are on this machine as before."""

import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg import sql
from sqlalchemy import exc

from agent import clock
from agent.ledger import table_copy
from agent.ledger.file import migrate
from agent.ledger.file.connection import FileLink
from agent.ledger.file.ledger_check import Verification
from agent.ledger.leader import Leader
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.server import leader_row, replicas, server_check, server_errors, server_tables, session
from agent.ledger.server.leadership import Leadership
from agent.ledger.server.server_link import ServerLink
from agent.ledger.server_address import ServerAddress
from agent.ledger.storage_port import Password
from agent.ledger.tables import schema

OWN_PROCESSES = 8
"""How many of our own last sessions are remembered, to tell them from those of another daemon."""
PREPARE_SECONDS = 120.0
"""The longest time to create or upgrade the tables. A server without its synchronous replica would never end it."""


class _Lock:
    """The right to write: the lead, and the session that writes. The server gives both up when their sessions end."""

    def __init__(self, lead: Leadership, raw: "psycopg.Connection[Any]") -> None:
        self.lead = lead
        self._raw = raw

    def lost(self) -> LedgerError | None:
        """Return why the lead cannot be shown."""
        return self.lead.lost()

    def permit(self, *, is_paying: bool) -> Callable[[], str]:
        """Return a function that returns, before the first byte, why a request must not leave."""
        return self.lead.permit(is_paying=is_paying)

    def leader(self) -> Leader | None:
        """Return this daemon as the leader."""
        return self.lead.leader()

    def announce(self, page: str) -> None:
        """Give standbys the address of this daemon's page, with the next beat."""
        self.lead.page = page

    def release(self) -> None:
        """End both sessions, the lead last."""
        with suppress(psycopg.Error):
            self._raw.close()
        self.lead.release()


class ServerStorage:
    """The tables of one schema; see `agent/ledger/storage_port.py` for each method."""

    is_served = True

    def __init__(
        self, path: Path, address: ServerAddress, password: Password, boottime: Callable[[], float] = clock.boottime
    ) -> None:
        self.path = path
        self.address = address
        self._password = password
        self.lead: Leadership | None = None
        self._boottime = boottime
        self._is_daemons = False
        self._won: psycopg.Connection[Any] | None = None
        self._locked: psycopg.Connection[Any] | None = None
        self._epoch: leader_row.Epoch | None = None
        self._own_processes: deque[int] = deque(maxlen=OWN_PROCESSES)
        """The server's processes of our last sessions, also of those whose lock nobody confirmed to us."""
        self._replicas = replicas.Replicas()

    @property
    def shown(self) -> str:
        """The address without user and password."""
        return self.address.shown

    def is_missing(self) -> bool:
        """Return False: only the server knows."""
        return False

    def become_daemons(self) -> None:
        """Let every session have the role that writes: no second password decides whether a daemon can lead."""
        self._is_daemons = True

    def lock(self) -> _Lock:
        """Take the lead, and the lock for a new session, which then writes."""
        self.become_daemons()
        raw, self._won = self._won or self._elected(), None
        lead = Leadership(raw, self.address, self.connected, self._boottime)
        try:
            # A standby may have slept since it won. It must not end the session of who leads now.
            lead.insist()
            self._locked = self._writer()
        except BaseException:
            lead.release()
            raise
        self.lead = lead
        return _Lock(lead, self._locked)

    def win(self, raw: "psycopg.Connection[Any]") -> None:
        """Take a session that has the lock of the leader; the next `lock` uses it."""
        self._won = raw

    def prepare(self) -> None:
        """Create or upgrade the tables, and begin this daemon's epoch."""
        raw = self._writing()
        try:
            with session.severed_after(raw, PREPARE_SECONDS):
                server_tables.prepare(raw, self.address)
                if self.lead is not None:
                    self.lead.insist()
                leader = leader_row.begin(raw)
        except (psycopg.Error, server_errors.NotCommitted) as error:
            raise self._in_our_words(error) from error
        self._epoch = leader_row.Epoch(leader.epoch, leader.since)
        if self.lead is not None:
            self.lead.begin(leader)

    def link(self, mode: str) -> ServerLink:
        """Return a way to the tables."""
        if mode == "ro":
            return ServerLink(self.address, self._read, None)
        return ServerLink(self.address, self._write, self._epoch)

    def check_readable(self) -> None:
        """Refuse a server that cannot be read, another release's tables, and for a daemon a reader that is no role."""
        raw = self._connected(reads=True)
        try:
            with raw:
                revision = server_tables.revision(raw, self.address)
                if self._is_daemons:
                    server_tables.refuse_missing_reader(raw, self.address)
        except psycopg.Error as error:
            raise self._in_our_words(error) from error
        if revision is None:
            sentence = f"there is no ledger at {self.shown}: start the daemon once (`gpubid run`)"
            raise LedgerError(Code.MISSING, sentence)
        if revision != schema.REVISION:
            raise LedgerError(
                Code.OLDER_SCHEMA,
                f"{self.shown} has schema {revision}, this gpubid reads {schema.REVISION}: the daemon upgrades it at "
                "its next start (`systemctl restart gpubid`)",
            )

    def leading(self) -> Leader | None:
        """Return the daemon that leads now, by the server's own lock."""
        raw = self._connected(reads=True)
        try:
            with raw:
                return _leading(raw, self.address)
        except psycopg.Error as error:
            raise self._in_our_words(error) from error

    def keep_room(self) -> bool:
        """Return True: a server has no ballast, and refuses a write when its disk is full."""
        return True

    def free_room(self) -> None:
        """Do nothing: there is no ballast."""

    def size_bytes(self) -> int:
        """Return 0: nothing of the tables is on this machine."""
        return 0

    def copy(self, to: Path) -> None:
        """Copy the rows of one instant to a file of SQLite."""
        migrate.prepare(to)
        reading, writing = ServerLink(self.address, self._read, None), FileLink(to, "rw")
        try:
            with reading.connect() as source, writing.connect() as target:
                reading.begin(_raw(source))
                writing.begin(_raw(target))
                table_copy.copy(source, target)
                writing.commit(_raw(target), reads=False)
        except (exc.SQLAlchemyError, *reading.errors) as error:
            raise self._in_our_words(error) from error
        except sqlite3.Error as error:
            raise writing.in_our_words(error) from error

    def finish_copy(self, link: sa.Connection) -> None:
        """Let rows be numbered after those that were copied."""
        server_tables.renumber(link)

    def replica_danger(self, link: sa.Connection) -> str:
        """Look at the replicas of the session's server."""
        self._replicas = replicas.after(self._replicas, replicas.look(_raw(link)))
        found = replicas.danger(self._replicas)
        return f"{self.shown}: {found}" if found else ""

    def put_aside(self, at: datetime) -> None:
        """Rename the schema, and make an empty one."""
        raw = self._writing()
        aside = f"{self.address.schema}_moved_{at.astimezone(UTC):%Y%m%dt%H%M%Sz}"
        names = sql.Identifier(self.address.schema), sql.Identifier(aside)
        try:
            raw.execute(sql.SQL("ALTER SCHEMA {} RENAME TO {}").format(*names))
        except psycopg.Error as error:
            raise self._in_our_words(error) from error

    def verify(self) -> Verification:
        """Check the rules between the rows. The server checks its own files."""
        raw = self._connected(reads=True)
        try:
            with raw:
                return server_check.verify(raw, self.address)
        except psycopg.Error as error:
            found = self._in_our_words(error)
            if found.code is not Code.CORRUPT:
                # A server that does not answer, or a role without a right, says nothing about the rows.
                raise found from error
            return Verification(Path(self.shown), "", {}, (found.sentence,))

    def _writing(self) -> "psycopg.Connection[Any]":
        """Return the session that has the lock, for work beside a link."""
        if self._locked is None or self._locked.closed:
            raise RuntimeError("a ledger is prepared under its lock")
        return self._locked

    def _read(self) -> "psycopg.Connection[Any]":
        return self._session(reads=True)

    def _write(self) -> "psycopg.Connection[Any]":
        """Return the session that has the lock, or after its end a new one that gets it back in the same epoch."""
        raw, self._locked = self._locked, None
        if raw is not None and not raw.closed:
            self._own_processes.append(raw.info.backend_pid)
            return raw
        if self._epoch is None:
            raise RuntimeError("a session that writes belongs to an epoch")
        raw = self._session(reads=False)
        # The server may give it the lock although its answer is lost.
        self._own_processes.append(raw.info.backend_pid)
        try:
            with session.severed_after(raw, session.CONNECT_SECONDS):
                leader_row.refuse_deposed(raw, self.address, self._epoch)
                session.take_lock(raw, self.address)
                leader_row.refuse_deposed(raw, self.address, self._epoch)
        except LedgerError as error:
            found = session.holder(raw, self.address.schema) if error.code is Code.LOCKED else None
            raw.close()
            if error.code is not Code.LOCKED:
                raise
            if found is not None and found.process not in self._own_processes:
                raise session.deposed(self.address) from error
            # Our own last session has not ended: its commit may still wait. Until then nothing is read or written.
            sentence = (
                f"the last session of this daemon at {self.shown} has not ended yet; until then nothing is paid for"
            )
            raise LedgerError(Code.UNWRITABLE, sentence) from error
        except BaseException:
            raw.close()
            raise
        return raw

    def _elected(self) -> "psycopg.Connection[Any]":
        """Return a session that has the lock of the leader.

        Raises:
            LedgerError: LOCKED, another daemon leads; UNREACHABLE, UNWRITABLE.
        """
        with self._opening(self.connected()) as raw:
            try:
                session.take_lock(raw, self.address, session.LOCK_PATIENCE_SECONDS, session.LEADER)
            except LedgerError as error:
                leader = _leading(raw, self.address)
                if leader is None:
                    raise
                why = f"is led by the daemon on {leader.place}: give the order there, or stop that daemon first"
                raise LedgerError(error.code, f"{self.shown} {why}") from error
            return raw

    def _writer(self) -> "psycopg.Connection[Any]":
        """Return a session that has the lock of the writer. The leader ends one that a former leader left."""
        with self._opening(self.connected()) as raw:
            try:
                session.take_lock(raw, self.address, session.LOCK_PATIENCE_SECONDS)
            except LedgerError:
                found = session.holder(raw, self.address.schema)
                if found is not None:
                    session.end(raw, found.process)
                session.take_lock(raw, self.address, session.LOCK_PATIENCE_SECONDS)
            return raw

    @contextmanager
    def _opening(self, raw: "psycopg.Connection[Any]") -> "Iterator[psycopg.Connection[Any]]":
        """Yield a session that is closed if the block fails."""
        try:
            yield raw
        except psycopg.Error as error:
            raw.close()
            raise self._in_our_words(error) from error
        except BaseException:
            raw.close()
            raise

    def connected(self) -> "psycopg.Connection[Any]":
        """Return a new session of the role that writes, without any lock.

        Raises:
            LedgerError: UNREACHABLE.
        """
        return self._connected(reads=False)

    def _connected(self, *, reads: bool) -> "psycopg.Connection[Any]":
        try:
            return self._session(reads=reads)
        except psycopg.Error as error:
            why = server_errors.unreached(error, self.shown)
            raise LedgerError(Code.UNREACHABLE, why) from error

    def _session(self, *, reads: bool) -> "psycopg.Connection[Any]":
        address = replace(self.address, reader="") if self._is_daemons else self.address
        return session.connect(address, self._word(address, reads=reads), reads=reads)

    def _word(self, address: ServerAddress, *, reads: bool) -> str:
        """Return the password, or an empty text if the address names none.

        Raises:
            LedgerError: UNWRITABLE, it cannot be read any more, and this process leads: the daemon goes on without it.
        """
        if reads and address.reader:
            return self._password(address.reader_credential, None) if address.reader_credential else ""
        if not address.credential and address.credential_file is None:
            return ""
        try:
            return self._password(address.credential, address.credential_file)
        except Exception as error:
            if self._epoch is None:
                raise
            sentence = f"{self.shown} cannot be reached without its password ({error}); until then nothing is paid for"
            raise LedgerError(Code.UNWRITABLE, sentence) from error

    def _in_our_words(self, error: Exception) -> LedgerError:
        return server_errors.in_our_words(error, self.shown)


def _leading(raw: "psycopg.Connection[Any]", address: ServerAddress) -> Leader | None:
    """Return the leader whose session has the lock now; None if nobody has it, or one that has not beaten yet."""
    holder, leader = session.holder(raw, address.schema, session.LEADER), leader_row.read(raw)
    return leader if holder is not None and leader is not None and leader.process == holder.process else None


def _raw(link: sa.Connection) -> Any:  # noqa: ANN401 - either driver's own connection
    return link.connection.driver_connection
