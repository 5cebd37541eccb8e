"""How many bytes a price takes on disk, measured on a real file: `python -m tests.ledger.price_size [DAYS]`.

The worst year the quota allows: every one of the 20,000 rows a day is a change (a raw sample), and every sample is
alone in its hour of its model (an hour of its own). Real days share hosts and hours and take less.
"""

import asyncio
import datetime as dt
import random
import sqlite3
import sys
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from agent.clock import SteppedClock
from agent.domain.market.gpu import GpuModel
from agent.domain.market.price import PriceSample
from agent.domain.money import UsdPerHour
from agent.ledger.store import Ledger
from agent.ledger.tables import price_history

QUOTA = 20_000
"""Search rows a day the market lets us read."""
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
_MODELS = ("RTX 4090", "RTX 5090", "RTX 3090 TI", "H100 SXM", "RTX PRO 6000 WS", "RTX 6000ADA", "A100 PCIE", "L40S")
_SIZES = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes on disk for each row of a table, tree and slack included."""

    rows: int
    bytes_each: float


@dataclass(frozen=True, slots=True)
class Year:
    """The most bytes of a year at the quota."""

    raw: Size
    hours: Size

    @property
    def raw_rows(self) -> int:
        """Two weeks, and the day until the next tidying."""
        return QUOTA * (price_history.RAW_DAYS + 1)

    @property
    def hour_rows(self) -> int:
        """All older days of a year."""
        return QUOTA * (365 - price_history.RAW_DAYS)

    @property
    def megabytes(self) -> float:
        """Both tables, in millions of bytes."""
        return (self.raw_rows * self.raw.bytes_each + self.hour_rows * self.hours.bytes_each) / 1e6


def day_of_samples(day: int, rows: int, draw: random.Random) -> list[PriceSample]:
    """Return a day in which every row is a change and no two share an hour of a model."""
    # The market has fewer models than a bound needs; a number makes them enough, a little longer than real names.
    kinds = rows // 24 // len(_SIZES) + 1
    return [
        PriceSample(
            at=START + dt.timedelta(days=day, hours=row % 24, microseconds=draw.randrange(3_600_000_000)),
            market="vast",
            host_id=str(draw.randrange(1_000, 150_000)),
            gpu=GpuModel(f"{_MODELS[row // 24 % len(_MODELS)]} {row // 24 // len(_SIZES) % kinds}"),
            gpus=_SIZES[row // 24 % len(_SIZES)],
            ask=UsdPerHour(draw.randrange(50_000, 20_000_000)),
            floor=UsdPerHour(draw.randrange(20_000, 8_000_000)),
        )
        for row in range(rows)
    ]


async def fill(path: Path, days: int, rows: int) -> None:
    """Live through `days` of so many rows, tidying once a day."""
    clock = SteppedClock(START)
    draw = random.Random(7)
    ledger = await Ledger.open(path, clock=clock)
    for day in range(days):
        async with ledger.transaction() as tx:
            for sample in sorted(day_of_samples(day, rows, draw), key=lambda sample: sample.at):
                tx.observe_prices([sample])
        clock.advance(86_400)
        await ledger.tidy()
    await ledger.close()


def size(raw: sqlite3.Connection, table: str) -> Size:
    """Return the rows of a table and the pages of its tree, in bytes each."""
    [rows] = raw.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 - a name of our own schema
    [taken] = raw.execute("SELECT sum(pgsize) FROM dbstat WHERE name = ?", (table,)).fetchone()
    return Size(rows, taken / rows)


def measure(days: int, rows: int = QUOTA) -> tuple[Year, int]:
    """Return the sizes after so many days of so many rows, and the bytes of the whole file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        asyncio.run(fill(path, days, rows))
        with closing(sqlite3.connect(path)) as raw:
            return Year(size(raw, "prices"), size(raw, "price_rollups")), path.stat().st_size


def main() -> None:
    """Print the sizes and the year."""
    days = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    year, whole = measure(days)
    print(f"after {days} days at {QUOTA} rows a day: file {whole / 1e6:.1f} MB")
    print(f"raw samples: {year.raw.rows} rows of {year.raw.bytes_each:.1f} bytes")
    print(f"hours:       {year.hours.rows} rows of {year.hours.bytes_each:.1f} bytes")
    print(
        f"a year: {year.raw_rows} x {year.raw.bytes_each:.1f} + {year.hour_rows} x {year.hours.bytes_each:.1f} bytes "
        f"= {year.megabytes:.0f} MB"
    )


if __name__ == "__main__":
    main()
