"""One span step by step, for a picture: each rule's instances, and how many were warm."""

from collections.abc import Mapping

from agent.lab.availability import availability_ticks
from agent.lab.availability.availability_ticks import Choice, Maker, Rule, Seen
from agent.lab.availability.span import Setting, Span
from agent.lab.engine import run_timeline


def kept_of(span: Span, setting: Setting, makers: Mapping[str, Maker]) -> run_timeline.Kept:
    """Return the picture of a span under each rule, without the last look, whose end no rule sees."""
    up = (span.capacity[:, :-1] > 0).tolist()
    return run_timeline.Kept(
        case=span.key,
        gap=span.step_hours,
        bands=tuple(run_timeline.Band(pool, tuple(is_up)) for pool, is_up in zip(span.pools, up, strict=True)),
        slots=setting.slots,
        unjudged=span.cold_steps,
        shelves=tuple(_shelf(name, maker, span, setting) for name, maker in makers.items()),
    )


class _RecordingRule:
    """A rule that records the end of each look except the last. Each look sees the end of the one before."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self.ends: list[Seen] = []

    def choose(self, seen: Seen) -> Choice:
        self.ends.append(seen)
        return self._rule.choose(seen)


def _shelf(name: str, maker: Maker, span: Span, setting: Setting) -> run_timeline.Shelf:
    recording = _RecordingRule(maker(span, setting))
    lived = availability_ticks.run(lambda *_: recording, span, setting)
    ends = recording.ends[1:]
    return run_timeline.Shelf(
        strategy=name,
        interruptible=tuple(sum(seen.held) for seen in ends),
        on_demand=tuple(seen.on_demand for seen in ends),
        warm=tuple(sum(seen.warm) + seen.on_demand_warm for seen in ends),
        dollars=lived.dollars,
        availability=lived.availability,
    )
