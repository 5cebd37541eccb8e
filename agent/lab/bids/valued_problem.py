"""The problem `bids` by net value: rehearsed days at several values of an hour, each a share of that day's on-demand.

An hour of work is worth a share of what it costs on demand on the same day: the dollars of the rule `on_demand` over
its useful work. Work counts in hours at the speed of what that rule rented. Our strategies run with `value = "SHARE x
on_demand"` and see the present asks alone; the fixed rules know no value.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property

from agent import strategy_files
from agent.decide.strategy import Tuned
from agent.lab.bench.comparison import Case, Score
from agent.lab.bids import bid_baselines, day, hindsight, running_day
from agent.lab.bids.bids_problem import MARKET, OPTIMUM, OURS, Seeded
from agent.lab.traces import provenance
from agent.markets import port

ON_DEMAND = "on_demand"


@dataclass(frozen=True)
class ValuedProblem:
    """Days of each climate, one per seed; a cycle runs every `poll_seconds`. A table is of one climate and share."""

    climates: tuple[str, ...]
    seeds: tuple[int, ...]
    shares: tuple[float, ...]
    hours: float = 24.0
    poll_seconds: float = 60.0

    name = "bids"
    baseline = "patient"
    optimum = OPTIMUM

    def cases(self) -> Sequence[Seeded]:
        """Return every day, the climates of one seed together."""
        return tuple(Seeded(climate, seed) for seed in self.seeds for climate in self.climates)

    def parts(self) -> "Sequence[ValuedProblem]":
        """Return one problem for each climate and value of an hour."""
        return [
            replace(self, climates=(climate,), shares=(share,)) for climate in self.climates for share in self.shares
        ]

    def strategies(self) -> Sequence[str]:
        """Return ours, the fixed rules, and the bound."""
        return (*OURS, *bid_baselines.RULES, OPTIMUM)

    def compared(self) -> Sequence[str]:
        """Return the figures whose differences get an interval."""
        return ("net $", "useful h")

    def rates(self) -> Mapping[str, tuple[str, str]]:
        """Return the rate of all dollars over all useful hours."""
        return {"$ / useful h": ("$", "useful h")}

    def tenths(self) -> Mapping[str, str]:
        """Return the figure below which a tenth of the days are."""
        return {"useful h, 1 in 10 below": "useful h"}

    def score(self, strategy: str, case: Case) -> Score:
        """Return the cost of a day: the bill, and the value of each hour of work that was not done."""
        if not isinstance(case, Seeded):
            raise TypeError("bids runs seeds")
        share, plain = self.shares[0], self._setting(case, None)
        market = _lived(plain, ON_DEMAND).split
        per_hour = share * market.bill / market.useful_hours
        per_work = share * market.bill / market.useful_dlperf_hours
        if strategy == OPTIMUM:
            net = sum(max(per_work - span.price, 0.0) * span.work for span in _bound(plain).spans)
            return Score(per_hour * self.hours - net, is_priced=True)
        lived = _lived(self._setting(case, share) if strategy in OURS else plain, strategy)
        paid = lived.split
        net = per_work * paid.useful_dlperf_hours - paid.bill
        figures = {
            "net $": net,
            "$": paid.bill,
            "useful h": paid.useful_hours,
            "idle h": self.hours - paid.useful_hours,
            "net $, any card alike": per_hour * paid.useful_hours - paid.bill,
            "on demand h": lived.on_demand_hours,
            "losses": float(lived.losses),
            "starts": float(lived.leases),
        }
        cost = per_hour * self.hours - net
        return Score(cost, is_late=paid.useful_hours <= 0, figures=figures, is_priced=True)

    def _setting(self, case: Seeded, share: float | None) -> day.Setting:
        work = replace(day.workload(""), value_share=share)
        return day.Setting(case.climate, case.seed, self.hours, timedelta(seconds=self.poll_seconds), work)

    def about(self) -> Mapping[str, object]:
        """Return the facts of the rehearsed market, including that it is rehearsed."""
        return {
            "market": MARKET,
            "unit": "dollars of a day, with the value of each hour of work not done; 'late' counts days without work",
            "climate": ", ".join(self.climates),
            "value": f"{self.shares[0]:g} x on_demand of the same day",
            "seeds": f"{self.seeds[0]}-{self.seeds[-1]}",
            "hours": self.hours,
            "poll_seconds": self.poll_seconds,
            "baselines": [f"{name}: {rule.source}" for name, rule in bid_baselines.RULES.items()],
            "bound": f"{OPTIMUM}: work at each moment's cheapest host, where that costs less than it is worth",
        }

    def fitted_on(self, strategy: str) -> tuple[str, ...]:
        """Return the seeds among these on which numbers of ours were chosen."""
        seen = sorted(provenance.LOOKED_AT.intersection(self.seeds)) if strategy in OURS else []
        return (f"{len(seen)} of these seeds",) if seen else ()

    def digests(self) -> Mapping[str, str]:
        """Return the digests of our numbers."""
        return {name: self._shipped[name].digest for name in OURS}

    @cached_property
    def _shipped(self) -> Mapping[str, Tuned]:
        return strategy_files.load()


@functools.lru_cache(maxsize=4096)
def _lived(setting: day.Setting, strategy: str) -> running_day.Lived:
    """Return a day's result. The days of a fixed rule are the same at every value."""
    return day.Day(setting, strategy, strategy_files.load() | bid_baselines.tuned()).live()


@functools.lru_cache(maxsize=1024)
def _bound(setting: day.Setting) -> hindsight.Bound:
    work = setting.work
    query = port.OfferQuery(work.requirements, work.disk_gb, gpu_models=work.requirements.gpu_models)
    return hindsight.bound(setting.world, query, setting.hours, setting.poll)
