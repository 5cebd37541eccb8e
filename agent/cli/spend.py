"""`gpubid spend` and `gpubid savings`: what it cost, what was wasted, and what it would have cost elsewhere."""

import csv
import sys
from collections.abc import Mapping
from datetime import date, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli import exits, ledger, session

if TYPE_CHECKING:
    from agent.decide.savings import Price
    from agent.domain.account import Line, Taken
    from agent.domain.price import PriceHour, PriceSample
    from agent.ledger.reader import Reader

MOST_PRICES = 400_000
"""Samples and hours read for a comparison: more than a year of the history holds."""


class By(StrEnum):
    """By what a report is grouped."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    WORKLOAD = "workload"
    MARKET = "market"
    GPU = "gpu"
    TENURE = "tenure"
    LEASE = "lease"
    CAUSE = "cause"


ByOption = Annotated[By, typer.Option("--by", help="What the rows are.")]
Since = Annotated[str | None, typer.Option(metavar="DAY", help="Only from this UTC day on.")]
Until = Annotated[str | None, typer.Option(metavar="DAY", help="Only up to this UTC day, which is left out.")]
CsvOption = Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")]


def spend(
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    by: ByOption = By.DAY,
    since: Since = None,
    until: Until = None,
    as_json: session.JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Show what was spent, on what, and what of it was wasted, as of the last metering."""
    from agent.decide import accounts
    from agent.web import accounts as shown

    settings, _ = session.read(config)
    first, last = _day("--since", since), _day("--until", until)

    async def asked(reader: "Reader") -> "tuple[list[Line], list[Taken]]":
        return await reader.lines(first, last), await reader.taken(_midnight(first), _midnight(last))

    lines, taken = ledger.answer(settings, asked)
    sums = accounts.grouped(by.value, lines, taken)
    rows = [shown.spent(key, one) for key, one in sums.items()]
    whole = shown.spent("all", accounts.total(sums.values()))
    if as_json:
        session.print_json(shown.report(by.value, rows, whole))
        return
    columns = {
        "dollars": "spent", "waste_dollars": "wasted", "paid_hours": "paid h", "useful_hours": "useful h",
        "lost_hours": "lost h", "restoring_hours": "restoring h", "loading_hours": "loading h",
        "interruptions": "interruptions", "dollars_per_useful_hour": "$/useful h",
    }  # fmt: skip
    _print(by.value, [*rows, whole], columns, as_csv=as_csv)


def savings(
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    by: ByOption = By.MONTH,
    since: Since = None,
    until: Until = None,
    baseline: Annotated[
        str | None, typer.Option(help="Compare with the published price of this cloud, such as aws.")
    ] = None,
    as_json: session.JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Compare useful hours with the on-demand price of that time on the same market, or with that of a cloud."""
    from agent.decide import accounts
    from agent.decide import savings as saving
    from agent.web import accounts as shown

    if by is By.CAUSE:
        exits.stop(
            exits.BAD_INPUT, ["--by cause: what an interruption took has no price elsewhere; try `gpubid spend`"]
        )
    settings, _ = session.read(config)
    first, last = _day("--since", since), _day("--until", until)

    async def asked(reader: "Reader") -> "tuple[list[Line], list[PriceSample], list[PriceHour]]":
        prices = await reader.prices(limit=MOST_PRICES), await reader.price_hours(limit=MOST_PRICES)
        return await reader.lines(first, last), *prices

    lines, samples, hours = ledger.answer(settings, asked)
    price, cited = _at_the_time(samples, hours) if baseline is None else _published(baseline, lines)
    sums = saving.grouped(lines, accounts.KEYS[by.value], price)
    rows = [shown.saved(key, one) for key, one in sums.items()]
    whole = saving.Saving()
    for one in sums.values():
        whole = whole.plus(one)
    against = baseline or "on_demand"
    if as_json:
        session.print_json(shown.report(by.value, rows, shown.saved("all", whole), against=against, cited=cited))
        return
    columns = {
        "dollars": "spent", "compared_dollars": against, "saved_dollars": "saved", "savings_ratio": "share",
        "useful_hours": "useful h", "unknown_hours": "h without a price",
    }  # fmt: skip
    _print(by.value, [*rows, shown.saved("all", whole)], columns, as_csv=as_csv)
    if not as_csv:
        for line in cited:
            session.say(line)


def _at_the_time(samples: "list[PriceSample]", hours: "list[PriceHour]") -> "tuple[Price, list[str]]":
    from agent.clock import SystemClock
    from agent.decide import savings as saving

    return saving.History(samples, hours, SystemClock().now()).price, []


def _published(cloud: str, lines: "list[Line]") -> "tuple[Price, list[str]]":
    """Return the published price of a cloud for each line, and where each figure is from."""
    from agent.baselines import catalogue, loading

    known = loading.load()
    if cloud not in known.clouds:
        exits.stop(
            exits.BAD_INPUT, [f"--baseline: no price of {cloud} is known; write one of {', '.join(known.clouds)}"]
        )
    quotes: dict[tuple[str, int], float] = {}
    cited: set[str] = set()
    for line in lines:
        if not line.gpu or (line.gpu, line.gpus) in quotes:
            continue
        try:
            quote = known.cheapest(cloud, line.gpu).quote(line.gpus)
        except catalogue.UnknownBaseline:
            continue
        quotes[line.gpu, line.gpus] = float(quote.least.micros)
        cited.add(f"{line.gpus}x {line.gpu}: {quote.least}, {quote.cited}")
    return lambda line: quotes.get((line.gpu, line.gpus)), sorted(cited)


def _print(by: str, rows: list[dict[str, Any]], columns: Mapping[str, str], *, as_csv: bool) -> None:
    if as_csv:
        writer = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return
    table = session.table(by, *columns.values())
    for row in rows:
        session.add(table, str(row["key"]), *(_cell(name, row[name]) for name in columns))
    session.show(table)


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    if name == "savings_ratio":
        return f"{value:.1%}"
    if name == "interruptions":
        return str(value)
    return f"${value:.4f}" if "dollars" in name else f"{value:.2f}"


def _day(option: str, text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        exits.stop(exits.BAD_INPUT, [f"{option}: {text!r} is no day such as 2026-11-21"])


def _midnight(day: date | None) -> datetime | None:
    from datetime import UTC

    return None if day is None else datetime(day.year, day.month, day.day, tzinfo=UTC)
