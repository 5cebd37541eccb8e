"""`gpubid spend` and `gpubid savings`: the cost, its wasted part, and the cost of the same hours elsewhere."""

import csv
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.shared import exits, instants, ledger_questions, session, side_by_side

if TYPE_CHECKING:
    from agent.config.settings import Config
    from agent.ledger.reader import Reader


class By(StrEnum):
    """The grouping of a report."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    WORKLOAD = "workload"
    MARKET = "market"
    GPU = "gpu"
    TENURE = "tenure"
    LEASE = "lease"
    CAUSE = "cause"


ByOption = Annotated[By, typer.Option("--by", help="The grouping of the rows.")]
Since = Annotated[str | None, typer.Option(metavar="TIME", help="Begin at this UTC day: 2026-11-20, or 30d (ago).")]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="End before this UTC day.")]
CsvOption = Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")]


def spend(
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    by: ByOption = By.DAY,
    since: Since = None,
    until: Until = None,
    as_json: session.JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Show spend, its purpose and its wasted part, up to the last metering."""
    report = _reported(config, "/spend", _query(by, since, until))
    if as_json:
        session.print_json(report)
        return
    _print(report, as_csv=as_csv)


def savings(
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    by: ByOption = By.MONTH,
    since: Since = None,
    until: Until = None,
    baseline: Annotated[str | None, typer.Option(help="Compare with the price of this cloud, such as aws.")] = None,
    as_json: session.JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Compare the cost of useful hours with on-demand prices of that time on the same market, or with a cloud's."""
    report = _reported(config, "/savings", _query(by, since, until) | ({"baseline": baseline} if baseline else {}))
    if as_json:
        session.print_json(report)
        return
    _print(report, as_csv=as_csv)


def _query(by: By, since: str | None, until: str | None) -> dict[str, str]:
    """Return the query as the daemon takes it, or end if a day is wrong."""
    days = {name: instants.day(f"--{name}", text) for name, text in (("since", since), ("until", until))}
    instants.refuse_exchanged(days["since"], days["until"])
    return {"by": by.value} | {name: day.isoformat() for name, day in days.items() if day is not None}


def _reported(config: Path, route: str, query: Mapping[str, str]) -> dict[str, Any]:
    """Return a report."""
    return dict(
        ledger_questions.ask(config, route, lambda settings, reader: _read(settings, reader, route, query), query)
    )


async def _read(settings: "Config", reader: "Reader", route: str, query: Mapping[str, str]) -> Mapping[str, Any]:
    from agent.web.reading import spend_reports

    try:
        now = await ledger_questions.present(reader)
        return await spend_reports.answer(reader, route, query, now, spend_reports.units_of(settings.workloads))
    except spend_reports.ReportError as error:
        exits.stop(exits.BAD_INPUT, [str(error)])


def _print(report: Mapping[str, Any], *, as_csv: bool) -> None:
    """Print the rows and their total, as CSV or as a table with its notes below."""
    rows = [*report["rows"], {"key": "all", **report["total"]}]
    if as_csv:
        writer = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return
    from agent.web.reading import report_columns

    columns = report_columns.of(report)
    table = session.table(str(report["by"]), *columns.values())
    for row in rows:
        session.add(table, str(row["key"]), *(report_columns.cell(name, row[name]) for name in columns))
    side_by_side.show_rows(table)
    for note in report_columns.notes(report):
        session.say(note)
