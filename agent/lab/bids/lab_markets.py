"""The markets of the problem `bids`, by name; each vendor's auction in memory registers one record here.

An installed package registers its own in the entry-point group `gpubid.lab_markets`, as its adapter and its simulated
market do in theirs.
"""

import importlib.metadata
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agent.domain.work.workload import Workload
from agent.lab.bench.comparison import Problem
from agent.lab.bids.auctions.auctions_problem import AuctionsProblem
from agent.lab.bids.bids_problem import BidsProblem
from agent.lab.bids.valued_problem import ValuedProblem

GROUP = "gpubid.lab_markets"
OF_HOSTS = "vast"
"""The market of single hosts, where each renter pays its bid."""


@dataclass(frozen=True, slots=True)
class Days:
    """The days that are asked for: climates, seeds, the hours of each, seconds between two polls."""

    climates: tuple[str, ...]
    seeds: tuple[int, ...]
    hours: float = 24.0
    poll_seconds: float = 60.0
    work: Workload | None = None
    """A workload of the operator's own, or None for the bench's."""
    shares: tuple[float, ...] = ()
    """What an hour is worth, as shares of on-demand; without any, cost decides."""


@dataclass(frozen=True, slots=True)
class LabMarket:
    """The auction of a vendor in the lab."""

    name: str
    problem: Callable[[Days], Problem]
    """Returns the comparison of strategies there. Raises: ValueError, with what to write instead."""


def _vast(days: Days) -> Problem:
    if days.shares and days.work is not None:
        raise ValueError("--values: net value is compared on the bench's own workload; leave --workload out")
    if days.shares:
        return ValuedProblem(days.climates, days.seeds, days.shares, days.hours, days.poll_seconds)
    return BidsProblem(days.climates, days.seeds, days.hours, days.poll_seconds, work=days.work)


def _mithril(days: Days) -> Problem:
    if days.work is not None:
        raise ValueError("--workload: the auctions of mithril run the bench's own machines; leave it out")
    if days.shares:
        raise ValueError("--values: the auctions of mithril have their own values of an hour; leave it out")
    return AuctionsProblem(days.climates, days.seeds, days.hours, days.poll_seconds)


_OURS = {"vast": LabMarket("vast", _vast), "mithril": LabMarket("mithril", _mithril)}


def known() -> Mapping[str, LabMarket]:
    """Return all registered markets by name; no package replaces one of ours.

    Raises:
        ValueError: a package that brings one is broken.
    """
    entries = importlib.metadata.entry_points(group=GROUP)
    return _OURS | {entry.name: _loaded(entry) for entry in entries if entry.name not in _OURS}


def _loaded(entry: importlib.metadata.EntryPoint) -> LabMarket:
    try:
        record = entry.load()
    except Exception as error:
        sentence = f"{entry.value} cannot be imported ({type(error).__name__}); reinstall or remove its package"
        raise ValueError(sentence) from error
    if not isinstance(record, LabMarket) or record.name != entry.name:
        raise ValueError(f"{entry.value} is no lab market named {entry.name!r}; fix or remove its package")
    return record
