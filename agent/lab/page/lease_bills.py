"""Every lease of a day as a line of a table, and each strategy's sums, equal to its row in the bench."""

from collections.abc import Iterable

from agent.lab.engine.run_timeline import Auction, Bidder, Leased
from agent.lab.page.html import Grid

TOGETHER = "together"
WORDS = (
    "lease",
    "host",
    "GPU",
    "tenure",
    "from h",
    "to h",
    "bid $/h",
    "lowest that runs $/h",
    "ask $/h",
    "interrupted",
)


def table(auction: Auction) -> Grid:
    """Return the table: dollars to a hundredth of a cent, hours since the day began."""
    rows: list[tuple[str, ...]] = []
    sums = []
    for bidder in auction.bidders:
        rows += _leases(auction, bidder)
        sums.append(len(rows))
        rows.append(_together(auction, bidder))
    kinds = [f"{kind} $" for kind in auction.kinds]
    heading = ("strategy", *WORDS, "useful h", "useful DLPerf-h", *kinds, "$")
    return Grid(f"Every lease of {auction.case}", heading, 1 + len(WORDS), tuple(rows), tuple(sums))


def _leases(auction: Auction, bidder: Bidder) -> Iterable[tuple[str, ...]]:
    for number, lease in enumerate(bidder.leases, 1):
        yield (bidder.strategy, str(number), *_about(lease), *_sums(auction, (lease,)))


def _together(auction: Auction, bidder: Bidder) -> tuple[str, ...]:
    lost = sum(len(lease.lost) for lease in bidder.leases)
    return (bidder.strategy, TOGETHER, *[""] * (len(WORDS) - 2), str(lost), *_sums(auction, bidder.leases))


def _about(lease: Leased) -> tuple[str, ...]:
    lowest = [quote.lowest for quote in lease.quotes]
    return (
        lease.host,
        lease.card,
        lease.tenure.value.replace("_", " "),
        f"{lease.start:.3f}",
        f"{lease.end:.3f}",
        _range([quote.bid for quote in lease.quotes]),
        _range([price for price in lowest if price is not None]) + (" or none" if None in lowest else ""),
        _range([quote.ask for quote in lease.quotes]),
        ", ".join(f"{cause.replace('_', ' ')} at {hour:.3f} h" for hour, cause in lease.lost),
    )


def _range(prices: list[float]) -> str:
    if not prices:
        return ""
    low, high = min(prices), max(prices)
    return f"{low:.4f}" if low == high else f"{low:.4f} to {high:.4f}"


def _sums(auction: Auction, leases: Iterable[Leased]) -> tuple[str, ...]:
    listed = list(leases)
    dollars = [sum(lease.dollars(kind) for lease in listed) for kind in auction.kinds]
    hours, work = sum(lease.hours("useful") for lease in listed), sum(lease.work for lease in listed)
    return (f"{hours:.3f}", f"{work:.2f}", *(f"{each:.4f}" for each in dollars), f"{sum(dollars):.4f}")
