"""The problem `availability`: days of every group of pools of a folder, under published rules and our own."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path

from agent.config.problems import ConfigError, Problem
from agent.lab import traces
from agent.lab.availability import baselines, bound, hedged, ticks
from agent.lab.availability.span import Setting, Span, cut
from agent.lab.availability.ticks import Maker
from agent.lab.bench import Case, Score

BOUND, BOUND_WHOLE = "optimum", "optimum_always"
WORTH = 50.0
"""What an hour with a slot too few costs `hedged`, in hours of a slot on demand."""
OURS: Mapping[str, float] = {"hedged": WORTH, "hedged_2": 2.0, "hedged_3": 3.0, "hedged_100": 100.0}
"""Ours by name, with that worth: SpotHedge's numbers are slots above, ours are dollars."""
RULES: Mapping[str, Maker] = {
    **baselines.RULES,
    **{name: partial(hedged.Hedged, worth=worth) for name, worth in OURS.items()},
}


@dataclass(frozen=True)
class AvailabilityProblem:
    """Spans of `hours` every `stride_hours` under one setting; the cost is dollars, late is who misses the target.

    `optimum` is the least cost at the target, `optimum_always` at 100 %; both are lower bounds, not plans.
    """

    folder: Path
    hours: float = 24.0
    stride_hours: float = 24.0
    setting: Setting = field(default_factory=Setting)

    name = "availability"
    baseline = "spothedge_1"
    optimum = BOUND

    @cached_property
    def _traces(self) -> tuple[traces.Trace, ...]:
        found = traces.folder(self.folder)
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

    def cases(self) -> Sequence[Span]:
        """Return every span of every group.

        Raises:
            ConfigError: a file is no trace, there is one pool only, or a price is not known.
        """
        return self._spans

    def strategies(self) -> Sequence[str]:
        """Return the published rules, ours and the bounds."""
        return (*RULES, BOUND, BOUND_WHOLE)

    def score(self, strategy: str, case: Case) -> Score:
        """Return what a span costs and for which share of it all slots were warm."""
        if not isinstance(case, Span):
            raise TypeError("availability runs spans")
        if strategy in {BOUND, BOUND_WHOLE}:
            share = self.setting.target if strategy == BOUND else 1.0
            dollars = bound.cost(case, self.setting, share)
            return Score(dollars, figures={"availability": share, "share": _share(dollars, case, self.setting)})
        lived = ticks.run(RULES[strategy], case, self.setting)
        figures = {
            "availability": lived.availability,
            "share": _share(lived.dollars, case, self.setting),
            "on_demand_hours": lived.on_demand_hours,
            "losses": float(lived.losses),
        }
        return Score(lived.dollars, is_late=lived.availability < self.setting.target, figures=figures)

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

    def digests(self) -> Mapping[str, str]:
        """Return nothing: published rules have no numbers of ours."""
        return {}


def _share(dollars: float, span: Span, setting: Setting) -> float:
    return dollars / (setting.slots * span.on_demand_price * span.judged_hours)
