"""Prints wide tables so that a narrow terminal can compare their rows: rows as columns, or each row on two lines."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agent.cli.shared import session

if TYPE_CHECKING:
    from rich.table import Column, Table


GAP = 2
"""Spaces between two columns."""
TEXT_LEAST = 48
"""The least characters of a folded column beside others. With less room it has a line of its own."""
INDENT = "  "


def show(compared: "Table") -> None:
    """Print a table of candidates, with the names of the terms in its first column.

    A narrow terminal gets as many candidates at once as fit, and the others below them.
    """
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


def show_two_lined(rows: "Table", movable: Sequence[str]) -> None:
    """Print a table. On a terminal that is too narrow for it, print each row on two lines.

    One line is text: the `movable` columns, as many of the first ones as needed. The other line has the other columns.
    The text comes first if it has the table's first column.
    """
    from rich.cells import cell_len
    from rich.console import Console

    width = Console().width
    if not session.is_terminal() or _has_room(rows, width):
        session.show(rows)
        return
    for count in range(1, len(movable) + 1):
        moved = [column for column in rows.columns if column.header in movable[:count]]
        kept = [column for column in rows.columns if column not in moved]
        figures = _aligned(kept)
        if max(map(cell_len, figures)) <= width - len(INDENT):
            _say_pairs(figures, _texts(moved, movable[0]), width, is_text_first=moved[0] is rows.columns[0])
            return
    session.show(rows)


def _has_room(rows: "Table", width: int) -> bool:
    """Return whether each row fits into one line, or its folded column into lines of a readable length."""
    from rich.cells import cell_len

    lengths = [max(cell_len(str(text)) for text in (column.header, *column.cells)) for column in rows.columns]
    surplus = sum(lengths) + GAP * (len(lengths) - 1) - width
    folded = [length for length, column in zip(lengths, rows.columns, strict=True) if not column.no_wrap]
    return surplus <= 0 or any(length - surplus >= TEXT_LEAST for length in folded)


def _aligned(columns: "Sequence[Column]") -> list[str]:
    """Return the header and the rows of columns, each as a line without its last spaces."""
    from rich.cells import cell_len, set_cell_size

    texts = [(str(column.header), *map(str, column.cells)) for column in columns]
    padded = [[set_cell_size(text, max(map(cell_len, column))) for text in column] for column in texts]
    return [(" " * GAP).join(row).rstrip() for row in zip(*padded, strict=True)]


def _texts(columns: "Sequence[Column]", bare: str) -> list[str]:
    """Return the header and the rows of columns as text. A cell follows its header, except in the `bare` column."""
    names = [str(column.header) for column in columns]
    rows = zip(*(map(str, column.cells) for column in columns), strict=True)
    texts = [
        "; ".join(cell if name == bare else f"{name} {cell}" for name, cell in zip(names, row, strict=True) if cell)
        for row in rows
    ]
    return ["; ".join(names), *texts]


def _say_pairs(figures: Sequence[str], texts: Sequence[str], width: int, *, is_text_first: bool) -> None:
    """Print each row on its two lines, the second one indented. A text longer than the terminal has further lines."""
    for figure, text in zip(figures, texts, strict=True):
        wrapped = textwrap.wrap(text, width - len(INDENT))
        for number, line in enumerate((*wrapped, figure) if is_text_first else (figure, *wrapped)):
            session.say(f"{INDENT}{line}" if number else line)
