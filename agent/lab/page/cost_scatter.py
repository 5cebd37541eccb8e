"""Cost against lateness or availability, with a point for each strategy."""

import math

from agent.lab.page import svg_sheet
from agent.lab.page.html import Plot
from agent.lab.page.saved_table import Strategy, Table

TICKS = (0, 0.1, 0.3, 1, 3, 10, 30, 100)


def plot(table: Table, name: str, of: str = "") -> Plot | None:
    """Return cost against availability or against the share of late runs, or None if all strategies are equal in it."""
    title, what, values = _measured(table)
    rows = [row for row in table.strategies if row.strategy in values and row.mean_cost is not None]
    if len({round(value, 9) for value in values.values()}) < 2:  # noqa: PLR2004 - one value is no axis
        return None
    # The legend takes a line for every three.
    with svg_sheet.sheet(name, svg_sheet.NARROW, 2.8 + 0.19 * math.ceil(len(rows) / 3)) as sheet:
        axes = sheet.axes()
        for place, row in enumerate(rows):
            mark, colour = svg_sheet.MARKS[place % 8], svg_sheet.series(place)
            axes.plot([values[row.strategy]], [row.mean_cost or 0.0], mark, color=colour, label=row.strategy)
        axes.margins(0.12)
        # What matters is the last per cent.
        axes.set_xscale("symlog", linthresh=0.1, linscale=0.3)
        axes.set_xlim(left=-0.02)
        axes.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
        axes.set_xlim(right=2 * max(values.values()))
        axes.set_xlabel(what)
        axes.set_ylabel("mean cost")
        sheet.figure.legend(loc="outside lower center", ncols=3)
    return Plot(
        title=f"Cost against {title}{of}",
        says="; ".join(_words(row, values[row.strategy], what) for row in rows),
        note="Lower is cheaper, farther left is better; per cent by their logarithm.",
        svg=sheet.svg,
    )


def _measured(table: Table) -> tuple[str, str, dict[str, float]]:
    """Return the quantity, the name of its axis, and each strategy's value in per cent. Less is better."""
    figures = {row.strategy: row.figures.get("availability") for row in table.strategies}
    known = {strategy: 100 * max(1 - value, 0.0) for strategy, value in figures.items() if value is not None}
    if known:
        return "availability", "time not available, %", known
    return "lateness", "late runs, %", {row.strategy: 100 * row.late / table.runs for row in table.strategies}


def _words(row: Strategy, value: float, what: str) -> str:
    return f"{row.strategy}: {row.mean_cost:.2f} at {value:.3g} {what}"
