"""Warm slots look by look: available capacity, each strategy's instances, and the looks with too few warm ones."""

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from agent.lab.engine.run_timeline import Kept, Shelf
from agent.lab.page import ink, run_page
from agent.lab.page.html import Plot

SPOT, ON_DEMAND, SHORT = ink.SERIES[0], ink.SERIES[1], ink.INK


def plot(told: Kept, name: str) -> Plot:
    """Return the picture."""
    count, lanes = len(told.bands), len(told.shelves)
    with ink.sheet(name, ink.WIDE, 0.9 + 0.2 * count + 1.0 * lanes) as sheet:
        heights = (0.2 * (count + 0.5), *(1.0 for _ in told.shelves))
        bands, *shelves = sheet.figure.subplots(1 + lanes, 1, sharex=True, height_ratios=heights)
        _bands(bands, told)
        for axes, shelf in zip(shelves, told.shelves, strict=True):
            _shelf(axes, told, shelf)
        (shelves or [bands])[-1].set_xlabel("hours since the day began")
        (shelves or [bands])[-1].set_xlim(0, len(told.bands[0].is_up) * told.gap)
        if shelves:
            sheet.figure.legend(*shelves[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return Plot(
        title="One day, look by look",
        says="; ".join(_words(told, shelf) for shelf in told.shelves),
        note=f"Day {told.case}: above, where interruptible capacity was there; below, what each strategy held, "
        f"interruptible slots under those on demand, against the {told.slots} asked for. A mark under a lane is time "
        "with too few warm: a start takes a while, and costs from its beginning.",
        svg=sheet.svg,
        is_wide=True,
    )


def _bands(axes: Axes, told: Kept) -> None:
    for place, band in enumerate(told.bands):
        there = run_page.spans(band.is_up, told.gap).get(True, [])
        axes.broken_barh(there, (place - 0.3, 0.6), color=ink.QUIET, alpha=0.6, linewidth=0)
    axes.set_yticks(range(len(told.bands)), [band.pool for band in told.bands])
    axes.invert_yaxis()
    axes.grid(visible=False)


def _shelf(axes: Axes, told: Kept, shelf: Shelf) -> None:
    held = tuple(zip(shelf.interruptible, shelf.on_demand, strict=True))
    for (spots, on_demand), found in run_page.spans(held, told.gap).items():
        axes.broken_barh(found, (0, spots), color=SPOT, linewidth=0)
        axes.broken_barh(found, (spots, on_demand), color=ON_DEMAND, linewidth=0)
    axes.broken_barh(
        run_page.spans(_short(told, shelf), told.gap).get(True, []), (-0.75, 0.5), color=SHORT, linewidth=0.8
    )
    axes.axhline(told.slots, color=ink.INK, linewidth=1.0, linestyle="--", label=f"{told.slots} asked for")
    for colour, word in ((SPOT, "interruptible"), (ON_DEMAND, "on demand"), (SHORT, "too few warm")):
        axes.barh(0, 0, color=colour, label=word)
    axes.set_ylim(-1, max(told.slots + 1, *map(sum, held)) + 0.2)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.set_title(
        f"{shelf.strategy}: ${shelf.dollars:.2f}, {shelf.availability:.2%} available", loc="left", fontsize=8.5
    )


def _short(told: Kept, shelf: Shelf) -> tuple[bool, ...]:
    return tuple(look >= told.unjudged and warm < told.slots for look, warm in enumerate(shelf.warm))


def _words(told: Kept, shelf: Shelf) -> str:
    short = sum(_short(told, shelf)) * told.gap
    spots, on_demand = sum(shelf.interruptible) * told.gap, sum(shelf.on_demand) * told.gap
    return (
        f"{shelf.strategy}: {shelf.dollars:.2f} dollars, {spots:.1f} slot hours interruptible, "
        f"{on_demand:.1f} on demand, {short:.2f} h with too few warm"
    )
