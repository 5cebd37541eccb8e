"""The problem `availability`: days of every group of pools of a folder, under published rules and our own."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Self

from agent import strategy_files
from agent.config.problems import ConfigError, Problem
from agent.decide.service import availability_dial
from agent.decide.service.availability_dial import Law
from agent.decide.strategy import Params
from agent.domain.warm_time import WarmTime
from agent.lab.availability import (
    availability_baselines,
    availability_report,
    availability_ticks,
    bound,
    equal_availability,
    live_dial,
    own_rule,
)
from agent.lab.availability.availability_ticks import Lived, Maker
from agent.lab.availability.live_dial import LiveDial
from agent.lab.availability.span import Setting, Span, cut
from agent.lab.bench import comparison, split
from agent.lab.bench.comparison import Case, NotComparable, Score
from agent.lab.bench.split import Split, half
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
LIVE: Mapping[str, float | None] = {
    "hedged_live": None,
    "hedged_live_0.95": 0.95,
    "hedged_live_0.995": 0.995,
    "hedged_live_0.999": 0.999,
}
"""Ours with a live dial, by its target: the setting's for None. The dial sees what a daemon sees, and no other day."""
MATCHED = {f"hedged_as_{rule}": rule for rule in availability_baselines.RULES if rule != "on_demand"}
"""Ours at the availability of a published rule, with a dial chosen on other days; on-demand is always available."""
AT_TARGET = "hedged_at_target"
"""Ours at the cheapest dial that reached the target on other days, as an operator would configure it."""
MOST_LANES = 6
_ROUNDING = 1e-6
SHOWN = ("round_robin", "spothedge_0", "spothedge_1", "hedged_1", "hedged")
"""The most strategies in the picture of a span."""


@dataclass(frozen=True)
class AvailabilityProblem:
    """Spans of `hours` every `stride_hours` under one setting; the cost is dollars, a span below the target is late.

    `numbers` replace a strategy's own. `optimum` is the least cost at the target, `optimum_always` at 100 %; both are
    lower bounds, not plans. `law` is that of the live dials; `group` leaves one group of pools.
    """

    folder: Path
    hours: float = 24.0
    stride_hours: float = 24.0
    setting: Setting = field(default_factory=Setting)
    numbers: Mapping[str, Params] = field(default_factory=dict)
    law: Law = availability_dial.LAW
    group: str | None = None
    split: Split | None = None

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
        return half(self._all_spans, self.split, lambda each: (each.begins_hours, each.begins_hours + self.hours))

    @cached_property
    def _all_spans(self) -> tuple[Span, ...]:
        cuts = cut(self._traces, self.hours, self.stride_hours, self.setting)
        spans = tuple(each for each in cuts if self.group in {None, each.group})
        for each in spans:
            if not each.has_prices():
                sentence = "holds ticks without an interruptible price; name --spot-price"
                raise ConfigError([Problem(str(self.folder), 1, each.group, "no_price", sentence)])
        return spans

    def params(self, strategy: str) -> Params | None:
        """Return the numbers that one of ours runs on, or None for a published rule."""
        if strategy in LIVE and strategy not in self.numbers:
            return HedgedParams(keep_warm=True, target=LIVE[strategy] or self.setting.target)
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
        if isinstance(params, HedgedParams) and params.target:
            return lambda span, setting: self._ruled(params, self._dial(params, span))(span, setting)
        if isinstance(params, HedgedParams):
            return self._ruled(params, params.short_hours)
        return availability_baselines.RULES[strategy]

    @cached_property
    def _lived(self) -> dict[tuple[HedgedParams, str], tuple[Lived, WarmTime]]:
        """Days that a live dial has lived, so that the days after them need not live them again."""
        return {}

    def _live(self, params: HedgedParams, span: Span) -> tuple[Lived, WarmTime]:
        """Return a day under a live dial, with the record after it; the days of its group before it come first."""
        known = self._lived.get((params, span.key))
        if known is None:
            dial = self._dial(params, span)
            rule = self._ruled(params, dial)
            known = availability_ticks.run(rule, span, self.setting), dial.time
            self._lived[params, span.key] = known
        return known

    def _dial(self, params: HedgedParams, span: Span) -> LiveDial:
        before = self._day_before(span)
        time = None if before is None else self._live(params, before)[1]
        return live_dial.begun(span, self.setting, params.target, self.law, time)

    def _ruled(self, params: HedgedParams, worth: float | LiveDial) -> Maker:
        gain = params.return_gain
        return partial(own_rule.Hedged, worth=worth, spare_slots=params.spare_slots, least_gain=gain)

    def _day_before(self, span: Span) -> Span | None:
        """Return the last span of the group that ends before this one begins."""
        ended = [
            each
            for each in self._all_spans
            if each.group == span.group and each.begins_hours + self.hours <= span.begins_hours + _ROUNDING
        ]
        return max(ended, key=lambda each: each.begins_hours, default=None)

    def cases(self) -> Sequence[Span]:
        """Return every span of every group.

        Raises:
            ConfigError: a file is no trace, there is one pool only, or a price is not known.
        """
        return self._spans

    def strategies(self) -> Sequence[str]:
        """Return the published rules, ours, ours matched to each of them if there are other days, and the bounds."""
        matches = (*MATCHED, AT_TARGET) if all(equal_availability.others(self._spans, self.hours)) else ()
        own = comparison.own(self.numbers, {**OURS, **LIVE})
        return (*availability_baselines.RULES, *OURS, *LIVE, *own, *matches, BOUND, BOUND_WHOLE)

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
        params = self.params(strategy)
        if isinstance(params, HedgedParams) and params.target:
            lived = self._live(params, case)[0]
        else:
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
            **split.about(self.split),
            "late": "days below the target availability",
            "share": "cost as a share of holding all slots on demand",
            **asdict(self.setting),
            "window_hours": self.hours,
            "stride_hours": self.stride_hours,
        }

    def fitted_on(self, strategy: str) -> tuple[str, ...]:
        """Return the records among these traces on which numbers of ours were chosen."""
        is_ours = strategy in OURS or strategy in LIVE or self.rival(strategy) is not None
        return provenance.among(provenance.WARM, self._traces) if is_ours else ()

    def digests(self) -> Mapping[str, str]:
        """Return the digest of the numbers of each of ours."""
        found = {name: self.params(name) for name in (*OURS, *LIVE, *self.numbers)}
        return {name: strategy_files.digest("hedged", params) for name, params in found.items() if params is not None}


def _share(dollars: float, span: Span, setting: Setting) -> float:
    return dollars / (setting.slots * span.on_demand_price * span.judged_hours)
