"""A span step by step under one rule: its cost, and for how many steps enough slots were warm.

Semantics, as in the simulator published with SkyServe: the rule says how many interruptible instances each pool shall
have and how many run on demand. A pool grants as many as it has; on-demand grants all. An instance costs its price from
its start on; a refused start costs nothing. A start is warm `cold_steps` steps later. When the number falls, the
youngest instances go first. The rule sees how the last step ended, and learns a pool's capacity only from its starts
there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from agent.lab.availability.span import Setting, Span


@dataclass(frozen=True, slots=True)
class Seen:
    """The sight of a rule before step `step`: per pool its wanted, present and warm instances.

    `prices` are of this step, $/h.
    """

    step: int
    wanted: Sequence[int]
    held: Sequence[int]
    warm: Sequence[int]
    on_demand: int
    on_demand_warm: int
    prices: Sequence[float]


@dataclass(frozen=True, slots=True)
class Choice:
    """How many instances each pool should have, and how many should run on demand."""

    spots: tuple[int, ...]
    on_demand: int = 0


class Rule(Protocol):
    """A rule that keeps slots warm. It may remember earlier sights."""

    def choose(self, seen: Seen) -> Choice:
        """Return the wanted instances of this step."""
        ...


Maker = Callable[[Span, Setting], Rule]


@dataclass(frozen=True, slots=True)
class Lived:
    """The result of a span: dollars, the share of steps with enough warm, instance hours, starts and losses."""

    dollars: float
    availability: float
    spot_hours: float
    on_demand_hours: float
    losses: int


class _Held:
    """The starts of one place's instances, oldest first."""

    __slots__ = ("starts",)

    def __init__(self) -> None:
        self.starts: list[int] = []

    def hold(self, count: int, step: int) -> None:
        if count > len(self.starts):
            self.starts.extend([step] * (count - len(self.starts)))
        else:
            del self.starts[count:]

    def warm(self, step: int, cold: int) -> int:
        return sum(start <= step - cold for start in self.starts)


def run(make: Maker, span: Span, setting: Setting, *, watch: Callable[[Choice], object] | None = None) -> Lived:
    """Return the result of a span under a rule; `watch` receives every choice."""
    rule = make(span, setting)
    capacity, prices = span.capacity.T.tolist(), span.prices.T.tolist()
    places, on_demand = [_Held() for _ in span.pools], _Held()
    wanted: Sequence[int] = (0,) * len(places)
    warm, on_demand_warm = [0] * len(places), 0
    spend, spot_steps, on_demand_steps, enough, losses = 0.0, 0, 0, 0, 0
    for step in range(span.steps):
        held_before = [len(place.starts) for place in places]
        seen = Seen(step, wanted, held_before, warm, len(on_demand.starts), on_demand_warm, prices[step])
        choice = rule.choose(seen)
        if watch is not None:
            watch(choice)
        wanted = choice.spots
        for place, want, has, before in zip(places, wanted, capacity[step], held_before, strict=True):
            losses += max(min(want, before) - has, 0)
            place.hold(min(want, has), step)
        on_demand.hold(choice.on_demand, step)
        warm = [place.warm(step, span.cold_steps) for place in places]
        on_demand_warm = on_demand.warm(step, span.cold_steps)
        if step >= span.cold_steps:
            held = [len(place.starts) for place in places]
            spend += sum(count * price for count, price in zip(held, prices[step], strict=True))
            spot_steps += sum(held)
            on_demand_steps += choice.on_demand
            enough += sum(warm) + on_demand_warm >= setting.slots
    hours = span.step_hours
    dollars = (spend + on_demand_steps * span.on_demand_price) * hours
    judged = max(span.steps - span.cold_steps, 1)
    return Lived(dollars, enough / judged, spot_steps * hours, on_demand_steps * hours, losses)
