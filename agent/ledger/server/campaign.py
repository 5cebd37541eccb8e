"""A standby at the server: it takes the lead when that is free, and ends the session of a frozen leader.

1. A session whose commit waits for a replica of the server is not frozen, and is left alone: its silence counts from
   the end of the wait.
2. A standby writes nothing to the ledger and sends nothing to a market.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg

from agent import clock
from agent.ledger.file import sidecar
from agent.ledger.leader import Leader
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.server import leader_row, server_errors, session
from agent.ledger.server.beat_watch import BeatWatch
from agent.ledger.server.server_storage import ServerStorage

LOOK_SECONDS = 15.0
"""The longest look, once it has a session. The end of a frozen leader's session takes up to five seconds of it."""


class Campaign:
    """One standby's looks at the lead, from one session."""

    def __init__(self, storage: ServerStorage, boottime: Callable[[], float] = clock.boottime) -> None:
        """Stand by for the ledger of `storage`, which takes over the session that wins."""
        self.storage = storage
        storage.become_daemons()
        self.has_won = False
        self.frozen: Leader | None = None
        """The leader whose session this standby ended last; None if it ended none."""
        self._boottime = boottime
        self._woken = threading.Event()
        self._raw: psycopg.Connection[Any] | None = None
        self._watch = BeatWatch()
        self._is_fleet_known = False

    def look(self, after_seconds: float = 0.0) -> Leader | None:
        """Wait, then take the lead if it is free; return who leads, or None if nobody does or did.

        The seconds are real, as those of beats; `wake` ends the wait.

        Raises:
            LedgerError: UNREACHABLE, UNWRITABLE; FLEET_MISMATCH, this machine's small files are of another fleet.
        """
        self._woken.wait(after_seconds)
        self._woken.clear()
        try:
            raw = self._session()
            with session.severed_after(raw, LOOK_SECONDS):
                return self._looked(raw)
        except psycopg.Error as error:
            self.close()
            raise server_errors.in_our_words(error, self.storage.shown) from error

    def wake(self) -> None:
        """Let the next look begin at once."""
        self._woken.set()

    def close(self) -> None:
        """End the session."""
        raw, self._raw = self._raw, None
        if raw is not None:
            with suppress(psycopg.Error):
                raw.close()

    def _looked(self, raw: "psycopg.Connection[Any]") -> Leader | None:
        if session.try_lock(raw, self.storage.address, session.LEADER):
            self._raw, self.has_won = None, True
            self.storage.win(raw)
            return None
        leader = leader_row.read(raw)
        self._heed(raw, leader)
        if leader is not None and not self._is_fleet_known:
            self._know_fleet(raw)
        return leader

    def _heed(self, raw: "psycopg.Connection[Any]", leader: Leader | None) -> None:
        """Count how long the leader has been silent, and end its session if it is frozen."""
        holder = session.holder(raw, self.storage.address.schema, session.LEADER)
        if holder is None:
            return
        if holder.waits_for_replica:
            # The wait may end within this look, before its beat is seen: the count begins after it.
            self._watch = BeatWatch()
            return
        beat = None if leader is None else (leader.epoch, leader.beat_at)
        has_beaten = leader is not None and leader.process == holder.process
        self._watch = self._watch.after(holder.process, beat, self._boottime(), has_beaten=has_beaten)
        if self._watch.is_frozen:
            self.frozen, self._watch = leader, BeatWatch()
            session.end(raw, holder.process)

    def _session(self) -> "psycopg.Connection[Any]":
        if self._raw is None or self._raw.closed:
            self._raw = self.storage.connected()
        return self._raw

    def _know_fleet(self, raw: "psycopg.Connection[Any]") -> None:
        """Keep the fleet's id on this machine, for `gpubid kill --by-label` and for a lost ledger."""
        row = raw.execute("SELECT value FROM meta WHERE key = 'fleet_id'").fetchone()
        if row is None:
            return
        beside, path = sidecar.read_fleet_id(self.storage.path), self.storage.path
        if beside is None:
            sidecar.write_fleet_id(path, row[0])
        elif beside != row[0]:
            file = sidecar.sibling(path, ".fleet")
            sentence = f"{self.storage.shown} belongs to fleet {row[0]}, {file} has {beside}: name the right schema"
            raise LedgerError(
                Code.FLEET_MISMATCH, f"{sentence}, or delete {file} if the server's ledger is the right one"
            )
        self._is_fleet_known = True
