"""Availability as comma-separated values: a header, then one line for each instant and pool.

Columns: `time` (ISO, or seconds since the epoch), `available` (instances that could be had), and, where known,
`spot_price` and `on_demand_price` in $/h, `pool`, `gpu`, `gpus`.
"""

import csv
from pathlib import Path

from agent.lab.importers.even_ticks import Pool, Seen, instant, price, trace, wrong
from agent.lab.traces.trace_files import Trace

NEEDED = ("time", "available")
KNOWN = (*NEEDED, "spot_price", "on_demand_price", "pool", "gpu", "gpus")


def read(files: list[Path], gap_seconds: int | None = None) -> list[Trace]:
    """Return the traces of availability tables, one per pool. A file without a pool column is one pool of its name.

    Raises:
        ConfigError: a file cannot be read; the problem names line and column.
    """
    found: dict[Pool, tuple[Path, list[Seen]]] = {}
    for file in files:
        try:
            with file.open(encoding="utf-8-sig", newline="") as text:
                for pool, seen in _rows(file, csv.DictReader(text)):
                    found.setdefault(pool, (file, []))[1].append(seen)
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise wrong(file, 1, "file", f"cannot be read ({error}); name a CSV file in UTF-8") from error
    return [trace(file, pool, seen, gap_seconds) for pool, (file, seen) in found.items()]


def _rows(file: Path, reader: "csv.DictReader[str]") -> list[tuple[Pool, Seen]]:
    names = reader.fieldnames or []
    for name in NEEDED:
        if name not in names:
            raise wrong(file, 1, name, f"is no column; begin with a line such as {','.join(KNOWN[:4])}")
    rows = [_row(file, reader.line_num, row) for row in reader]
    if not rows:
        raise wrong(file, 1, "time", "has no rows; write one line for each instant")
    return rows


def _row(file: Path, line: int, row: dict[str, str]) -> tuple[Pool, Seen]:
    seen = Seen(
        at=instant(file, line, "time", row["time"]),
        available=_whole(file, line, "available", row["available"], least=0),
        spot=price(file, line, "spot_price", row.get("spot_price")),
        on_demand=price(file, line, "on_demand_price", row.get("on_demand_price")),
    )
    gpus = _whole(file, line, "gpus", row.get("gpus") or "1", least=1)
    return Pool(row.get("pool") or file.stem, row.get("gpu") or "", gpus), seen


def _whole(file: Path, line: int, key: str, text: str | None, *, least: int) -> int:
    words = {"true": 1, "false": 0}
    try:
        number = words.get((text or "").strip().lower())
        number = int(float(text or "")) if number is None else number
    except (ValueError, OverflowError):
        number = least - 1
    if not least <= number <= 1_000_000:  # noqa: PLR2004 - as in a trace file
        raise wrong(file, line, key, f"{(text or '')[:40]!r} is no count; write a whole number from {least} on")
    return number
