"""A table of the ledger as a Parquet file; it needs PyArrow, which `gpubid[parquet]` installs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa

from agent.ledger.file import table_export
from agent.ledger.tables.types import Flag, UtcHour, UtcMicros

DIGITS, PLACES = 18, 6
"""Micro-dollars in 64 bits: exact, with six decimals."""


class ParquetSink:
    """A Parquet file with typed columns: times in UTC, dollars as decimals, flags as booleans."""

    suffix = ".parquet"

    def __init__(self, file: Path, columns: Sequence[sa.Column[Any]]) -> None:
        self._schema = pa.schema([pa.field(column.name, _type(column), column.nullable) for column in columns])
        self._stream = file.open("xb")
        self._writer = pq.ParquetWriter(self._stream, self._schema, compression="zstd")

    def write(self, rows: Sequence[table_export.Row]) -> None:
        """Write rows as one row group."""
        columns = zip(*rows, strict=True)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, self._schema, strict=True)]
        self._writer.write_batch(pa.record_batch(arrays, schema=self._schema))

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()
        self._stream.close()


def _type(column: sa.Column[Any]) -> Any:  # noqa: ANN401 - PyArrow has no types of its own
    if table_export.is_money(column):
        return pa.decimal128(DIGITS, PLACES)
    if isinstance(column.type, UtcMicros | UtcHour):
        return pa.timestamp("us", tz="UTC")
    if isinstance(column.type, Flag):
        return pa.bool_()
    # A decorated type stores the values of its own column type.
    stored = getattr(column.type, "impl", column.type)
    if isinstance(stored, sa.Integer):
        return pa.int64()
    if isinstance(stored, sa.LargeBinary):
        return pa.binary()
    return pa.float64() if isinstance(stored, sa.Float) else pa.string()
