"""Copying of a ledger's rows from one engine to the other, as stored, and the comparison of both.

1. The source is read in one transaction, so a copy is of one instant.
2. The copy is compared before it counts: rows, sums of money and a digest of each table, read back from the target.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from agent.ledger.moved_marks import MARKS
from agent.ledger.tables import schema
from agent.ledger.tables.types import MicroUsd, MicroUsdPerHour

ROWS_AT_ONCE = 1_000
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class TableFigures:
    """The figures of a table: its rows, the micro-dollars in all its columns of money, and a digest of every value."""

    rows: int
    money_micros: int
    digest: str


def copy(source: sa.Connection, target: sa.Connection) -> None:
    """Insert every row of the source into the empty tables of the target, in the open transactions of both."""
    for table in schema.METADATA.sorted_tables:
        plain = sa.table(table.name, *(sa.column(each.name) for each in table.columns))
        names = [each.name for each in table.columns]
        for part in _parts(source, table):
            target.execute(sa.insert(plain), [dict(zip(names, row, strict=True)) for row in part])


def figures(link: sa.Connection) -> dict[str, TableFigures]:
    """Return the figures of every table, by its name."""
    return {table.name: _figures(link, table) for table in schema.METADATA.sorted_tables}


def differences(before: dict[str, TableFigures], after: dict[str, TableFigures]) -> list[str]:
    """Return a sentence for each table whose figures differ."""
    return [
        f"table {name}: {one.rows} rows with {one.money_micros} micro-dollars became {after[name].rows} with "
        f"{after[name].money_micros}" + ("" if one.digest == after[name].digest else ", and values differ")
        for name, one in before.items()
        if one != after[name]
    ]


def _figures(link: sa.Connection, table: sa.Table) -> TableFigures:
    digest, count, money = hashlib.sha256(), 0, 0
    of_money = [at for at, column in enumerate(table.columns) if isinstance(column.type, MicroUsd | MicroUsdPerHour)]
    for part in _parts(link, table):
        for row in part:
            digest.update(repr(row).encode())
            money += sum(row[at] or 0 for at in of_money)
        count += len(part)
    return TableFigures(count, money, digest.hexdigest())


def _parts(link: sa.Connection, table: sa.Table) -> Iterator[list[Row]]:
    """Yield a table's rows as stored, in the order of its primary key, which is the same on both engines."""
    stored = [sa.type_coerce(column, sa.types.NullType()).label(column.name) for column in table.columns]
    query = sa.select(*stored).order_by(*table.primary_key)
    if table is schema.meta:
        query = query.where(schema.meta.c.key.not_in(MARKS))
    result = link.execute(query, execution_options={"yield_per": ROWS_AT_ONCE})
    for part in result.partitions():
        yield [tuple(row) for row in part]
