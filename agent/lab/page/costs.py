"""The cost of runs under each strategy: the middle half, the middle nine tenths, both ends, median and mean."""

from matplotlib.axes import Axes

from agent.lab.page import svg_sheet
from agent.lab.page.html import Plot
from agent.lab.page.saved_table import Strategy, Table

NEEDED = {"0", "5", "25", "50", "75", "95", "100"}


def plot(table: Table, name: str, of: str = "") -> Plot | None:
    """Return the picture, or None if a table has no percentiles."""
    rows = [row for row in table.strategies if row.mean_cost is not None and _shares(row).keys() >= NEEDED]
    if not rows:
        return None
    with svg_sheet.sheet(name, svg_sheet.NARROW, 0.9 + 0.36 * len(rows)) as sheet:
        axes = sheet.axes()
        for place, row in enumerate(rows):
            _strip(axes, place, row)
        axes.set_yticks(range(len(rows)), [row.strategy for row in rows])
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(str(table.about.get("unit") or "dollars a run").partition(";")[0])
    return Plot(
        title=f"What a run costs{of}",
        says="; ".join(_words(row) for row in rows),
        note="Box: the middle half of the runs, with the median; line: from the 5th to the 95th percentile; small "
        "dots: the cheapest and the dearest run; diamond: the mean.",
        svg=sheet.svg,
    )


def _shares(row: Strategy) -> dict[str, float]:
    """Return the percentiles that are known."""
    return {share: value for share, value in row.cost_percentiles.items() if value is not None}


def _strip(axes: Axes, place: int, row: Strategy) -> None:
    at = _shares(row)
    axes.hlines(place, at["5"], at["95"], color=svg_sheet.SERIES[0], linewidth=1.5)
    axes.barh(place, at["75"] - at["25"], left=at["25"], height=0.5, color=svg_sheet.SERIES[0], alpha=0.35)
    axes.vlines(at["50"], place - 0.25, place + 0.25, color=svg_sheet.SERIES[0], linewidth=2)
    axes.plot([at["0"], at["100"]], [place, place], ".", color=svg_sheet.SERIES[0], markersize=3)
    axes.plot([row.mean_cost or 0.0], [place], "D", color=svg_sheet.SERIES[1], markersize=4.5)


def _words(row: Strategy) -> str:
    low, middle, high = (_shares(row)[share] for share in ("5", "50", "95"))
    return f"{row.strategy}: median {middle:.2f}, from {low:.2f} to {high:.2f} in nine of ten runs"
