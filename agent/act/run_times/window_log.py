"""Records an event when a window of a workload opens or closes.

Invariants:
1. The ledger has the last recorded state, so a restart repeats no event and finds a change that it missed (rule 19).
2. While the clock is doubted nothing opens or closes (rule 14).
"""

from collections.abc import Iterator

import structlog

from agent.decide.run_times import run_windows
from agent.domain.fleet import Fleet
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.work.run_times.run_window import WindowNow
from agent.ledger.ledger_errors import LedgerError
from agent.ledger.store import Ledger

log = structlog.get_logger("gpubid.windows")

_KINDS = (EventKind.WINDOW_CLOSED, EventKind.WINDOW_OPENED)
"""By whether a window is open."""


class WindowLog:
    """The last recorded state of each workload's windows: open or closed."""

    def __init__(self, ledger: Ledger) -> None:
        """Record in `ledger`."""
        self._ledger = ledger
        self._was_open: dict[str, bool] = {}

    async def keep(self, fleet: Fleet) -> None:
        """Record the changes. If the ledger cannot be written now, a later cycle records them."""
        if fleet.is_clock_doubted or not fleet.windows:
            return
        try:
            await self._read([name for name in fleet.windows if name not in self._was_open])
            changed = {name: now for name, now in fleet.windows.items() if self._was_open[name] is not now.is_open}
            if changed:
                async with self._ledger.transaction() as tx:
                    for event in _events(fleet, changed):
                        tx.append_event(event)
                self._was_open |= {name: now.is_open for name, now in changed.items()}
        except LedgerError as error:
            log.error("window.unwritten", code=error.code.value, reason=error.sentence)

    async def _read(self, names: list[str]) -> None:
        """Read what was recorded last of workloads; one without an event counts as closed."""
        for name in names:
            reader = await self._ledger.reader()
            last = await reader.events(workload=name, kinds=_KINDS, limit=1)
            self._was_open[name] = bool(last) and last[0].kind == EventKind.WINDOW_OPENED


def _events(fleet: Fleet, changed: dict[str, WindowNow]) -> Iterator[Event]:
    for name, window in changed.items():
        until = f" until {window.spoken}" if window.spoken else ""
        said = f"its window is open{until}" if window.is_open else f"its window is over; {run_windows.waits(window)}"
        log.info(_KINDS[window.is_open], workload=name, why=said)
        yield Event(at=fleet.now, kind=_KINDS[window.is_open], workload=name, reason_code=run_windows.CODE, reason=said)
