"""Every bid of the project with its machines, page by page, or nothing.

If no project is set, all projects of the key are listed, so that a kill by label needs no more than the key.

Machines are read before bids. A bid that is placed meanwhile then has no machine yet, as it was a moment earlier. In
the other order, its machine would be listed without its bid.
"""

import functools
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from agent.markets import market_errors, tolerant_rows
from agent.markets.mithril import client, parse, states

MOST_PAGES = 400
"""Pages after which a listing counts as endless: 40,000 bids."""
ENOUGH_LOOKS = 2
"""Listings that must show the end of a bid before no other status is believed."""
_Row = TypeVar("_Row", parse.Bid, parse.Machine)


class EndedBids:
    """The bids that listings have shown as ended, so that one wrong status revives none of them."""

    def __init__(self) -> None:
        self._looks: dict[str, int] = {}
        self._cancelled: set[str] = set()

    def cancelled(self, bid_fid: str) -> None:
        """Note that the market confirmed the end of a bid that we ordered, as much as two listings do."""
        self._cancelled.add(bid_fid)

    def look(self, listed: Iterable[parse.Bid]) -> None:
        """Count a listing. A bid without the time of its end has not ended."""
        before, bids = self._looks, tuple(listed)
        ended = [bid for bid in bids if tolerant_rows.moment(bid.deactivated_at) is not None]
        self._cancelled.intersection_update(bid.fid for bid in bids)
        self._looks = {bid.fid: before.get(bid.fid, 0) + (bid.status == states.TERMINATED) for bid in ended}

    def has(self, bid: parse.Bid, machine: parse.Machine | None) -> bool:
        """Return whether a bid has ended, whatever its status is now.

        Two listings or an order of ours showed its end, it has the time of that, and no machine of it may hold GPUs.
        """
        is_shown = bid.fid in self._cancelled or self._looks.get(bid.fid, 0) >= ENOUGH_LOOKS
        is_ended = is_shown and tolerant_rows.moment(bid.deactivated_at) is not None
        return is_ended and (machine is None or not _is_live(machine))


class Listed(msgspec.Struct, frozen=True):
    """The bids of a project, the oldest first, and the machines of each by the bid's id."""

    bids: tuple[parse.Bid, ...]
    machines: dict[str, list[parse.Machine]]


async def everything(endpoints: client.MithrilClient) -> Listed:
    """Return every bid, also those that have ended, with its machines.

    Raises:
        Malformed: a body is no page, a row is listed twice with a difference, the pages do not end, or a machine that
            may hold GPUs belongs to a bid that is not listed.
    """
    machines: list[parse.Machine] = []
    bids: list[parse.Bid] = []
    for project in await endpoints.projects():
        ask_machines = functools.partial(endpoints.machines, project, states.LISTED)
        machines += await _pages(ask_machines, parse.machines, "machines")
        bids += await _pages(functools.partial(endpoints.bids, project), parse.bids, "bids")
    by_bid = _by_bid(machines)
    known = {bid.fid for bid in bids}
    lost = [fid for fid, ones in by_bid.items() if fid not in known and any(_is_live(one) for one in ones)]
    if lost:
        raise market_errors.Malformed("mithril listed a machine without its bid; the listing is refused.")
    return Listed(tuple(bids), by_bid)


async def named(endpoints: client.MithrilClient, name: str) -> list[parse.Bid]:
    """Return the bids of exactly this name, to find an order whose answer was lost."""
    rows, _ = parse.bids(await endpoints.bids(await endpoints.project(), name=name))
    return [row for row in rows if row.name == name]


async def machines_of(endpoints: client.MithrilClient, bid: parse.Bid) -> list[parse.Machine]:
    """Return the machines of one bid. One page is enough, since a bid has one machine at a time."""
    project = bid.project or await endpoints.project()
    rows, _ = parse.machines(await endpoints.machines(project, states.LISTED, bid_fid=bid.fid))
    return _by_bid(rows).get(bid.fid, [])


def _by_bid(machines: Sequence[parse.Machine]) -> dict[str, list[parse.Machine]]:
    """Return the machines by their bid's id; one without a bid belongs to a reservation, which we never make."""
    found: dict[str, list[parse.Machine]] = {}
    for machine in machines:
        if machine.bid:
            found.setdefault(machine.bid, []).append(machine)
    return found


def _is_live(machine: parse.Machine) -> bool:
    return states.is_live(machine.status or "")


async def _pages(
    ask: Callable[[str], Awaitable[bytes]], read: Callable[[bytes], tuple[list[_Row], str]], what: str
) -> list[_Row]:
    found: dict[str, _Row] = {}
    mark, marks = "", set[str]()
    for _ in range(MOST_PAGES):
        rows, next_mark = read(await ask(mark))
        for row in rows:
            if found.setdefault(row.fid, row) != row:
                raise market_errors.Malformed(f"mithril listed one of the {what} twice, with a difference.")
        if not next_mark:
            return list(found.values())
        if next_mark in marks or not rows:
            raise market_errors.Malformed(f"mithril's listing of {what} repeats a cursor; it is refused.")
        marks.add(next_mark)
        mark = next_mark
    raise market_errors.Malformed(f"mithril's listing of {what} has more than {MOST_PAGES} pages; it is refused.")
