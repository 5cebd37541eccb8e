"""Looks each minute whether a replica of the ledger's server could take over without an order that was paid."""

from agent.clock import Clock
from agent.decide.facts import Alert
from agent.decide.operators import notices
from agent.decide.operators.notices import Notice
from agent.domain.record.event_kind import EventKind
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.store import Ledger

LOOK_SECONDS = 60.0


class ReplicaWatch:
    """Keeps the verdict of the last look. A ledger in a file has no replica and is never asked."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        """Ask `ledger`; nothing may be paid for before the first look at a server."""
        self._ledger = ledger
        self._clock = clock
        self._looked_at: float | None = None
        self._lapses = 0
        self._why_unpaid = "the replicas of the ledger's server have not been looked at yet" if ledger.is_served else ""
        self._is_dangerous = False

    @property
    def why_unpaid(self) -> str:
        """Why nothing may be paid for, or an empty text.

        What was seen holds for the server that is written: after a lapse it may be another one.
        """
        if self._ledger.is_served and self._lapses != self._ledger.lapses:
            return "the ledger's server failed a write, and its replicas have not been looked at since"
        return self._why_unpaid

    async def look(self) -> None:
        """Look if a minute has passed, or if the ledger was unwritable since: then another server may have taken over.

        Raises:
            LedgerError: DEPOSED, another daemon writes this ledger.
        """
        if not self._ledger.is_served or not self._is_due():
            return
        lapses = self._ledger.lapses
        try:
            danger = await self._ledger.replica_danger()
        except LedgerError as error:
            if error.code is Code.DEPOSED:
                raise
            self._looked_at = None
            self._why_unpaid = f"the replicas of the ledger's server could not be looked at: {error.sentence}"
            return
        self._looked_at, self._lapses = self._clock.monotonic(), lapses
        self._is_dangerous = bool(danger)
        self._why_unpaid = f"{danger}; until then nothing is paid for" if danger else ""

    def alerts(self) -> tuple[Alert, ...]:
        """Return the alert while a replica could forget orders."""
        if not self._is_dangerous:
            return ()
        return (Alert(EventKind.ALERT_REPLICA, "ledger", self.why_unpaid),)

    def notices(self) -> tuple[Notice, ...]:
        """Return who leads, and why nothing is paid for."""
        leader = self._ledger.leader()
        unpaid = (Notice("ledger", "replica", self.why_unpaid),) if self.why_unpaid else ()
        if leader is None:
            return unpaid
        shown = leader.place, leader.since, leader.beat_age_seconds
        return (notices.of_leader(*shown, is_shown=leader.is_shown), *unpaid)

    def _is_due(self) -> bool:
        at, has_lapsed = self._looked_at, self._lapses != self._ledger.lapses
        is_late = at is None or self._clock.monotonic() - at >= LOOK_SECONDS
        return is_late or has_lapsed or not self._ledger.is_writable
