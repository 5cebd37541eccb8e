"""The problem `bids` on timed auctions: limit bidding by value against fixed rules, at several values of an hour."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property

from agent import strategy_files
from agent.decide.strategy import Tuned
from agent.domain import money
from agent.lab.bench.comparison import Score
from agent.lab.bids import running_day
from agent.lab.bids.auctions import auction_day, auction_rows, limit_rules
from agent.lab.bids.auctions.auction_day import AuctionDay, Setting
from agent.lab.bids.auctions.auction_market import fitting
from agent.lab.bids.bids_problem import MARKET, Seeded
from agent.markets import port

OPTIMUM = "spot_hindsight"
OURS = ("patient", "hedged")
SHARES = (0.5, 1.0, 2.0)
"""What an hour of work is worth, over the price of a reserved hour."""
HOUR = 3600.0


@dataclass(frozen=True)
class AuctionsProblem:
    """Days of each climate, one per seed; a cycle runs every `poll_seconds`. A table is of one climate, machine, share.

    Our strategies run unmodified, with `value_per_hour`. The fixed rules know no value.
    """

    climates: tuple[str, ...]
    seeds: tuple[int, ...]
    hours: float = 24.0
    poll_seconds: float = 60.0
    machines: tuple[str, ...] = tuple(auction_day.MACHINES)
    shares: tuple[float, ...] = SHARES

    name = "bids"
    baseline = "patient"
    optimum = OPTIMUM

    @cached_property
    def _tuned(self) -> dict[str, Tuned]:
        return strategy_files.load() | limit_rules.tuned()

    def cases(self) -> Sequence[Seeded]:
        """Return every day, the climates of one seed together."""
        return tuple(Seeded(climate, seed) for seed in self.seeds for climate in self.climates)

    def parts(self) -> "Sequence[AuctionsProblem]":
        """Return one problem for each climate, machine and value of an hour."""
        return [
            replace(self, climates=(climate,), machines=(machine,), shares=(share,))
            for climate in self.climates
            for machine in self.machines
            for share in self.shares
        ]

    def strategies(self) -> Sequence[str]:
        """Return ours, the fixed rules, and the reference."""
        return (*OURS, *limit_rules.RULES, OPTIMUM)

    def compared(self) -> Sequence[str]:
        """Return the figures whose differences get an interval."""
        return ("net $", "useful h")

    def rates(self) -> Mapping[str, tuple[str, str]]:
        """Return the rate of all dollars over all useful hours."""
        return {"$ / useful h": ("$", "useful h")}

    @property
    def value(self) -> float:
        """Dollars that an hour of work is worth."""
        return round(self.shares[0] * auction_day.reserved_cents(self.machines[0])) / 100.0

    def score(self, strategy: str, case: object) -> Score:
        """Return the cost of a day: the bill, and the value of each hour without useful work."""
        if not isinstance(case, Seeded):
            raise TypeError("bids runs seeds")
        if strategy == OPTIMUM:
            return Score(self._least(case), is_priced=True)
        worth = money.per_hour(str(self.value)) if strategy in OURS else None
        lived = _lived(self._setting(case, worth), strategy)
        paid = lived.split
        figures = {
            "net $": self.value * paid.useful_hours - paid.bill,
            "$": paid.bill,
            "useful h": paid.useful_hours,
            "lost $": paid.dollars["lost"],
            "loading $": paid.dollars["loading"],
            "losses": float(lived.losses),
            "bids": float(lived.leases),
        }
        cost = self.value * self.hours - figures["net $"]
        return Score(cost, is_late=paid.useful_hours <= 0, figures=figures, is_priced=True)

    def _setting(self, case: Seeded, worth: money.UsdPerHour | None) -> Setting:
        poll = timedelta(seconds=self.poll_seconds)
        return Setting(case.climate, case.seed, self.machines[0], worth, self.hours, poll)

    def _least(self, case: Seeded) -> float:
        return sum(min(price, self.value) * hours for price, hours in _spot_prices(self._setting(case, None)))

    def about(self) -> Mapping[str, object]:
        """Return the facts of the rehearsed market, including that it is rehearsed."""
        return {
            "market": f"{auction_rows.MARKET}, {MARKET}",
            "unit": "dollars of a day, each hour without useful work at its value; 'late' counts days without any work",
            "climate": ", ".join(self.climates),
            "machine": ", ".join(self.machines),
            "value": f"${self.value:.2f}/h, {self.shares[0]:g} of the reserved price",
            "seeds": f"{self.seeds[0]}-{self.seeds[-1]}",
            "hours": self.hours,
            "poll_seconds": self.poll_seconds,
            "baselines": [f"{name}: {rule.source}" for name, rule in limit_rules.RULES.items()],
            "bound": f"{OPTIMUM}: each hour at the lowest spot price without us, where that is below the value",
        }

    def digests(self) -> Mapping[str, str]:
        """Return the digests of our numbers."""
        return {name: self._tuned[name].digest for name in OURS}


@functools.lru_cache(maxsize=4096)
def _lived(setting: Setting, strategy: str) -> running_day.Lived:
    """Return a day's result. The days of a fixed rule are the same at every value."""
    return AuctionDay(setting, strategy, strategy_files.load() | limit_rules.tuned()).live()


@functools.lru_cache(maxsize=4096)
def _spot_prices(setting: Setting) -> tuple[tuple[float, float], ...]:
    """Return the lowest spot price of the day's pools, dollars, and for how many hours, from auction to auction."""
    world, course = setting.world, setting.course
    query = port.OfferQuery(course.work.requirements, course.work.disk_gb)
    pools, found = fitting(world, query), []
    step = auction_rows.AUCTION_SECONDS
    while (left := course.end.timestamp() - world.now) > 0:
        found.append((min(pool.spot_cents for pool in pools) / 100.0, min(step, left) / HOUR))
        world.advance_to(world.now + step)
    return tuple(found)
