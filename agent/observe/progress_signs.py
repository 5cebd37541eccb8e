"""The signs of progress of instances: new lines of their logs, and changed figures.

Invariants:
1. Lines of the guard are no progress of the work. Of its beat only the progress and the checkpoint count.
2. A reading without any line proves nothing: a market may have lost the log, or not written it yet.
3. The first reading of an instance finds nothing new, since nothing is known of the time before.
4. A full tail that repeats itself proves nothing: further equal lines would leave it as it is.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from agent.decide.reconcile.probes import probing
from agent.domain.work.stall import ProgressSeen

LOG_LINES = 200
"""The most lines that one reading of a log shows."""
MOST_KNOWN = 1_024
"""Instances that are remembered. One that is forgotten is read for the first time again."""
GUARD = "gpubid-guard"
"""The first word of every line that the guard prints."""
_FIGURE = re.compile(r'"(progress|manifest)":("[^"]{0,256}"|-?[0-9.e+-]{1,32}|null)')


@dataclass(frozen=True, slots=True)
class _Known:
    """The last lines of a log, as hashes, its guard's last figures, and the last hours that the work's page showed."""

    begun_at: datetime
    lines: tuple[int, ...] = ()
    figures: str = ""
    hours: float | None = None
    log_at: datetime | None = None
    page_at: datetime | None = None
    news_at: datetime | None = None


class ProgressSigns:
    """Remembers the signs of each instance from one reading to the next."""

    def __init__(self) -> None:
        """Know of no instance yet."""
        self._known: dict[str, _Known] = {}

    def of(self, instance_id: str, *, has_page: bool, has_log: bool = True) -> ProgressSeen | None:
        """Return the readings of an instance; None before the first of its log and of its page, if it has them."""
        known = self._known.get(instance_id)
        if known is None:
            return None
        read = [*([known.log_at] if has_log else []), *([known.page_at] if has_page else [])]
        times = [at for at in read if at is not None]
        return ProgressSeen(known.begun_at, min(times), known.news_at) if times and len(times) == len(read) else None

    def see_log(self, instance_id: str, now: datetime, lines: Sequence[str]) -> None:
        """Take one reading of a log."""
        if not any(line.strip() for line in lines):
            return
        own, figures, known = _own(lines), _figures(lines), self._of(instance_id, now)
        news = probing.news(known.lines, own)
        is_new = bool(news) or figures not in {"", known.figures}
        if not is_new and len(lines) >= LOG_LINES and _repeats(own):
            return
        self._keep(
            instance_id,
            replace(
                known,
                # Lines that only scrolled out of the tail are kept: they are not new when they are shown again.
                lines=own if news else known.lines,
                figures=figures or known.figures,
                log_at=now,
                news_at=now if is_new and known.log_at is not None else known.news_at,
            ),
        )

    def see_page(self, instance_id: str, now: datetime, hours: float | None) -> None:
        """Take one reading of the page with the work's hours; None if it could not be read."""
        if hours is None:
            return
        known = self._of(instance_id, now)
        is_new = known.hours is not None and hours != known.hours
        self._keep(instance_id, replace(known, hours=hours, page_at=now, news_at=now if is_new else known.news_at))

    def _of(self, instance_id: str, now: datetime) -> _Known:
        return self._known.get(instance_id) or _Known(now)

    def _keep(self, instance_id: str, known: _Known) -> None:
        self._known.pop(instance_id, None)
        self._known[instance_id] = known
        while len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]


def _own(lines: Iterable[str]) -> tuple[int, ...]:
    """Return the lines of the work itself, as hashes: a log may have long lines."""
    return tuple(hash(line) for line in lines if line.strip() and not line.startswith(GUARD))


def _repeats(lines: Sequence[int]) -> bool:
    """Return whether the lines are one group of lines, again and again, at least twice."""
    groups = range(1, len(lines) // 2 + 1)
    return any(lines[size:] == lines[:-size] for size in groups)


def _figures(lines: Sequence[str]) -> str:
    """Return the progress and the checkpoint in the last beat of the guard; empty without one."""
    last = next((line for line in reversed(lines) if line.startswith(f"{GUARD} {{") and '"sequence"' in line), "")
    return " ".join(f"{name}={value}" for name, value in _FIGURE.findall(last))
