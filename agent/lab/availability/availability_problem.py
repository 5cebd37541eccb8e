"""The problem `availability`: days of every group of pools of a folder, under published rules and our own."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Self

from agent import tuning
from agent.config.problems import ConfigError, Problem
from agent.decide.strategy import Params
from agent.lab.availability import (
    availability_baselines,
    availability_report,
    availability_ticks,
    bound,
    equal_availability,
    own_rule,
)
from agent.lab.availability.availability_ticks import Maker
from agent.lab.availability.span import Setting, Span, cut
from agent.lab.bench import comparison
from agent.lab.bench.comparison import Case, NotComparable, Score
from agent.lab.engine import run_timeline
from agent.lab.traces import provenance, trace_files
from strategies.hedged_rules.params import HedgedParams

BOUND, BOUND_WHOLE = "optimum", "optimum_always"
OURS: Mapping[str, float | None] = {
    "hedged": None,
    "hedged_0.1": 0.1,
    "hedged_1": 1.0,
    "hedged_4": 4.0,
    "hedged_8": 8.0,
    "hedged_12": 12.0,
    "hedged_16": 16.0,
    "hedged_20": 20.0,
    "hedged_32": 32.0,
    "hedged_64": 64.0,
}
"""Our dials by name: the worth of an hour with one slot too few, in hours of all slots on demand; None as shipped.

SpotHedge's numbers are slots above, ours are dollars: `MATCHED` compares them at like availability.
"""
MATCHED = {f"hedged_as_{rule}": rule for rule in availability_baselines.RULES if rule != "on_demand"}
"""Ours at the availability of a published rule, with a dial chosen on other days; on-demand is always available."""
AT_TARGET = "hedged_at_target"
"""Ours at the cheapest dial that reached the target on other days, as an operator would configure it."""
MOST_LANES = 6
SHOWN = ("round_robin", "spothedge_0", "spothedge_1", "hedged_1", "hedged")
"""The most strategies in the picture of a span."""


@dataclass(frozen=True)
class AvailabilityProblem:
    """Spans of `hours` every `stride_hours` under one setting; the cost is dollars, a span below the target is late.

    `numbers` replace a strategy's own. `optimum` is the least cost at the target, `optimum_always` at 100 %; both are
    lower bounds, not plans.
    """

    folder: Path
    hours: float = 24.0
    stride_hours: float = 24.0
    setting: Setting = field(default_factory=Setting)
    numbers: Mapping[str, Params] = field(default_factory=dict)

    name = "availability"
    baseline = "spothedge_1"
    optimum = BOUND

    @cached_property
    def _traces(self) -> tuple[trace_files.Trace, ...]:
        found = trace_files.folder(self.folder)
        if len(found) < 2:  # noqa: PLR2004 - a spread needs two
            sentence = "holds one pool; spreading needs two at least"
            raise ConfigError([Problem(str(self.folder), 1, "folder", "one_pool", sentence)])
        return found

    @cached_property
    def _spans(self) -> tuple[Span, ...]:
        spans = tuple(cut(self._traces, self.hours, self.stride_hours, self.setting))
        for each in spans:
            if not each.has_prices():
                sentence = "holds ticks without an interruptible price; name --spot-price"
                raise ConfigError([Problem(str(self.folder), 1, each.group, "no_price", sentence)])
        return spans

    def params(self, strategy: str) -> Params | None:
        """Return the numbers that one of ours runs on, or None for a published rule."""
        if strategy not in OURS:
            return self.numbers.get(strategy)
        params, worth = self.numbers.get(strategy, HedgedParams()), OURS[strategy]
        is_given = strategy in self.numbers or worth is None
        return params if is_given else params.model_copy(update={"short_worth": worth})

    def with_params(self, strategy: str, params: Params) -> Self:
        """Return the same spans with the strategy on these numbers."""
        other = copy.copy(self)  # keep the traces that were read
        object.__setattr__(other, "numbers", {**self.numbers, strategy: params})
        return other

    def _maker(self, strategy: str) -> Maker:
        params = self.params(strategy)
        if isinstance(params, HedgedParams):
            gain = params.return_gain
            return partial(own_rule.Hedged, worth=params.short_hours, spare_slots=params.spare_slots, least_gain=gain)
        return availability_baselines.RULES[strategy]

    def cases(self) -> Sequence[Span]:
        """Return every span of every group.

        Raises:
            ConfigError: a file is no trace, there is one pool only, or a price is not known.
        """
        return self._spans

    def strategies(self) -> Sequence[str]:
        """Return the published rules, ours, ours matched to each of them if there are other days, and the bounds."""
        matches = (*MATCHED, AT_TARGET) if all(equal_availability.others(self._spans, self.hours)) else ()
        return (*availability_baselines.RULES, *OURS, *comparison.own(self.numbers, OURS), *matches, BOUND, BOUND_WHOLE)

    def rival(self, strategy: str) -> str | None:
        """Return the published rule that a strategy is matched to; for one matched to the target, the baseline."""
        return self.baseline if strategy == AT_TARGET else MATCHED.get(strategy)

    def made_of(self, strategy: str) -> Sequence[str]:
        """Return our dials."""
        return () if self.rival(strategy) is None else tuple(OURS)

    def matched(self, strategy: str, scored: Mapping[str, Sequence[Score]]) -> Sequence[Score]:
        """Return the scores of every span at the availability of the strategy's matched rule, or at the target."""
        dials, target = {name: scored[name] for name in OURS}, self.setting.target
        if strategy == AT_TARGET:
            return equal_availability.at_target(
                self._spans, self.hours, dials, self._worths(), scored[self.baseline], target
            )
        return equal_availability.scores(self._spans, self.hours, dials, scored[MATCHED[strategy]], target)

    def _worths(self) -> dict[str, float]:
        found = {name: self.params(name) for name in OURS}
        return {name: params.short_hours for name, params in found.items() if isinstance(params, HedgedParams)}

    def score(self, strategy: str, case: Case) -> Score:
        """Return the cost of a span, and the share of it with all slots warm.

        Raises:
            NotComparable: the strategy is composed of others over all spans.
        """
        if not isinstance(case, Span):
            raise TypeError("availability runs spans")
        if self.rival(strategy) is not None:
            raise NotComparable(
                "matched", f"{strategy} is composed of other days' runs; compare it with gpubid lab bench"
            )
        if strategy in {BOUND, BOUND_WHOLE}:
            share = self.setting.target if strategy == BOUND else 1.0
            dollars = bound.cost(case, self.setting, share)
            return Score(dollars, figures={"availability": share, "share": _share(dollars, case, self.setting)})
        lived = availability_ticks.run(self._maker(strategy), case, self.setting)
        figures = {
            "availability": lived.availability,
            "share": _share(lived.dollars, case, self.setting),
            "on_demand_hours": lived.on_demand_hours,
            "losses": float(lived.losses),
        }
        return Score(lived.dollars, is_late=lived.availability < self.setting.target, figures=figures)

    def timeline(self, strategies: Sequence[str], case: Case) -> run_timeline.Kept:
        """Return the picture of a span under those of the strategies that are rules, the first few of them."""
        if not isinstance(case, Span):
            raise TypeError("availability runs spans")
        rules = [name for name in strategies if name in availability_baselines.RULES or self.params(name) is not None]
        chosen = rules if len(rules) <= MOST_LANES else [name for name in SHOWN if name in rules] or rules[:MOST_LANES]
        return availability_report.kept_of(case, self.setting, {name: self._maker(name) for name in chosen})

    def about(self) -> Mapping[str, object]:
        """Return the data's name and span, and the settings."""
        found = self._traces
        return {
            "traces": self.folder.name,
            "span": [min(each.start for each in found).isoformat(), max(each.end for each in found).isoformat()],
            "pools": [each.pool for each in found],
            "groups": sorted({each.group for each in self._spans}),
            "market": "recorded availability of a cloud; not a bid market",
            "late": "days below the target availability",
            "share": "cost as a share of holding all slots on demand",
            **asdict(self.setting),
            "window_hours": self.hours,
            "stride_hours": self.stride_hours,
        }

    def fitted_on(self, strategy: str) -> tuple[str, ...]:
        """Return the records among these traces on which numbers of ours were chosen."""
        is_ours = strategy in OURS or self.rival(strategy) is not None
        return provenance.among(provenance.WARM, self._traces) if is_ours else ()

    def digests(self) -> Mapping[str, str]:
        """Return the digest of the numbers of each of ours."""
        found = {name: self.params(name) for name in (*OURS, *self.numbers)}
        return {name: tuning.digest("hedged", params) for name, params in found.items() if params is not None}


def _share(dollars: float, span: Span, setting: Setting) -> float:
    return dollars / (setting.slots * span.on_demand_price * span.judged_hours)
