"""Warm slots look by look: available capacity, each strategy's instances, and the looks with too few warm ones."""

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from agent.lab.engine.run_timeline import Kept, Shelf
from agent.lab.page import run_page, svg_sheet
from agent.lab.page.html import Plot

SPOT, ON_DEMAND, SHORT = svg_sheet.SERIES[0], svg_sheet.SERIES[1], svg_sheet.INK


def plot(kept: Kept, name: str) -> Plot:
    """Return the picture."""
    count, lanes = len(kept.bands), len(kept.shelves)
    with svg_sheet.sheet(name, svg_sheet.WIDE, 0.9 + 0.2 * count + 1.0 * lanes) as sheet:
        heights = (0.2 * (count + 0.5), *(1.0 for _ in kept.shelves))
        bands, *shelves = sheet.figure.subplots(1 + lanes, 1, sharex=True, height_ratios=heights)
        _bands(bands, kept)
        for axes, shelf in zip(shelves, kept.shelves, strict=True):
            _shelf(axes, kept, shelf)
        (shelves or [bands])[-1].set_xlabel("hours since the day began")
        (shelves or [bands])[-1].set_xlim(0, len(kept.bands[0].is_up) * kept.gap)
        if shelves:
            sheet.figure.legend(*shelves[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return Plot(
        title="One day, look by look",
        says="; ".join(_words(kept, shelf) for shelf in kept.shelves),
        note=f"Day {kept.case}: above, where interruptible capacity was there; below, what each strategy held, "
        f"interruptible slots under those on demand, against the {kept.slots} asked for. A mark under a lane is time "
        "with too few warm: a start takes a while, and costs from its beginning.",
        svg=sheet.svg,
        is_wide=True,
    )


def _bands(axes: Axes, kept: Kept) -> None:
    for place, band in enumerate(kept.bands):
        there = run_page.spans(band.is_up, kept.gap).get(True, [])
        axes.broken_barh(there, (place - 0.3, 0.6), color=svg_sheet.QUIET, alpha=0.6, linewidth=0)
    axes.set_yticks(range(len(kept.bands)), [band.pool for band in kept.bands])
    axes.invert_yaxis()
    axes.grid(visible=False)


def _shelf(axes: Axes, kept: Kept, shelf: Shelf) -> None:
    held = tuple(zip(shelf.interruptible, shelf.on_demand, strict=True))
    for (spots, on_demand), found in run_page.spans(held, kept.gap).items():
        axes.broken_barh(found, (0, spots), color=SPOT, linewidth=0)
        axes.broken_barh(found, (spots, on_demand), color=ON_DEMAND, linewidth=0)
    axes.broken_barh(
        run_page.spans(_short(kept, shelf), kept.gap).get(True, []), (-0.75, 0.5), color=SHORT, linewidth=0.8
    )
    axes.axhline(kept.slots, color=svg_sheet.INK, linewidth=1.0, linestyle="--", label=f"{kept.slots} asked for")
    for colour, word in ((SPOT, "interruptible"), (ON_DEMAND, "on demand"), (SHORT, "too few warm")):
        axes.barh(0, 0, color=colour, label=word)
    axes.set_ylim(-1, max(kept.slots + 1, *map(sum, held)) + 0.2)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.set_title(
        f"{shelf.strategy}: ${shelf.dollars:.2f}, {shelf.availability:.2%} available", loc="left", fontsize=8.5
    )


def _short(kept: Kept, shelf: Shelf) -> tuple[bool, ...]:
    return tuple(look >= kept.unjudged and warm < kept.slots for look, warm in enumerate(shelf.warm))


def _words(kept: Kept, shelf: Shelf) -> str:
    short = sum(_short(kept, shelf)) * kept.gap
    spots, on_demand = sum(shelf.interruptible) * kept.gap, sum(shelf.on_demand) * kept.gap
    return (
        f"{shelf.strategy}: {shelf.dollars:.2f} dollars, {spots:.1f} slot hours interruptible, "
        f"{on_demand:.1f} on demand, {short:.2f} h with too few warm"
    )
