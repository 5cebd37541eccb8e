"""The problem `deadline`: windows of a folder of traces, each with every setting, under published rules and our own."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Self

from agent import strategy_files
from agent.decide.deadline import hazards
from agent.decide.strategy import Params
from agent.lab.bench import comparison, split
from agent.lab.bench.comparison import Case, Score
from agent.lab.bench.split import Split, half_of_windows
from agent.lab.deadline import (
    checks,
    deadline_baselines,
    deadline_folds,
    deadline_jobs,
    learning_rule,
    slack_rules,
)
from agent.lab.deadline.cross_fit import CrossFit
from agent.lab.deadline.one_pool import OnePool
from agent.lab.engine import run_timeline
from agent.lab.jobs import job_figures, job_lanes, offline_optimum, tick_engine, trace_windows
from agent.lab.jobs.job_terms import JobCase, Window
from agent.lab.traces import provenance, trace_files
from strategies.deadline import DeadlineParams

OPTIMUM = "optimum"
LEARNER = "deadline"
"""The names of our strategies."""
_RULES = (*deadline_baselines.PLAIN, *deadline_baselines.NUMBERED)
SHIPPED_FROM = "as shipped: fitted on AWS from 2022-10-26 and from 2023-02-15, 12 and 11 days; no proof on those days"
"""A note on the first hazards of `deadline`, unless they are fitted again; see `hazards.SHIPPED`."""


@dataclass(frozen=True)
class DeadlineProblem:
    """Windows of `hours` every `stride_hours`; each with all of `settings`. `numbers` replace a strategy's own.

    `first_hazards` are the learner's before it has seen anything, if they were fitted elsewhere.
    """

    folder: Path
    hours: float
    stride_hours: float
    settings: tuple[deadline_jobs.Setting, ...]
    prices: trace_windows.Prices = trace_windows.OWN
    numbers: Mapping[str, Params] = field(default_factory=dict)
    cross_fit: CrossFit = CrossFit.NONE
    first_hazards: hazards.Hazards | None = None
    split: Split | None = None

    name = "deadline"
    baseline = "levi"
    optimum = OPTIMUM

    @cached_property
    def _traces(self) -> tuple[trace_files.Trace, ...]:
        """Return the traces of the folder.

        Raises:
            ConfigError: a file is none, or a price is not known.
            NotComparable: a job or a stride does not fit.
        """
        checks.check_settings(self.settings, self.hours)
        found = trace_files.folder(self.folder)
        for trace in found:
            checks.check_trace(self.folder, trace, self.stride_hours, self.prices)
        return found

    @cached_property
    def _runs(self) -> tuple[JobCase, ...]:
        windows = [each for trace in self._traces for each in self._cut(trace)]
        for each in windows:
            # Fit here once, not in every process, so that an impossible fit is reported before anything runs.
            self._hazards(each)
        runs = [deadline_jobs.case(each, setting) for each in windows for setting in self.settings]
        return half_of_windows(runs, self.split)

    def _cut(self, trace: trace_files.Trace) -> Iterator[Window]:
        return deadline_jobs.windows(trace, self.hours, self.stride_hours, self.prices)

    def cases(self) -> Sequence[JobCase]:
        """Return every window with every setting."""
        return self._runs

    def strategies(self) -> Sequence[str]:
        """Return the published rules and the bound."""
        return (*_RULES, LEARNER, *comparison.own(self.numbers, (*_RULES, LEARNER)), OPTIMUM)

    def params(self, strategy: str) -> Params | None:
        """Return the numbers that a strategy runs on."""
        shipped = DeadlineParams() if strategy == LEARNER else deadline_baselines.NUMBERED.get(strategy)
        return self.numbers.get(strategy, shipped)

    def with_params(self, strategy: str, params: Params) -> Self:
        """Return the same windows with the strategy on these numbers."""
        other = copy.copy(self)  # keep the traces that were read
        object.__setattr__(other, "numbers", {**self.numbers, strategy: params})
        return other

    def score(self, strategy: str, case: Case) -> Score:
        """Return the cost of a case."""
        if not isinstance(case, JobCase):
            raise TypeError("deadline runs windows")
        if strategy == OPTIMUM:
            return Score(offline_optimum.cost(case))
        run = tick_engine.play(case, self._policy(strategy, case))
        return Score(run.cost, run.is_late(case.terms), job_figures.of(run, case))

    def tenths(self) -> Mapping[str, str]:
        """Return the figure below which a tenth of the runs are."""
        return job_figures.TENTHS

    def _policy(self, strategy: str, case: JobCase) -> tick_engine.Policy:
        params = self.params(strategy)
        if isinstance(params, DeadlineParams):
            learns = params.learn
            return OnePool(learning_rule.rule(self._hazards(case.window)) if learns else slack_rules.rule(params))
        return deadline_baselines.policy(strategy, params, case.terms)

    def _hazards(self, over: Window) -> hazards.Hazards:
        """Return the learner's first hazards over a window: given, as shipped, or fitted on the rest of the traces."""
        if self.first_hazards is not None:
            return self.first_hazards
        if self.cross_fit is CrossFit.NONE:
            return hazards.SHIPPED
        fold = deadline_folds.fold(over, self.cross_fit)
        if fold not in self._fitted:
            self._fitted[fold] = deadline_folds.fitted(self._traces, fold, self.cross_fit, self.hours)
        return self._fitted[fold]

    @cached_property
    def _fitted(self) -> dict[deadline_folds.Fold, hazards.Hazards]:
        return {}

    def timeline(self, strategies: Sequence[str], case: Case) -> run_timeline.Timeline:
        """Return the picture of a run."""
        if not isinstance(case, JobCase):
            raise TypeError("deadline runs windows")
        lanes = [
            job_lanes.bound(name, case) if name == OPTIMUM else job_lanes.lane(name, case, self._policy(name, case))
            for name in strategies
        ]
        ticks = -(-case.terms.deadline // case.terms.tick)
        return job_lanes.timeline(case, ticks, tuple(lane for lane in lanes if lane is not None))

    def about(self) -> Mapping[str, object]:
        """Return the data's name and span, and the settings."""
        found = self._traces
        span = [min(each.start for each in found).isoformat(), max(each.end for each in found).isoformat()]
        return {
            "traces": self.folder.name,
            "span": span,
            "pools": [each.pool for each in found],
            "market": "recorded availability of a cloud; not a bid market",
            "job_hours": sorted({setting.work / 3600 for setting in self.settings}),
            "deadline_hours": sorted({setting.allowed / 3600 for setting in self.settings}),
            "cross_fit": self.cross_fit.value,
            "hazards": self._hazards_note,
            "overhead_hours": sorted({setting.overhead / 3600 for setting in self.settings}),
            "window_hours": self.hours,
            "stride_hours": self.stride_hours,
            **split.about(self.split),
            "net_value": job_figures.NOTE,
            "spot_price": self.prices.spot,
            "on_demand_price": self.prices.on_demand,
        }

    @property
    def _hazards_note(self) -> str:
        if self.first_hazards is not None:
            return "fitted on other records"
        return SHIPPED_FROM if self.cross_fit is CrossFit.NONE else "fitted on the rest of these traces"

    def fitted_on(self, strategy: str) -> tuple[str, ...]:
        """Return the records among these traces on which the learner's shipped hazards were fitted."""
        params = self.params(strategy)
        learns = strategy == LEARNER and isinstance(params, DeadlineParams) and params.learn
        is_shipped = learns and self.cross_fit is CrossFit.NONE and self.first_hazards is None
        return provenance.among(provenance.HAZARDS, self._traces) if is_shipped else ()

    def digests(self) -> Mapping[str, str]:
        """Return the digest of the numbers of each strategy that has any."""
        found = {name: self.params(name) for name in self.strategies()}
        return {
            name: strategy_files.digest(_of(name, params), params)
            for name, params in found.items()
            if params is not None
        }


def _of(name: str, params: Params) -> str:
    """Return the strategy of these numbers, from which an own file of `deadline` gets its digest."""
    return LEARNER if isinstance(params, DeadlineParams) else name
