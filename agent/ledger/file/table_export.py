"""Every table of the ledger as CSV or Parquet files for other programs. The ledger is only read.

Invariants:
1. All files are of one instant: one read transaction, during which a daemon may go on writing.
2. No existing file is overwritten. A failure removes the files that were begun.
3. Text never becomes a formula: in CSV a text that a spreadsheet could take for one begins with an apostrophe.
"""

import contextlib
import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy as sa

from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.tables import schema
from agent.ledger.tables.types import Flag, MicroUsd, MicroUsdPerHour, UtcHour, UtcMicros

TABLES = tuple(sorted(schema.METADATA.tables))
"""The names of all tables."""
ROWS_AT_ONCE = 10_000
"""The number of rows in memory at one time."""
FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The characters that begin a formula in Excel, LibreOffice or Google Sheets, in ASCII and in full width."""
GUARD = "'"
_BLANKS = frozenset("\t\r\n")

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Exported:
    """One exported file, its table, and the number of its rows."""

    table: str
    file: Path
    rows: int


class Sink(Protocol):
    """A file that takes rows in batches."""

    def write(self, rows: Sequence[Row]) -> None:
        """Write rows."""

    def close(self) -> None:
        """Finish the file."""


Opener = Callable[[Path, Sequence[sa.Column[Any]]], Sink]
"""A function that begins the file of a table."""


class CsvSink:
    """A file of comma-separated values: text is quoted, an empty cell is unknown, `""` is an empty text."""

    suffix = ".csv"

    def __init__(self, file: Path, columns: Sequence[sa.Column[Any]]) -> None:
        self._file = file.open("x", encoding="utf-8", newline="")
        self._file.write(",".join(column.name for column in columns) + "\r\n")

    def write(self, rows: Sequence[Row]) -> None:
        """Write rows."""
        self._file.writelines(",".join(map(cell, row)) + "\r\n" for row in rows)

    def close(self) -> None:
        """Finish the file."""
        self._file.close()


def cell(value: object) -> str:
    """Return a value as a cell of a CSV file.

    Numbers stay numbers, bytes are hexadecimal. A text is quoted, so that no separator of any country splits it. It
    begins with an apostrophe if it could be taken for a formula or begins with one itself: remove it to read it back.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, int | float | Decimal):
        return str(value)
    text = f"0x{value.hex()}" if isinstance(value, bytes) else str(value)
    begins = text.lstrip()[:1]
    if text.startswith(GUARD) or begins in FORMULA or text[:1] in _BLANKS:
        text = GUARD + text
    return '"' + text.replace('"', '""') + '"'


def export(link: sa.Connection, names: Sequence[str], folder: Path, suffix: str, opener: Opener) -> list[Exported]:
    """Write the tables to files of their names in a folder, in one transaction.

    Raises:
        LedgerError: UNWRITABLE if a file exists or cannot be written.
    """
    files = {name: folder / f"{name}{suffix}" for name in names}
    begun: list[Path] = []
    try:
        return [_table(link, name, file, opener, begun) for name, file in files.items()]
    except FileExistsError as error:
        _remove(begun)
        raise LedgerError(Code.UNWRITABLE, f"{error.filename} exists; name another folder") from None
    except OSError as error:
        _remove(begun)
        raise LedgerError(
            Code.UNWRITABLE, f"{folder} cannot be written ({error.strerror}); name another folder"
        ) from None
    except BaseException:
        _remove(begun)
        raise


def _table(link: sa.Connection, name: str, file: Path, opener: Opener, begun: list[Path]) -> Exported:
    table = schema.METADATA.tables[name]
    columns = tuple(table.columns)
    with contextlib.closing(opener(file, columns)) as sink:
        begun.append(file)
        file.chmod(0o600)
        count = 0
        for rows in _rows(link, table):
            sink.write(rows)
            count += len(rows)
    return Exported(name, file, count)


def _rows(link: sa.Connection, table: sa.Table) -> Iterator[list[Row]]:
    """Yield a table's rows as plain values, batch by batch, in the order of its primary key."""
    # Values are read as stored, so that a value of an older release that this one does not name is exported too.
    plain = [sa.type_coerce(column, sa.types.NullType()).label(column.name) for column in table.columns]
    convert = [_plain(column.type) for column in table.columns]
    query = sa.select(*plain).order_by(*table.primary_key)
    result = link.execute(query, execution_options={"yield_per": ROWS_AT_ONCE})
    for part in result.partitions():
        yield [
            tuple(None if value is None else to(value) for to, value in zip(convert, row, strict=True)) for row in part
        ]


def _plain(kind: sa.types.TypeEngine[Any]) -> Callable[[Any], Any]:
    """Return the function from a stored value to a plain one: dollars with six decimals, times in UTC, flags."""
    if isinstance(kind, MicroUsd | MicroUsdPerHour):
        return lambda micros: Decimal(micros).scaleb(-6)
    if isinstance(kind, UtcMicros | UtcHour | Flag):
        return kind.from_column
    return _same


def _same(value: Any) -> Any:  # noqa: ANN401 - any stored value
    return value


def is_money(column: sa.Column[Any]) -> bool:
    """Return whether a column has dollars."""
    return isinstance(column.type, MicroUsd | MicroUsdPerHour)


def _remove(files: Sequence[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)
