"""Trace files: the offers of one pool, tick by tick, in one JSON file per pool.

Fields: `gap_seconds` (length of a tick), `start` (ISO time of the first tick; without a zone it is UTC), `pool`, `gpu`,
`gpus`, `available` (instances available at each tick, 0 for none), `spot_price` and `on_demand_price` (dollars
an hour: one number, one for each tick, or null if it is not known). `counts` may say whether `available` counts
instances (true) or only says yes or no (false). Without it a folder counts if any of its pools ever shows two.

Invariants:
1. A file is read whole or not at all. A mistake is reported with its key.
2. An unknown price is NaN. A bench refuses to run on it; it never counts as free.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt

from agent.config.problems import ConfigError, Problem

Prices = npt.NDArray[np.float64]
MAX_BYTES = 256 << 20
MAX_GAP_SECONDS = 86_400
_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
_Price = Annotated[float, msgspec.Meta(ge=0, le=1e6)]


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """The offers of a pool: `available` (ticks,) instances, prices (ticks,) in $/h, NaN if not known."""

    pool: str
    gap_seconds: int
    start: datetime
    gpu: str
    gpus: int
    available: npt.NDArray[np.int64]
    spot_prices: Prices
    on_demand_prices: Prices
    counts: bool | None = None
    """Whether `available` counts instances, or is 1 for any number. None if the file does not say it."""

    @property
    def ticks(self) -> int:
        """The number of ticks."""
        return len(self.available)

    @property
    def end(self) -> datetime:
        """The end of its last tick."""
        return self.start + timedelta(seconds=self.ticks * self.gap_seconds)


class _Row(msgspec.Struct):
    """The fields of a file."""

    gap_seconds: Annotated[int, msgspec.Meta(ge=1, le=MAX_GAP_SECONDS)]
    start: _Text
    pool: _Text
    available: Annotated[list[Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]], msgspec.Meta(min_length=1)]
    gpu: str = ""
    gpus: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 1
    on_demand_price: _Price | list[_Price | None] | None = None
    spot_price: _Price | list[_Price | None] | None = None
    counts: bool | None = None


def read(path: Path) -> Trace:
    """Return the trace of a file.

    Raises:
        ConfigError: the file cannot be read or is no trace; the problem names the key.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise _wrong(path, "file", "too_large", f"is larger than {MAX_BYTES >> 20} MiB; cut it into shorter spans")
        text = path.read_bytes()
        row = msgspec.convert(json.loads(text), _Row)
    except OSError as error:
        raise _wrong(path, "file", "unreadable", f"cannot be read ({error.strerror})") from error
    except json.JSONDecodeError as error:
        raise _wrong(path, "file", "not_json", f"is no JSON ({error.msg}); write it again", error.lineno) from error
    except UnicodeDecodeError as error:
        raise _wrong(path, "file", "not_json", "is no UTF-8 text; write it again") from error
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `")
        raise _wrong(path, where.rstrip("`").removeprefix("$.") or "file", "bad_trace", what) from error
    return _trace(path, row)


def folder(path: Path) -> tuple[Trace, ...]:
    """Return the traces of a file or of every .json file in a folder, by pool.

    Raises:
        ConfigError: a file cannot be read, there is no file, or two are of one pool.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise _wrong(
            path, "folder", "no_traces", "contains no .json file; name a folder with one trace file for each pool"
        )
    traces = sorted((read(file) for file in files), key=lambda trace: trace.pool)
    for before, after in pairwise(traces):
        if before.pool == after.pool:
            raise _wrong(path, "pool", "same_pool", f"two files are of pool {after.pool!r}; keep one")
    return tuple(traces)


def document(trace: Trace) -> dict[str, Any]:
    """Return a trace as the document of a file."""
    return {
        "pool": trace.pool,
        "gap_seconds": trace.gap_seconds,
        "start": trace.start.isoformat(),
        "gpu": trace.gpu,
        "gpus": trace.gpus,
        "on_demand_price": _shortest(trace.on_demand_prices),
        "spot_price": _shortest(trace.spot_prices),
        "available": trace.available.tolist(),
        **({} if trace.counts is None else {"counts": trace.counts}),
    }


def with_counts(traces: Iterable[Trace]) -> tuple[Trace, ...]:
    """Return the traces of one record, each with whether it counts instances. A pool that says so keeps its word."""
    listed = tuple(traces)
    does_count = any(int(trace.available.max()) > 1 for trace in listed)
    return tuple(trace if trace.counts is not None else replace(trace, counts=does_count) for trace in listed)


def _shortest(prices: Prices) -> float | list[float | None] | None:
    if np.isnan(prices).all():
        return None
    if (prices == prices[0]).all():
        return float(prices[0])
    return [None if np.isnan(price) else float(price) for price in prices]


def _trace(path: Path, row: _Row) -> Trace:
    try:
        start = datetime.fromisoformat(row.start)
    except ValueError as error:
        raise _wrong(path, "start", "bad_trace", "is no ISO time; write such as 2026-11-20T18:00:00Z") from error
    return Trace(
        pool=row.pool,
        gap_seconds=row.gap_seconds,
        start=start.replace(tzinfo=UTC) if start.tzinfo is None else start.astimezone(UTC),
        gpu=row.gpu,
        gpus=row.gpus,
        available=np.array(row.available, dtype=np.int64),
        spot_prices=_prices(path, "spot_price", row.spot_price, len(row.available)),
        on_demand_prices=_prices(path, "on_demand_price", row.on_demand_price, len(row.available)),
        counts=row.counts,
    )


def _prices(path: Path, key: str, given: float | list[float | None] | None, ticks: int) -> Prices:
    if isinstance(given, list):
        if len(given) != ticks:
            raise _wrong(path, key, "bad_trace", f"has {len(given)} prices for {ticks} ticks; give one for each tick")
        return np.array([np.nan if price is None else price for price in given], dtype=np.float64)
    return np.full(ticks, np.nan if given is None else given)


def _wrong(path: Path, key: str, code: str, sentence: str, line: int = 1) -> ConfigError:
    return ConfigError([Problem(str(path), line, key, code, sentence)])
