"""The last event whose notifications were sent, in the ledger itself, so that it goes where the events go.

1. A restored, moved or new ledger has its own place, and the daemon that takes the lead of a server's ledger continues
   after the leader's.
2. An earlier gpubid kept it in a file beside the ledger. That number is taken once, if it can be of these events.
"""

import contextlib

import structlog

from agent.ledger.file import sidecar
from agent.ledger.store import Ledger

log = structlog.get_logger("gpubid.notify")

EARLIER_FILE = ".told"


class NotifiedPlace:
    """Reads the place once, and stores each later one."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._kept: int | None = None
        self._is_owed = False

    async def begin(self) -> int:
        """Return the event to begin after.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        reader = await self._ledger.reader()
        self._kept = await reader.notified()
        if self._kept is not None:
            return self._kept
        return self._of_earlier_file(await reader.last_event_id())

    async def keep(self, event_id: int) -> None:
        """Store the place if it changed. While commits of others fail, it waits: each attempt would delay theirs.

        Raises:
            LedgerError: the ledger cannot be written.
        """
        if event_id == self._kept or not (self._ledger.is_writable or self._is_owed):
            return
        self._is_owed = True
        async with self._ledger.transaction() as tx:
            tx.keep_notified(event_id)
        if self._kept is None:
            with contextlib.suppress(OSError):
                sidecar.sibling(self._ledger.path, EARLIER_FILE).unlink(missing_ok=True)
        self._kept, self._is_owed = event_id, False

    def _of_earlier_file(self, last: int) -> int:
        """Return the number of the file, or the last event: whoever is new to a ledger does not send its whole past."""
        if self._ledger.is_served:
            # The file is this machine's: another one may have led, and sent, since.
            return last
        number = sidecar.read_number(self._ledger.path, EARLIER_FILE)
        if number is not None and number > last:
            log.warning(
                "notify.restarted",
                reason=f"notifications were sent up to event {number}, this ledger ends at event {last}: it was "
                "restored or replaced; notifications go on with its next event",
            )
        return last if number is None else min(number, last)
