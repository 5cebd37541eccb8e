"""A day of bidding lease by lease: prices and our bid, the cost of each lease by kind, and work against dollars."""

import math
from collections.abc import Iterable, Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from agent.domain.market.tenure import Tenure
from agent.lab.engine.run_timeline import Auction, Bidder, Leased, Quote
from agent.lab.page import lease_bills, svg_sheet
from agent.lab.page.html import Plot

LANE, BELOW = 1.3, 3.0
"""Inches of a strategy's lane, and of the part below all lanes."""
PAID = {
    Tenure.INTERRUPTIBLE: (svg_sheet.SERIES[0], "our bid"),
    Tenure.ON_DEMAND: (svg_sheet.SERIES[1], "paid on demand"),
}
LOWEST, ASK = "lowest bid that runs", "the host's ask"
USEFUL = {Tenure.INTERRUPTIBLE: "useful, interruptible", Tenure.ON_DEMAND: "useful, on demand"}
REST = {
    "lost": (0.75, svg_sheet.SERIES[3], "work lost"),
    "idle": (0.6, svg_sheet.SERIES[2], "idle GPUs"),
    "loading": (0.5, svg_sheet.SERIES[4], "loading"),
    "paused": (0.3, svg_sheet.QUIET, "paused: disk alone"),
}
"""The other kinds of cost: height of the bar, colour, word. A lower bar means less use."""
STRIP = 0.26
"""The share of a lane that the bars take."""


def plot(auction: Auction, name: str) -> Plot:
    """Return the picture, with every lease in a table."""
    count = len(auction.bidders)
    with svg_sheet.sheet(name, svg_sheet.WIDE, 0.9 + LANE * count + BELOW) as sheet:
        *lanes, course = sheet.figure.subplots(count + 1, 1, height_ratios=(*[LANE] * count, BELOW), squeeze=False)[
            :, 0
        ]
        for axes, bidder in zip(lanes, auction.bidders, strict=True):
            _lane(axes, auction, bidder)
            axes.sharex(lanes[0])
            axes.label_outer()
        if lanes:
            lanes[-1].set_xlabel("hours since the day began")
            lanes[-1].tick_params(labelbottom=True)
            sheet.figure.legend(*lanes[0].get_legend_handles_labels(), loc="outside upper left", ncols=5)
        _course(course, auction)
        sheet.figure.legend(*course.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return Plot(
        title=f"One day of bidding, lease by lease: {auction.case}",
        says="; ".join(_words(auction, bidder) for bidder in auction.bidders),
        note=_note(auction),
        svg=sheet.svg,
        is_wide=True,
        table=lease_bills.table(auction),
    )


def _note(auction: Auction) -> str:
    bound = ", and no line can be above the broad one, which knew the whole day before." if auction.bound else "."
    return (
        f"Day {auction.case}, {auction.market}. Above, for each strategy and the host it holds: our bid, the lowest "
        "bid that would run there, and the ask ($/h; no dashed line where no bid would run). An upright line is a new "
        "lease (a relaunch, a move, or a fallback where it is paid on demand), a cross an interruption. The bars show "
        "the costs; gaps cost nothing. Below: dollars spent so far and the useful work they bought; steeper is "
        f"cheaper{bound}"
    )


def _lane(axes: Axes, auction: Auction, bidder: Bidder) -> None:
    low, high = _reach(bidder)
    height = (high - low) * STRIP / (1 - STRIP)
    floor = low - 1.15 * height
    for lease in bidder.leases:
        _prices(axes, lease)
        _bars(axes, lease, floor, height)
    axes.vlines(
        [lease.start for lease in bidder.leases], floor, high, color=svg_sheet.INK, linewidth=0.7, label="new lease"
    )
    lost = [hour for lease in bidder.leases for hour, _ in lease.lost]
    axes.plot(lost, [low] * len(lost), "x", color=svg_sheet.INK, markersize=5, label="interruption")
    _legend(axes)
    axes.set_xlim(0, auction.hours)
    axes.set_ylim(floor, high)
    ticks = [tick for tick in MaxNLocator(4).tick_values(low, high) if low <= tick <= high]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in np.round(ticks, 6)])
    axes.set_ylabel("$/h")
    axes.set_title(_title(auction, bidder), loc="left", fontsize=8.5)


def _reach(bidder: Bidder) -> tuple[float, float]:
    """Return the span of prices in the picture. Rivals' bids above all our bids and asks are cut off."""
    quotes = [quote for lease in bidder.leases for quote in lease.quotes]
    if not quotes:
        return 0.0, 1.0
    known = [price for each in quotes for price in (each.bid, each.ask)]
    least = min([*known, *(each.lowest for each in quotes if each.lowest is not None)])
    room = 0.08 * (max(known) - least) or 0.1 * max(known)
    return least - room, max(known) + room


def _prices(axes: Axes, lease: Leased) -> None:
    hours = [*(quote.hour for quote in lease.quotes), lease.end]
    colour, _ = PAID[lease.tenure]

    def line(values: Iterable[float], style: str, ink_of: str, width: float) -> None:
        steps = list(values)
        axes.step(hours, [*steps, *steps[-1:]], style, where="post", color=ink_of, linewidth=width)

    if not lease.quotes:
        return
    line((quote.bid for quote in lease.quotes), "-", colour, 2.2)
    line((quote.ask for quote in lease.quotes), ":", svg_sheet.QUIET, 1.4)
    # Last, or a bid at the floor would hide it.
    line((_lowest(quote) for quote in lease.quotes), "--", svg_sheet.INK, 1.0)


def _lowest(quote: Quote) -> float:
    return math.nan if quote.lowest is None else quote.lowest


def _bars(axes: Axes, lease: Leased, floor: float, height: float) -> None:
    for kind, tall, colour in (("useful", 1.0, PAID[lease.tenure][0]), *((kind, *REST[kind][:2]) for kind in REST)):
        axes.broken_barh(list(_spans(lease, kind)), (floor, tall * height), color=colour, linewidth=0)


def _spans(lease: Leased, kind: str) -> Iterator[tuple[float, float]]:
    """Yield the beginning and length of each span of a kind. A new price alone is no gap."""
    start = end = 0.0
    for part in lease.parts:
        if part.kind != kind:
            continue
        if part.start > end:
            yield start, end - start
            start = part.start
        end = part.end
    yield start, end - start


def _legend(axes: Axes) -> None:
    """Name every line and bar, even if this lane has none of it."""
    for colour, word in PAID.values():
        axes.plot([], [], "-", color=colour, linewidth=1.8, label=word)
    axes.plot([], [], "--", color=svg_sheet.INK, linewidth=1.0, label=LOWEST)
    axes.plot([], [], ":", color=svg_sheet.QUIET, linewidth=1.4, label=ASK)
    for tenure, word in USEFUL.items():
        axes.barh(0, 0, color=PAID[tenure][0], label=word)
    for _, colour, word in REST.values():
        axes.barh(0, 0, color=colour, label=word)


def _course(axes: Axes, auction: Auction) -> None:
    for place, bidder in enumerate(auction.bidders):
        dollars, work = course(bidder)
        colour, label = svg_sheet.series(place), f"{bidder.strategy} ({_merit(auction, bidder)})"
        axes.plot(dollars, work, linestyle=svg_sheet.STYLES[place % 8], color=colour, label=label)
        axes.plot(dollars[-1:], work[-1:], svg_sheet.MARKS[place % 8], color=colour, markersize=5)
    if auction.bound:
        axes.plot(
            *zip(*auction.bound, strict=True),
            color=svg_sheet.QUIET,
            linewidth=4,
            alpha=0.45,
            label="the most it could buy",
        )
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("dollars spent")
    axes.set_ylabel("useful DLPerf-hours")


def course(bidder: Bidder) -> tuple[np.ndarray, np.ndarray]:
    """Return the dollars spent and the DLPerf-hours done at each instant of a change."""
    parts = [part for lease in bidder.leases for part in lease.parts]
    hours = np.unique([0.0, *(hour for part in parts for hour in (part.start, part.end))])
    dollars, work = np.zeros_like(hours), np.zeros_like(hours)
    for part in parts:
        done = np.interp(hours, (part.start, part.end), (0.0, 1.0))
        dollars += done * part.dollars
        work += done * part.work
    return dollars, work


def _merit(auction: Auction, bidder: Bidder) -> str:
    return f"${auction.per * bidder.dollars / bidder.work:.2f}" if bidder.work > 0 else "no useful work"


def _title(auction: Auction, bidder: Bidder) -> str:
    lost = sum(len(lease.lost) for lease in bidder.leases)
    hours = sum(lease.hours("useful") for lease in bidder.leases)
    merit = f"{_merit(auction, bidder)} for {auction.per:,.0f} DLPerf-hours"
    return (
        f"{bidder.strategy}: ${bidder.dollars:.2f}, {hours:.1f} useful h, {merit}; {_count(bidder)}, {lost} interrupted"
    )


def _count(bidder: Bidder) -> str:
    count = "1 lease" if len(bidder.leases) == 1 else f"{len(bidder.leases)} leases"
    on_demand = sum(lease.tenure is Tenure.ON_DEMAND for lease in bidder.leases)
    return f"{count}, {on_demand} on demand" if on_demand else count


def _words(auction: Auction, bidder: Bidder) -> str:
    hours = {
        word: sum(lease.hours("useful") for lease in bidder.leases if lease.tenure is tenure)
        for tenure, word in USEFUL.items()
    }
    hours |= {word: sum(lease.hours(kind) for lease in bidder.leases) for kind, (_, _, word) in REST.items()}
    return _title(auction, bidder) + ", " + ", ".join(f"{value:.2f} h {word}" for word, value in hours.items())
