"""The problem `bids`: rehearsed days of the auction, one climate at a time, under our strategies and other clients'."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from typing import Self

from agent import strategy_files
from agent.decide.strategy import Params, Tuned
from agent.domain.work.workload import Workload
from agent.lab.bench import comparison
from agent.lab.bench.comparison import Case, Score
from agent.lab.bids import bid_baselines, bids_report, day, hindsight, own_workload, waste
from agent.lab.engine import run_timeline
from agent.lab.traces import provenance
from agent.markets import port

OPTIMUM = "hindsight"
OURS = ("patient", "hedged")
MARKET = "semi-synthetic: rehearsed, from recorded and assumed figures (`gpubid simulate --about`)"
PER = 1000.0
"""The unit of useful DLPerf-hours for costs: about ten hours of an RTX 4090."""
PER_WORK = f"dollars per {PER:,.0f} useful DLPerf-hours"
PER_DAY = "dollars of a day, each hour without useful work at the workload's max_price"
WHOLE_DAY = (
    "a whole day's work at each moment's cheapest host; whoever works only in cheap hours is judged by 'bound of so "
    "much work'"
)
CHEAP_HOURS = "work at each moment's cheapest host, where that costs less than an hour without work"
REFERENCE_DLPERF = 98.3
"""DLPerf of an RTX 4090, for judging a day without any work."""


@dataclass(frozen=True, slots=True)
class Seeded:
    """A day: its climate and its seed."""

    climate: str
    seed: int

    @property
    def key(self) -> str:
        """Climate and seed."""
        return f"{self.climate}/{self.seed}"

    @property
    def cluster(self) -> str:
        """The seed: the same hosts in every climate."""
        return f"{self.seed}"


@dataclass(frozen=True)
class BidsProblem:
    """Days of each climate, one per seed; a cycle runs every `poll_seconds`.

    `numbers` replace a strategy's own. `work` is the operator's workload; without it the bench's own runs.
    """

    climates: tuple[str, ...]
    seeds: tuple[int, ...]
    hours: float = 24.0
    poll_seconds: float = 60.0
    numbers: Mapping[str, Params] = field(default_factory=dict)
    work: Workload | None = None

    name = "bids"
    baseline = "floor_relaunch"
    optimum = OPTIMUM

    @cached_property
    def _tuned(self) -> dict[str, Tuned]:
        shipped = strategy_files.load()
        ours = {name: self._numbered(shipped, name, params) for name, params in self.numbers.items()}
        return shipped | ours | bid_baselines.tuned()

    def _numbered(self, shipped: Mapping[str, Tuned], name: str, params: Params) -> Tuned:
        of = next(each for each in OURS if type(shipped[each].params) is type(params))
        return replace(shipped[of], name=name, params=params, digest=strategy_files.digest(of, params))

    @property
    def _ours(self) -> tuple[str, ...]:
        return (*OURS, *comparison.own(self.numbers, OURS))

    def cases(self) -> Sequence[Seeded]:
        """Return every day, the climates of one seed together, so that they are held out together."""
        return tuple(Seeded(climate, seed) for seed in self.seeds for climate in self.climates)

    def parts(self) -> "Sequence[BidsProblem]":
        """Return one problem for each climate, because the best in one may be the worst in another."""
        return [replace(self, climates=(climate,)) for climate in self.climates]

    def strategies(self) -> Sequence[str]:
        """Return ours, the baselines, and the bound."""
        return (*self._ours, *bid_baselines.RULES, OPTIMUM)

    def params(self, strategy: str) -> Params | None:
        """Return the numbers that ours run on, or None for a baseline."""
        return self._tuned[strategy].params if strategy in self._ours else None

    def with_params(self, strategy: str, params: Params) -> Self:
        """Return the same days with the strategy on these numbers."""
        return replace(self, numbers={**self.numbers, strategy: params})

    def score(self, strategy: str, case: Case) -> Score:
        """Return the result of a day: dollars per 1,000 useful DLPerf-hours, or the cost of an own workload's day.

        A day without useful work counts as late, at the most that the workload would pay for a reference card.
        """
        setting = self._setting(case)
        best = _bound(setting)
        if strategy == OPTIMUM:
            return Score(self._bound_of(best), is_late=best.work <= 0, is_priced=True)
        lived = day.Day(setting, strategy, self._tuned).live()
        paid, work = lived.split, lived.split.useful_dlperf_hours
        least = best.dollars(work)
        figures = {
            "$": paid.bill,
            "useful h": paid.useful_hours,
            **{f"{kind} $": paid.dollars[kind] for kind in paid.dollars},
            "on demand h": lived.on_demand_hours,
            "losses": float(lived.losses),
            "/ bound of so much work": paid.bill / least if least > 0 else 0.0,
        }
        cost = _per(paid.bill, work) if self.work is None else self._with_idle_hours(paid)
        return Score(cost, is_late=work <= 0, figures=figures, is_priced=True)

    def _bound_of(self, best: hindsight.Bound) -> float:
        if self.work is None:
            return _per(best.dollars(best.work), best.work)
        return best.least(self.hours, self._rehearsed.max_price.dollars)

    def _with_idle_hours(self, paid: waste.Split) -> float:
        """Return the bill with each hour without useful work at `max_price`.

        The bill per useful hour would depend on the few days with hardly any useful hours.
        """
        return paid.bill + self._rehearsed.max_price.dollars * max(self.hours - paid.useful_hours, 0.0)

    @cached_property
    def _rehearsed(self) -> Workload:
        return day.workload("") if self.work is None else own_workload.rehearsed(self.work)

    def timeline(self, strategies: Sequence[str], case: Case) -> run_timeline.Auction:
        """Return the picture of a day under each strategy, and for the bound the least cost of the same work."""
        setting = self._setting(case)
        return run_timeline.Auction(
            case=case.key,
            market=MARKET,
            hours=self.hours,
            per=PER,
            kinds=waste.KINDS,
            bidders=tuple(
                bids_report.bidder(name, day.Day(setting, name, self._tuned)) for name in strategies if name != OPTIMUM
            ),
            bound=bids_report.bound(_bound(setting)) if OPTIMUM in strategies else (),
        )

    def _setting(self, case: Case) -> day.Setting:
        if not isinstance(case, Seeded):
            raise TypeError("bids runs seeds")
        poll = timedelta(seconds=self.poll_seconds)
        return day.Setting(case.climate, case.seed, self.hours, poll, self._rehearsed)

    def about(self) -> Mapping[str, object]:
        """Return the facts of the rehearsed market, including that it is rehearsed."""
        return {
            "market": MARKET,
            "unit": (PER_WORK if self.work is None else PER_DAY) + "; 'late' counts days without useful work",
            "climate": ", ".join(self.climates),
            "seeds": f"{self.seeds[0]}-{self.seeds[-1]}",
            "hours": self.hours,
            "poll_seconds": self.poll_seconds,
            **({} if self.work is None else {"workload": own_workload.as_facts(self._rehearsed)}),
            "baselines": [f"{name}: {rule.source}" for name, rule in bid_baselines.RULES.items()],
            "bound": f"{OPTIMUM}: {WHOLE_DAY if self.work is None else CHEAP_HOURS}",
        }

    def fitted_on(self, strategy: str) -> tuple[str, ...]:
        """Return the seeds among these on which numbers of ours were chosen."""
        seen = sorted(provenance.LOOKED_AT.intersection(self.seeds)) if strategy in OURS else []
        return (f"{len(seen)} of these seeds",) if seen else ()

    def digests(self) -> Mapping[str, str]:
        """Return the digests of our numbers."""
        return {name: self._tuned[name].digest for name in self._ours}


@functools.lru_cache(maxsize=1024)
def _bound(setting: day.Setting) -> hindsight.Bound:
    """Return the bound of a day, computed once in a process for all strategies."""
    work = setting.work
    query = port.OfferQuery(work.requirements, work.disk_gb, gpu_models=work.requirements.gpu_models)
    return hindsight.bound(setting.world, query, setting.hours, setting.poll)


def _per(dollars: float, work: float) -> float:
    if work <= 0:
        return PER * day.workload(OPTIMUM).max_price.dollars / REFERENCE_DLPERF
    return PER * dollars / work
