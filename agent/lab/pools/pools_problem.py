"""The problem `deadline-pools`: one job with a hard deadline over several pools, under published rules and ours."""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Self

from agent import strategy_files
from agent.decide.deadline import hazards, regimes
from agent.decide.strategy import Params
from agent.lab.bench import blocks, comparison, split
from agent.lab.bench.comparison import Case, Score
from agent.lab.bench.split import Split, half_of_windows
from agent.lab.engine import run_timeline
from agent.lab.jobs import job_figures, job_lanes, offline_optimum, tick_engine, uniform_progress
from agent.lab.jobs.job_terms import JobCase, Terms
from agent.lab.pools import own_kernel, paid_probes, pools_jobs, rate_rule
from agent.lab.traces import provenance, trace_files
from strategies.hedged_rules.params import HedgedParams

OPTIMUM, STAY, OURS, RATE = "optimum", "stay", "hedged", "rate"
POLICIES: dict[str, Callable[[Terms, float], tick_engine.Policy]] = {
    "on_demand": lambda terms, _: uniform_progress.OnDemand(terms),
    "eager": lambda terms, _: uniform_progress.Uniform(terms),
    RATE: rate_rule.Rate,
    OURS: lambda terms, _: own_kernel.policy(terms),
}
"""The policies by name, each made from the terms of a case and the gigabytes of the checkpoint."""


@dataclass(frozen=True)
class PoolsProblem:
    """The windows of each set of pools, with each of the jobs. `numbers` replace a strategy's own.

    `first_regimes` of several pools and `first_hazards` of one are those of ours, if they were fitted elsewhere. With
    `pays_for_probes` ours and the rate rule see a pool only when they ask there, and pay for it.
    """

    folder: Path
    sets: tuple[tuple[str, ...], ...]
    jobs: tuple[pools_jobs.Job, ...]
    windows: pools_jobs.Windows
    numbers: Mapping[str, Params] = field(default_factory=dict)
    first_regimes: regimes.Regimes | None = None
    first_hazards: hazards.Hazards | None = None
    pays_for_probes: bool = False
    split: Split | None = None

    name = "deadline-pools"
    baseline = "eager"
    optimum = OPTIMUM

    @cached_property
    def _pools(self) -> tuple[tuple[trace_files.Trace, ...], ...]:
        return tuple(pools_jobs.chosen(self.folder, names) for names in self.sets)

    @cached_property
    def _cases(self) -> tuple[JobCase, ...]:
        length = blocks.hours_of((job.work, job.allowed) for job in self.jobs)
        found = [
            case
            for pools in self._pools
            for job in self.jobs
            for case in pools_jobs.cases(pools, job, self.windows, length)
        ]
        return half_of_windows(found, self.split)

    def cases(self) -> Sequence[JobCase]:
        """Return every window of every set with every job."""
        return self._cases

    def strategies(self) -> Sequence[str]:
        """Return the published rules, ours, and the bound."""
        rules = [name for name in POLICIES if name != "on_demand"]
        return ("on_demand", STAY, *rules, *comparison.own(self.numbers, (OURS,)), OPTIMUM)

    def params(self, strategy: str) -> Params | None:
        """Return the numbers that ours runs on, or None for a published rule."""
        return self.numbers.get(strategy, HedgedParams() if strategy == OURS else None)

    def with_params(self, strategy: str, params: Params) -> Self:
        """Return the same windows with the strategy on these numbers."""
        other = copy.copy(self)  # keep the traces that were read
        object.__setattr__(other, "numbers", {**self.numbers, strategy: params})
        return other

    def tenths(self) -> Mapping[str, str]:
        """Return the figure below which a tenth of the runs are."""
        return job_figures.TENTHS

    def _policy(self, strategy: str, terms: Terms) -> tick_engine.Policy:
        params = self.params(strategy)
        if isinstance(params, HedgedParams):
            known, alone = self.first_regimes or regimes.SHIPPED, self.first_hazards or hazards.SHIPPED
            return own_kernel.policy(terms, known, alone, params.weighing, pays_for_probes=self.pays_for_probes)
        return POLICIES[strategy](terms, self.jobs[0].gigabytes)

    def score(self, strategy: str, case: Case) -> Score:
        """Return the cost of a case under a strategy."""
        if not isinstance(case, JobCase):
            raise TypeError("deadline-pools runs windows of pools")
        if strategy == OPTIMUM:
            return self._bound(case)
        if strategy == STAY:
            runs = [tick_engine.play(case, policy) for policy in uniform_progress.alone(case.terms)]
            return _score(min(runs, key=lambda run: (run.is_late(case.terms), run.cost)), case)
        policy = self._policy(strategy, case.terms)
        if not self.pays_for_probes or strategy not in {OURS, RATE}:
            return _score(tick_engine.play(case, policy), case)
        paying = paid_probes.PaidProbes(policy)
        score = _score(tick_engine.play(case, paying), case)
        net = score.figures["net $"] - paying.dollars
        figures = {**score.figures, "net $": net, "probes $": paying.dollars}
        return replace(score, cost=score.cost + paying.dollars, figures=figures)

    @staticmethod
    def _bound(case: JobCase) -> Score:
        """Return the least cost, with the figures of a run that has it."""
        plan = offline_optimum.choices(case)
        if plan is None:
            return Score(math.inf)
        return _score(tick_engine.play(case, tick_engine.Planned(plan)), case)

    def timeline(self, strategies: Sequence[str], case: Case) -> run_timeline.Timeline:
        """Return the picture of a run. The bound has only costs, and `stay` is many runs."""
        if not isinstance(case, JobCase):
            raise TypeError("deadline-pools runs windows of pools")
        named = [name for name in strategies if name in POLICIES or self.params(name) is not None]
        lanes = tuple(job_lanes.lane(name, case, self._policy(name, case.terms)) for name in named)
        return job_lanes.timeline(case, case.terms.ticks, lanes)

    def about(self) -> Mapping[str, object]:
        """Return the data's name and span, and the settings."""
        traces = [trace for pools in self._pools for trace in pools]
        return {
            "traces": self.folder.name,
            "span": [min(each.start for each in traces).isoformat(), max(each.end for each in traces).isoformat()],
            "sets": ["+".join(trace.pool for trace in pools) for pools in self._pools],
            "market": "recorded availability of clouds; not a bid market",
            "looks": "paid, where a request is granted" if self.pays_for_probes else "all pools in every tick, free",
            "rate": "our reading of SkyNomad's rule",
            "stay": "Uniform Progress in the one pool that turned out cheapest for the run",
            **split.about(self.split),
            "net_value": job_figures.NOTE,
            "job_hours": sorted({job.work for job in self.jobs}),
            "deadline_hours": sorted({job.allowed for job in self.jobs}),
            "overhead_hours": sorted({job.overhead for job in self.jobs}),
            "instances": self.jobs[0].instances,
            "checkpoint_gb": self.jobs[0].gigabytes,
            "egress_price": self.jobs[0].egress_price,
            "window_hours": self.windows.hours,
            "stride_hours": self.windows.stride_hours,
            "spot_price": self.windows.spot_price,
            "on_demand_price": self.windows.on_demand_price,
        }

    def fitted_on(self, strategy: str) -> tuple[str, ...]:
        """Return the records among these traces on which the regimes of ours were fitted."""
        traces = [trace for pools in self._pools for trace in pools]
        is_shipped = strategy == OURS and self.first_regimes is None
        return provenance.among(provenance.REGIMES, traces) if is_shipped else ()

    def digests(self) -> Mapping[str, str]:
        """Return the digest of the numbers of ours."""
        numbers = {name: self.params(name) for name in (OURS, *self.numbers)}
        return {name: strategy_files.digest(OURS, params) for name, params in numbers.items() if params is not None}


def _score(run: tick_engine.Run, case: JobCase) -> Score:
    return Score(run.cost, run.is_late(case.terms), {**job_figures.of(run, case), "egress $": run.egress})
