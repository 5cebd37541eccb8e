"""A table, alone or with plots, as one HTML page: escaped, light and dark, readable on a phone, and without script."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

import jinja2
from markupsafe import Markup

from agent import __version__
from agent.lab.bench import interval
from agent.lab.page.saved_table import Strategy, Table

NONE = "\u2013"
"""A dash if there is no figure."""
BAR = 160
"""The width of an interval's picture, in SVG units."""
FARTHEST = 2.5
"""The greatest scale of the pictures, as a multiple of the median row's reach."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of text: heading and rows. Columns after the first `words` are figures. Rows at `sums` are sums."""

    caption: str
    heading: tuple[str, ...]
    words: int
    rows: tuple[tuple[str, ...], ...]
    sums: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture with its description: `says` for readers who cannot see it, `note` for everybody.

    `table` has its figures, if they are worth reading.
    """

    title: str
    says: str
    note: str
    svg: Markup
    is_wide: bool = False
    table: Grid | None = None


def page(tables: Sequence[Table], plots: Sequence[Plot] = (), left_out: Sequence[str] = ()) -> str:
    """Return the page of tables. Its title is of the first one. `left_out` has a sentence for each missing plot."""
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("agent.lab.page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    templates.filters |= {"dollars": dollars, "words": words}
    return templates.get_template("bench.html").render(
        title=_title(tables[0]),
        tables=[_Shown(table) for table in tables],
        plots=plots,
        left_out=left_out,
        fewest=interval.FEWEST,
        version=__version__,
        style=Markup(_style()),  # noqa: S704 - our own style sheets
    )


class _Shown:
    """A table and the settings of its layout."""

    def __init__(self, table: Table) -> None:
        reach = _reach(table)
        self.of = table
        self.digits = _digits(table)
        self.figures = list(dict.fromkeys(key for row in table.strategies for key in row.figures))
        self.bars = {row.strategy: _bar(row, reach) for row in table.strategies}
        self.has_digests = any(row.digest for row in table.strategies)
        self.name = words(table.about.get("climate") or _title(table))


def _title(table: Table) -> str:
    traces = table.about.get("traces")
    return table.problem if traces is None else f"{table.problem} on {words(traces)}"


def dollars(value: float | None, digits: int, *, signed: bool = False) -> str:
    """Return dollars, or a dash if there is no figure."""
    if value is None:
        return NONE
    return f"{value:+,.{digits}f}" if signed else f"{value:,.{digits}f}"


def words(value: object) -> str:
    """Return a setting in words."""
    if value is None:
        return "not given"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(words(each) for each in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {words(each)}" for key, each in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)


def _style() -> str:
    """Return the house's style sheet and ours."""
    house = resources.files("agent.web").joinpath("static/page.css").read_text("utf-8")
    return house + resources.files("agent.lab.page").joinpath("page.css").read_text("utf-8")


def _digits(table: Table) -> int:
    """Return the number of digits after the point that are significant in every row."""
    most = max((abs(row.mean_cost) for row in table.strategies if row.mean_cost is not None), default=0.0)
    return 2 if most >= 100 else 3 if most >= 1 else 5  # noqa: PLR2004 - digits, not a rule


def _reach(table: Table) -> float:
    """Return the reach of the pictures from zero: the farthest end, unless one would hide all others."""
    ends = [max(map(abs, row.interval)) for row in table.strategies if row.interval and row.strategy != table.baseline]
    return min(max(ends), FARTHEST * statistics.median_low(ends)) if ends else 0.0


def _bar(row: Strategy, reach: float) -> Markup:
    """Return an interval as a line with its mean and zero in the middle, with an arrow if the mean is outside.

    It is hidden from screen readers, because the figures are beside it.
    """
    if row.interval is None or row.difference_vs_baseline is None or reach <= 0:
        return Markup("")

    def across(value: float) -> float:
        return BAR / 2 + min(max(value / reach, -1.0), 1.0) * (BAR / 2 - 6)

    (low, high), mean = row.interval, row.difference_vs_baseline
    kind = "less" if high < 0 else "more" if low > 0 else "alike"
    drawn = (
        f'<path class="nought" d="M{BAR / 2} 1V15"/><path class="{kind}" d="M{across(low):.1f} 8H{across(high):.1f}"/>'
    )
    if abs(mean) > reach:
        tip = 6 if mean > 0 else -6
        drawn += f'<path class="tip {kind}" d="M{across(mean):.1f} 3l{tip} 5l{-tip} 5z"/>'
    else:
        drawn += f'<circle class="{kind}" cx="{across(mean):.1f}" cy="8" r="3.5"/>'
    return Markup(f'<svg class="bar" viewBox="0 0 {BAR} 16" aria-hidden="true">{drawn}</svg>')  # noqa: S704 - numbers alone
