"""Execution of a commit's statements on the driver's own connection.

SQLAlchemy compiles each statement once for its set of columns. Its own execution of a compiled statement takes longer
than SQLite's, so the values are converted here. No statement may have a list among its values (`IN`).
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import lru_cache
from typing import Any, cast

import sqlalchemy as sa

Convert = Callable[[Any], Any]


class Prepared:
    """One statement for one set of columns: its SQL, and the conversion of a row to its parameters."""

    def __init__(self, statement: sa.ClauseElement, columns: tuple[str, ...], dialect: sa.Dialect) -> None:
        """Compile the statement."""
        compiled: Any = statement.compile(dialect=dialect, column_keys=list(columns))
        self.sql = str(compiled)
        self._parameters: list[tuple[str | None, Any, Convert | None]] = []
        for name in compiled.positiontup or ():
            bind = compiled.binds[name]
            convert = bind.type.dialect_impl(dialect).bind_processor(dialect)
            key = next((each for each in (bind.key, name) if each in columns), None)
            self._parameters.append((key, None if key else bind.effective_value, convert))

    def parameters(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the values of a row in the statement's order, as SQLite stores them."""
        values = []
        for key, constant, convert in self._parameters:
            value = row[key] if key is not None else constant
            values.append(value if convert is None else convert(value))
        return tuple(values)


@lru_cache(maxsize=500)
def _prepared(statement: sa.ClauseElement, columns: tuple[str, ...], dialect: sa.Dialect) -> Prepared:
    return Prepared(statement, columns, dialect)


def execute_all(link: sa.Connection, work: Sequence[tuple[sa.Executable, Sequence[Mapping[str, Any]]]]) -> None:
    """Run statements with their rows in the open transaction; a server gets all of them at once.

    Raises:
        Exception: as `execute`.
    """
    raw: Any = link.connection.driver_connection
    at_once = raw.pipeline() if hasattr(raw, "pipeline") else nullcontext()
    with at_once:
        for statement, rows in work:
            execute(link, statement, rows)


def execute(link: sa.Connection, statement: sa.Executable, rows: Sequence[Mapping[str, Any]]) -> None:
    """Run a statement once for each row, in the open transaction. The rows have the same columns.

    Raises:
        Exception: the driver's: a row breaks a rule, or the tables cannot be written.
        ValueError: a value does not fit its column.
    """
    prepared = _prepared(cast("sa.ClauseElement", statement), tuple(rows[0]), link.dialect)
    raw: Any = link.connection.driver_connection
    if len(rows) == 1:
        raw.execute(prepared.sql, prepared.parameters(rows[0]))
    else:
        raw.cursor().executemany(prepared.sql, [prepared.parameters(row) for row in rows])
