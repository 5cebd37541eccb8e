"""One run told tick by tick: where capacity was, what each strategy held, and how far it was against the deadline."""

from itertools import groupby

from matplotlib.axes import Axes

from agent.domain.tenure import Tenure
from agent.lab.page import ink
from agent.lab.page.html import Plot
from agent.lab.timeline import Lane, Timeline

HELD = {Tenure.INTERRUPTIBLE: (ink.SERIES[0], "interruptible"), Tenure.ON_DEMAND: (ink.SERIES[1], "on demand")}


def plot(told: Timeline, name: str) -> Plot:
    """Return the picture."""
    count = len(told.lanes)
    with ink.sheet(name, ink.WIDE, 3.6 + 0.28 * count) as sheet:
        bands, lines = sheet.figure.subplots(2, 1, sharex=True, height_ratios=(0.28 * (count + 1.6), 2.8))
        _bands(bands, told)
        _lines(lines, told)
        lines.set_xlim(0, told.allowed * 1.01)
        sheet.figure.legend(*lines.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return Plot(
        title="One run, tick by tick",
        says="; ".join(_words(told, lane) for lane in told.lanes),
        note=f"Run {told.case}: {told.work:g} hours of work, {told.allowed:g} allowed. Above, where interruptible "
        "capacity was there and what each strategy held; below, how far it was against the deadline: it loses "
        "slack while it waits or starts; on the deadline line what is left is done in time if nothing more is lost.",
        svg=sheet.svg,
        is_wide=True,
    )


def _bands(axes: Axes, told: Timeline) -> None:
    names = ["capacity", *(lane.strategy for lane in told.lanes)]
    axes.broken_barh(_spans(told.is_up, told.gap).get(True, []), (-0.3, 0.6), color=ink.QUIET, alpha=0.6)
    for place, lane in enumerate(told.lanes, 1):
        for held, spans in _spans(lane.tenures, told.gap).items():
            if isinstance(held, Tenure):
                axes.broken_barh(spans, (place - 0.35, 0.7), color=HELD[held][0], linewidth=0)
    for colour, word in HELD.values():
        axes.barh(0, 0, color=colour, label=word)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.legend(ncols=2, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0)


def _lines(axes: Axes, told: Timeline) -> None:
    for place, lane in enumerate(told.lanes):
        hours = [tick * told.gap for tick in range(len(lane.done))]
        slack = [told.allowed - hour - (told.work - done) for hour, done in zip(hours, lane.done, strict=True)]
        label = f"{lane.strategy} (${lane.dollars:.2f})"
        # The last point is the end of a tick, which may lie after the end of the work.
        axes.plot(hours[:-1], slack[:-1], linestyle=ink.STYLES[place % 8], color=ink.series(place), label=label)
    axes.axhline(0, color=ink.INK, linewidth=1.2)
    axes.annotate("deadline line", (0, 0), (3, 3), textcoords="offset points", va="bottom", color=ink.QUIET)
    axes.set_xlabel("hours since the job began")
    axes.set_ylabel("hours of slack left")
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))


def _spans(values: tuple[object, ...], gap: float) -> dict[object, list[tuple[float, float]]]:
    """Return, for each value, where it stands: beginning and length in hours."""
    found: dict[object, list[tuple[float, float]]] = {}
    first = 0
    for value, group in groupby(values):
        length = len(list(group))
        found.setdefault(value, []).append((first * gap, length * gap))
        first += length
    return found


def _words(told: Timeline, lane: Lane) -> str:
    hours = {held: sum(each is held for each in lane.tenures) * told.gap for held in HELD}
    parts = ", ".join(f"{hours[held]:.1f} h {word}" for held, (_, word) in HELD.items())
    return f"{lane.strategy}: {lane.dollars:.2f} dollars, {parts}"
