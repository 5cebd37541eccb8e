"""One run tick by tick: available capacity, each strategy's tenure, and its progress against the deadline."""

from itertools import groupby
from typing import TypeVar

from matplotlib.axes import Axes

from agent.domain.market.tenure import Tenure
from agent.lab.engine.run_timeline import Lane, Timeline
from agent.lab.page import svg_sheet
from agent.lab.page.html import Plot

V = TypeVar("V")
HELD = {
    Tenure.INTERRUPTIBLE: (svg_sheet.SERIES[0], "interruptible"),
    Tenure.ON_DEMAND: (svg_sheet.SERIES[1], "on demand"),
}


def plot(timeline: Timeline, name: str) -> Plot:
    """Return the picture."""
    count = len(timeline.lanes) + len(timeline.bands)
    with svg_sheet.sheet(name, svg_sheet.WIDE, 3.3 + 0.28 * count) as sheet:
        bands, lines = sheet.figure.subplots(2, 1, sharex=True, height_ratios=(0.28 * (count + 0.6), 2.8))
        _bands(bands, timeline)
        _lines(lines, timeline)
        lines.set_xlim(0, timeline.allowed * 1.01)
        sheet.figure.legend(*lines.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return Plot(
        title="One run, tick by tick",
        says="; ".join(_words(timeline, lane) for lane in timeline.lanes),
        note=f"Run {timeline.case}: {timeline.work:g} hours of work, {timeline.allowed:g} allowed. Above, where "
        "interruptible capacity was there and what each strategy held; below, how far it was against the deadline: it "
        "loses slack while it waits or starts; on the deadline line the job is in time only if it loses nothing more."
        + (" An upright line is a move to another pool." if len(timeline.bands) > 1 else ""),
        svg=sheet.svg,
        is_wide=True,
    )


def _bands(axes: Axes, timeline: Timeline) -> None:
    names = [*(band.pool for band in timeline.bands), *(lane.strategy for lane in timeline.lanes)]
    for place, band in enumerate(timeline.bands):
        there = spans(band.is_up, timeline.gap).get(True, [])
        axes.broken_barh(there, (place - 0.3, 0.6), color=svg_sheet.QUIET, alpha=0.6, linewidth=0)
    for place, lane in enumerate(timeline.lanes, len(timeline.bands)):
        for held, found in spans(lane.tenures, timeline.gap).items():
            if isinstance(held, Tenure):
                axes.broken_barh(found, (place - 0.35, 0.7), color=HELD[held][0], linewidth=0)
        moves = [tick * timeline.gap for tick in lane.moves]
        axes.vlines(moves, place - 0.48, place + 0.48, color=svg_sheet.INK, linewidth=1.2)
    for colour, word in HELD.values():
        axes.barh(0, 0, color=colour, label=word)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.legend(ncols=2, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0)


def _lines(axes: Axes, timeline: Timeline) -> None:
    for place, lane in enumerate(timeline.lanes):
        hours = [tick * timeline.gap for tick in range(len(lane.done))]
        slack = [timeline.allowed - hour - (timeline.work - done) for hour, done in zip(hours, lane.done, strict=True)]
        label = f"{lane.strategy} (${lane.dollars:.2f})"
        # The last point is the end of a tick, which may be after the end of the work.
        axes.plot(
            hours[:-1], slack[:-1], linestyle=svg_sheet.STYLES[place % 8], color=svg_sheet.series(place), label=label
        )
    axes.axhline(0, color=svg_sheet.INK, linewidth=1.2)
    axes.annotate("deadline line", (0, 0), (3, 3), textcoords="offset points", va="bottom", color=svg_sheet.QUIET)
    axes.set_xlabel("hours since the job began")
    axes.set_ylabel("hours of slack left")
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))


def spans(values: tuple[V, ...], gap: float) -> dict[V, list[tuple[float, float]]]:
    """Return the stretches of each value, as beginning and length in hours."""
    found: dict[V, list[tuple[float, float]]] = {}
    first = 0
    for value, group in groupby(values):
        length = len(list(group))
        found.setdefault(value, []).append((first * gap, length * gap))
        first += length
    return found


def _words(timeline: Timeline, lane: Lane) -> str:
    hours = {held: sum(each is held for each in lane.tenures) * timeline.gap for held in HELD}
    parts = ", ".join(f"{hours[held]:.1f} h {word}" for held, (_, word) in HELD.items())
    moves = f", {len(lane.moves)} moves" if len(timeline.bands) > 1 else ""
    return f"{lane.strategy}: {lane.dollars:.2f} dollars, {parts}{moves}"
