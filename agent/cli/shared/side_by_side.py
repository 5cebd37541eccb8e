"""Prints tables whose columns are compared: the first column names the terms, and each other one is a candidate."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agent.cli.shared import session

if TYPE_CHECKING:
    from rich.table import Table


def show(compared: "Table") -> None:
    """Print a table. A narrow terminal gets as many candidates at once as fit, and the others below them."""
    from rich.console import Console

    if not session.is_terminal():
        session.show(compared)
        return
    for number, part in enumerate(parts(compared, Console().width)):
        if number:
            session.say("")
        session.show(part)


def show_rows(rows: "Table") -> None:
    """Print a table. On a terminal that is too narrow for it, print its rows side by side as columns."""
    from rich.console import Console

    is_narrow = session.is_terminal() and session.least_width(rows) > Console().width
    show(_turned(rows)) if is_narrow else session.show(rows)


def _turned(rows: "Table") -> "Table":
    """Return a table with a column for each row. Columns without any text are left out."""
    columns = [(str(column.header), *map(str, column.cells)) for column in rows.columns]
    turned = session.table(*columns[0])
    for column in columns[1:]:
        if any(column[1:]):
            session.add(turned, *column)
    return turned


def parts(compared: "Table", width: int) -> "Iterator[Table]":
    """Yield tables of the first column and the next others, each with as many as fit into `width`, but at least one."""
    begin, count = 1, len(compared.columns)
    while begin < count:
        ends = range(count, begin, -1)
        end = next((each for each in ends if session.least_width(_part(compared, begin, each)) <= width), begin + 1)
        yield _part(compared, begin, end)
        begin = end


def _part(compared: "Table", begin: int, end: int) -> "Table":
    columns = [compared.columns[0], *compared.columns[begin:end]]
    part = session.table(*(str(column.header) for column in columns))
    for row in zip(*(column.cells for column in columns), strict=True):
        session.add(part, *map(str, row))
    return part
