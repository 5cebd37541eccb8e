"""The lead of one fleet: a lock on a session of its own, a beat every two seconds, and whether it can be shown.

1. The lead can be shown while the last committed beat began less than `leader_row.SHOWN_SECONDS` ago. The seconds count
   while the machine sleeps (CLOCK_BOOTTIME).
2. A session that broke shows no lead, until a new one has the lock and the epoch is still this daemon's.
3. A daemon whose epoch is over has lost the lead for good.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import psycopg

from agent.ledger.leader import Leader
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.server import leader_row, session
from agent.ledger.server_address import ServerAddress

BEAT_SECONDS = 2.0
SENT_SECONDS = 5.0
"""A paying request whose "sent" is older than this does not leave: another daemon may have settled it meanwhile."""
_PATIENCE_SECONDS = 1.0


class Leadership:
    """The lead, from the lock on. It can be shown from `begin` to `release`."""

    def __init__(
        self,
        raw: "psycopg.Connection[Any]",
        address: ServerAddress,
        connected: "Callable[[], psycopg.Connection[Any]]",
        boottime: Callable[[], float],
    ) -> None:
        """Take a session that has the lock; `connected` returns another one if that breaks."""
        self.page = ""
        """The address of this daemon's page, which beats tell to standbys."""
        self._raw = raw
        self._address = address
        self._connected = connected
        self._boottime = boottime
        self._process = raw.info.backend_pid
        self._epoch: leader_row.Epoch | None = None
        self._leader: Leader | None = None
        self._beaten_at: float | None = None
        self._is_broken = self._is_deposed = False
        self._warnings: list[str] = []
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        raw.add_notice_handler(self._hear)

    def begin(self, leader: Leader) -> None:
        """Begin to beat for an epoch that has just begun."""
        self._leader, self._epoch = leader, leader_row.Epoch(leader.epoch, leader.since)
        self.beat()
        self._thread = threading.Thread(target=self._go_on, name="ledger-beat", daemon=True)
        self._thread.start()

    def insist(self) -> None:
        """Make sure that the session with the lock lives. Else another daemon may lead already.

        Raises:
            LedgerError: UNWRITABLE.
        """
        try:
            with session.severed_after(self._raw, session.CONNECT_SECONDS):
                self._raw.execute("SELECT 1")
        except psycopg.Error as error:
            why = f"the session that took the lead of {self._address.shown} has ended, so another daemon may lead"
            raise LedgerError(Code.UNWRITABLE, f"{why}: start this one again") from error

    def leader(self) -> Leader | None:
        """Return this daemon as the leader, by its own last confirmed beat; None before that."""
        age = self.beat_age_seconds()
        if self._leader is None or age is None:
            return None
        return replace(self._leader, page=self.page, beat_age_seconds=age, is_shown=self.lost() is None)

    def lost(self) -> LedgerError | None:
        """Return why the lead cannot be shown (DEPOSED, UNLED), or None while it can."""
        if self._is_deposed:
            return session.deposed(self._address)
        age = self.beat_age_seconds()
        if not self._is_broken and age is not None and age < leader_row.SHOWN_SECONDS:
            return None
        last = "its session there broke" if age is None or self._is_broken else f"its last beat is {age:.0f} s old"
        return LedgerError(
            Code.UNLED,
            f"this daemon cannot show that it leads {self._address.shown} ({last}): it sends nothing to a market, "
            "releases included, until a beat is confirmed; `gpubid kill --by-label` works without the ledger",
        )

    def permit(self, *, is_paying: bool) -> Callable[[], str]:
        """Return a function for the moment before the first byte of what is now recorded as sent.

        It returns why the request must not leave, or an empty text.
        """
        began = self._boottime()

        def why_not() -> str:
            lost = self.lost()
            if lost is not None:
                return lost.sentence
            age = self._boottime() - began
            is_late = is_paying and age >= SENT_SECONDS
            return f'its "sent" is {age:.0f} s old: another daemon may lead by now' if is_late else ""

        return why_not

    def beat_age_seconds(self) -> float | None:
        """Return the seconds since the last committed beat began; None if there was none."""
        return None if self._beaten_at is None else self._boottime() - self._beaten_at

    def beat(self) -> None:
        """Write one beat. Whatever prevents it only leaves the lead unshown."""
        began = self._boottime()
        try:
            raw = self._session()
            self._warnings.clear()
            self._is_deposed = not leader_row.beat(raw, self._begun(), self.page)
        except LedgerError as error:
            self._is_broken, self._is_deposed = True, error.code is Code.DEPOSED
        except Exception:  # noqa: BLE001 - also a password that cannot be read now
            self._is_broken = True
        else:
            # A commit that ends with a warning may be lost, as one of the ledger.
            if not self._is_deposed and not self._warnings:
                self._beaten_at, self._is_broken = began, False

    def release(self) -> None:
        """End the beats, then the session, and the lock with it."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(_PATIENCE_SECONDS)
            if self._thread.is_alive():
                session.sever(self._raw)
                self._thread.join()
        self._beaten_at = None
        with suppress(psycopg.Error):
            self._raw.close()

    def _go_on(self) -> None:
        while not self._is_deposed and not self._over.wait(BEAT_SECONDS):
            self.beat()

    def _session(self) -> "psycopg.Connection[Any]":
        """Return the session that has the lock, or after its end another one that got it back in the same epoch.

        Raises:
            LedgerError: DEPOSED, LOCKED, UNREACHABLE.
            psycopg.Error: the server failed.
        """
        if not self._raw.closed and not self._is_broken:
            return self._raw
        self._raw.close()
        raw = self._connected()
        try:
            leader_row.refuse_deposed(raw, self._address, self._begun())
            self._take_back(raw)
            leader_row.refuse_deposed(raw, self._address, self._begun())
        except BaseException:
            raw.close()
            raise
        raw.add_notice_handler(self._hear)
        self._raw, self._process = raw, raw.info.backend_pid
        return raw

    def _begun(self) -> leader_row.Epoch:
        if self._epoch is None:
            raise RuntimeError("a beat belongs to an epoch")
        return self._epoch

    def _take_back(self, raw: "psycopg.Connection[Any]") -> None:
        try:
            session.take_lock(raw, self._address, lock=session.LEADER)
        except LedgerError:
            found = session.holder(raw, self._address.schema, session.LEADER)
            if found is not None and found.process == self._process:
                # Our own last session, whose end the server has not noticed.
                session.end(raw, found.process)
            raise

    def _hear(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            self._warnings.append(notice.message_primary or "")
