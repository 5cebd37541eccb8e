"""A trace of even ticks, made from observations of a pool at some instants.

Invariants:
1. A tick takes the last observation before its beginning. An observation that is too old counts as no capacity and no
   price.
2. A mistake in a file is reported with its line, its key and a fix.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np

from agent.config.problems import ConfigError, Problem
from agent.lab.traces.trace_files import MAX_GAP_SECONDS, Trace

MAX_TICKS = 1_000_000
STALE_GAPS = 12
"""The most ticks without an observation after which the state of a pool is still known."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The available instances of a pool at an instant, and prices in $/h, or None if missing."""

    at: datetime
    available: int
    spot: float | None = None
    on_demand: float | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    """The subject of a trace."""

    name: str
    gpu: str = ""
    gpus: int = 1


def wrong(file: Path, line: int, key: str, sentence: str) -> ConfigError:
    """Return the error for one mistake in a file."""
    return ConfigError([Problem(str(file), line, key, "bad_record", sentence)])


def instant(file: Path, line: int, key: str, text: object) -> datetime:
    """Return the instant of an ISO text, or of seconds since the epoch. A text without a zone is UTC.

    Raises:
        ConfigError: the text is neither.
    """
    try:
        if isinstance(text, int | float) or (isinstance(text, str) and text.replace(".", "", 1).isdecimal()):
            return datetime.fromtimestamp(float(text), UTC)
        at = datetime.fromisoformat(str(text))
    except (ValueError, OverflowError, OSError):
        raise wrong(file, line, key, f"{str(text)[:40]!r} is no instant; write 2026-11-20T18:00:00Z") from None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def price(file: Path, line: int, key: str, text: object) -> float | None:
    """Return a price in $/h, or None for an empty value.

    Raises:
        ConfigError: the text is no price.
    """
    if text is None or text == "":
        return None
    try:
        dollars = float(str(text))
    except ValueError:
        dollars = -1.0
    if not 0 <= dollars <= 1e6:  # noqa: PLR2004 - a million dollars an hour
        raise wrong(file, line, key, f"{str(text)[:40]!r} is no price; write dollars an hour, such as 0.35")
    return dollars


def gap_of(seen: Iterable[Seen]) -> int:
    """Return the least whole seconds between two instants, which is the tick of an even record."""
    instants = sorted({each.at for each in seen})
    gaps = [round((after - before).total_seconds()) for before, after in pairwise(instants)]
    return min(max(min((gap for gap in gaps if gap > 0), default=300), 1), MAX_GAP_SECONDS)


def trace(
    file: Path, pool: Pool, seen: Sequence[Seen], gap_seconds: int | None = None, *, is_held: bool = False
) -> Trace:
    """Return the trace of a pool from its first to its last observation. With `is_held` observations never grow old.

    Raises:
        ConfigError: there are too many ticks for one trace.
    """
    rows = sorted(seen, key=lambda each: each.at)
    gap = gap_seconds or gap_of(rows)
    start = rows[0].at
    count = int((rows[-1].at - start).total_seconds() // gap) + 1
    if count > MAX_TICKS:
        raise wrong(file, 1, "gap_seconds", f"makes {count} ticks; give --gap-seconds, so that there are fewer")
    since = np.array([(row.at - start).total_seconds() for row in rows])
    ticks = np.arange(count) * float(gap)
    last = np.searchsorted(since, ticks, side="right") - 1
    is_known = (ticks - since[last] <= STALE_GAPS * gap) | is_held
    return Trace(
        pool=pool.name,
        gap_seconds=gap,
        start=start,
        gpu=pool.gpu,
        gpus=pool.gpus,
        available=np.where(is_known, np.array([row.available for row in rows], dtype=np.int64)[last], 0),
        spot_prices=np.where(is_known, _prices(row.spot for row in rows)[last], np.nan),
        on_demand_prices=np.where(is_known, _prices(row.on_demand for row in rows)[last], np.nan),
    )


def _prices(prices: Iterable[float | None]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([np.nan if each is None else each for each in prices], dtype=np.float64)
