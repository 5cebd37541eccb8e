"""What being in time, or being available, costs: a point a strategy."""

from agent.lab.page import ink
from agent.lab.page.html import Plot
from agent.lab.page.saved import Strategy, Table


def plot(table: Table, name: str) -> Plot | None:
    """Return cost against availability, or against the share of late runs; nothing where all are alike in it."""
    what, values = _measured(table)
    rows = [row for row in table.strategies if row.strategy in values and row.mean_cost is not None]
    if len({round(value, 9) for value in values.values()}) < 2:  # noqa: PLR2004 - one value is no axis
        return None
    with ink.sheet(name, ink.NARROW, 3.4) as sheet:
        axes = sheet.axes()
        for place, row in enumerate(rows):
            mark, colour = ink.MARKS[place % 8], ink.series(place)
            axes.plot([values[row.strategy]], [row.mean_cost or 0.0], mark, color=colour, label=row.strategy)
        axes.margins(0.12)
        axes.set_xlabel(what)
        axes.set_ylabel("mean cost")
        sheet.figure.legend(loc="outside lower center", ncols=3)
    return Plot(
        title=f"Cost against {what}",
        says="; ".join(_words(row, values[row.strategy], what) for row in rows),
        note="Lower is cheaper; "
        + ("left is more in time." if what.startswith("late") else "right is more available."),
        svg=sheet.svg,
    )


def _measured(table: Table) -> tuple[str, dict[str, float]]:
    """Return what is compared and its value for each strategy."""
    for key in dict.fromkeys(key for row in table.strategies for key in row.figures):
        if "availab" in key:
            found = {row.strategy: row.figures.get(key) for row in table.strategies}
            return key.replace("_", " "), {strategy: value for strategy, value in found.items() if value is not None}
    return "late runs, %", {row.strategy: 100 * row.late / table.runs for row in table.strategies}


def _words(row: Strategy, value: float, what: str) -> str:
    return f"{row.strategy}: {row.mean_cost:.2f} at {value:.3g} {what}"
