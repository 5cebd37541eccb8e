"""`gpubid ledger export`: every table as CSV or Parquet, for a spreadsheet or a notebook."""

import os
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.shared import exits, last_good, ledger_questions, session

if TYPE_CHECKING:
    from agent.ledger.file.table_export import Exported, Opener
    from agent.ledger.reader import Reader


class Form(StrEnum):
    """The form of the files."""

    CSV = "csv"
    PARQUET = "parquet"


def export(
    to: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder to write into; it is created if it does not exist.")
    ],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    form: Annotated[Form, typer.Option("--format", help="The form of the files.")] = Form.CSV,
    table: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this table; may repeat. By default every table.")
    ] = None,
    as_json: session.JsonOption = False,
) -> None:
    """Write tables of the ledger to files, all as of one instant. No file is overwritten, and a daemon may run."""
    names = _names(table or ())
    suffix, opener = _opener(form)
    place = last_good.place(config)
    existing = [file for name in names if os.path.lexists(file := to / f"{name}{suffix}")]
    if existing:
        exits.stop(exits.BAD_INPUT, [_in_the_way(existing)])

    async def written(reader: "Reader") -> "list[Exported]":
        _make(to)
        return await reader.export(names, to, suffix, opener)

    files = ledger_questions.ledger(place, written)
    if as_json:
        session.print_json([{"table": one.table, "file": str(one.file), "rows": one.rows} for one in files])
        return
    for one in files:
        session.say(f"{one.file}: {one.rows} row(s)")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        exits.stop(exits.BAD_INPUT, [f"{folder} cannot be made ({error.strerror}); name another folder"])


def _in_the_way(files: Sequence[Path]) -> str:
    """Return the message for files that already exist."""
    first, *others = files
    if not others:
        return f"{first} exists; name another folder, or remove it"
    more = f"{len(others)} other file{'s' if len(others) > 1 else ''}"
    return f"{first} and {more} to be written exist; name another folder, or remove them"


def _names(asked: "list[str] | tuple[()]") -> list[str]:
    """Return the requested tables, each once, or end with 2 if one does not exist."""
    from agent.config import problems
    from agent.ledger.file import table_export

    unknown = [name for name in asked if name not in table_export.TABLES]
    if unknown:
        known = table_export.TABLES
        exits.stop(
            exits.BAD_INPUT, [f"--table: no table {name!r}; {problems.nearest(name, known)}" for name in unknown]
        )
    return list(dict.fromkeys(asked)) or list(table_export.TABLES)


def _opener(form: Form) -> "tuple[str, Opener]":
    from agent.ledger.file import table_export

    if form is Form.CSV:
        return table_export.CsvSink.suffix, table_export.CsvSink
    try:
        from agent.ledger.file import parquet_file
    except ImportError:
        sentence = "Parquet needs PyArrow; install it with pip install 'gpubid[parquet]', or use --format csv"
        exits.stop(exits.BAD_INPUT, [sentence])
    return parquet_file.ParquetSink.suffix, parquet_file.ParquetSink
