"""The log of refused requests: one line per kind and minute, with their number."""

from collections.abc import Callable

import structlog

from agent.ledger.ledger_errors import LedgerError
from agent.markets import text

log = structlog.get_logger("gpubid.web")

QUIET_SECONDS = 60.0
MOST_KINDS = 100
MOST_TEXT = 100


class Refusals:
    """Counts the refusals and defects of one server, so that requests cannot fill the disk with log lines."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """Measure minutes with `monotonic`, in seconds."""
        self._monotonic = monotonic
        self._logged_at: dict[str, float] = {}
        self._times: dict[str, int] = {}

    def refused(self, kind: str, client: str | None, about: str = "") -> None:
        """Log a refusal. `about` is the request, shortened and without control characters."""
        times = self._due(kind)
        if times:
            log.warning("web.refused", kind=kind, client=client, about=text.clean(about, MOST_TEXT), times=times)

    def failed(self, error: BaseException) -> None:
        """Log why no answer could be given: what is wrong with the ledger, or a defect of gpubid with its traceback."""
        if not isinstance(error, LedgerError):
            times = self._due(f"defect: {type(error).__name__}")
            if times:
                log.error("web.failed", code="bug", times=times, exc_info=error)
            return
        times = self._due(f"ledger: {error.code.value}")
        if times:
            log.error("web.failed", code=error.code.value, reason=error.sentence, times=times)

    def _due(self, kind: str) -> int:
        """Count one of a kind. Return the number since the last line, or 0 while no line is due."""
        if kind not in self._times and len(self._times) >= MOST_KINDS:
            return 0
        now = self._monotonic()
        self._times[kind] = self._times.get(kind, 0) + 1
        if now - self._logged_at.get(kind, -QUIET_SECONDS) < QUIET_SECONDS:
            return 0
        self._logged_at[kind] = now
        times, self._times[kind] = self._times[kind], 0
        return times
