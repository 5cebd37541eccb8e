"""Statements and functions with different syntax in SQLite and PostgreSQL: one construct, compiled for either."""

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement


class least(FunctionElement[Any]):  # noqa: N801 - a function of SQL
    """The smaller of two values; NULL if SQLite sees a NULL, while PostgreSQL leaves NULLs out."""

    inherit_cache = True


class greatest(FunctionElement[Any]):  # noqa: N801 - a function of SQL
    """The larger of two values; NULLs as in `least`."""

    inherit_cache = True


class json_length(FunctionElement[int]):  # noqa: N801 - a function of SQL
    """The number of elements of a JSON list in a column of text."""

    inherit_cache = True
    type = sa.Integer()


class json_text(FunctionElement[str]):  # noqa: N801 - a function of SQL
    """The text of one key of a JSON object in a column of text: `json_text(column, "key")`."""

    inherit_cache = True
    type = sa.Text()


@compiles(least)
@compiles(greatest)
@compiles(json_length)
@compiles(json_text)
def _in_sqlite(element: FunctionElement[Any], compiler: Any, **words: Any) -> str:  # noqa: ANN401 - as SQLAlchemy has it
    """Return SQLite's syntax: its functions have other names."""
    own = {least: "min", greatest: "max", json_length: "json_array_length", json_text: "json_extract"}
    return f"{own[type(element)]}({compiler.process(element.clauses, **words)})"


@compiles(least, "postgresql")
@compiles(greatest, "postgresql")
def _extreme(element: FunctionElement[Any], compiler: Any, **words: Any) -> str:  # noqa: ANN401 - as above
    return f"{type(element).__name__}({compiler.process(element.clauses, **words)})"


@compiles(json_length, "postgresql")
def _json_length(element: FunctionElement[Any], compiler: Any, **words: Any) -> str:  # noqa: ANN401 - as above
    return f"json_array_length(({compiler.process(element.clauses, **words)})::json)"


@compiles(json_text, "postgresql")
def _json_text(element: FunctionElement[Any], compiler: Any, **words: Any) -> str:  # noqa: ANN401 - as above
    text, path = (compiler.process(each, **words) for each in element.clauses)
    return f"(({text})::json #>> string_to_array(replace({path}, '$.', ''), '.'))"


def stored(table: sa.Table) -> sqlite.Insert:
    """Return the statement that inserts a row, or replaces the row with the same primary key.

    `ON CONFLICT` has the same words in both dialects; `agent/ledger/server/dialect.py` reads SQLite's form of it.
    """
    statement = _insert(table)
    others = [column.name for column in table.columns if not column.primary_key]
    return statement.on_conflict_do_update(
        index_elements=list(table.primary_key.columns), set_={name: statement.excluded[name] for name in others}
    )


def kept(table: sa.Table) -> sqlite.Insert:
    """Return the statement that inserts a row unless there is one with the same primary key."""
    return _insert(table).on_conflict_do_nothing(index_elements=list(table.primary_key.columns))


def added(table: sa.Table, addends: Iterable[str]) -> sqlite.Insert:
    """Return the statement that adds columns to the row with the same primary key, or inserts that row."""
    statement = _insert(table)
    return statement.on_conflict_do_update(
        index_elements=list(table.primary_key.columns),
        set_={name: table.c[name] + statement.excluded[name] for name in addends},
    )


def _insert(table: sa.Table) -> sqlite.Insert:
    return sqlite.insert(table)


def with_largest(
    query: "sa.Select[*tuple[Any, ...]]", column: "sa.Column[Any]", *, by: "Sequence[sa.Column[Any]]"
) -> "sa.Select[*tuple[Any, ...]]":
    """Return the query for the rows of `query` with the largest value of a column in each group, and that value."""
    place = sa.func.row_number().over(partition_by=list(by), order_by=column.desc()).label("place")
    placed = query.add_columns(column, place).subquery()
    return sa.select(*(each for each in placed.c if each.name != "place")).where(placed.c.place == 1)
