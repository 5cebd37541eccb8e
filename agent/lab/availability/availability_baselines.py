"""The published rules, written from their papers: all on demand, static spread, round robin, and SpotHedge.

Source: Mao and others, SkyServe: Serving AI Models across Regions and Clouds with Spot Instances, EuroSys'25 (arXiv
2411.01438) and the simulator published with it. Static spread and round robin are its comparisons.

SpotHedge keeps zones that preempted in a separate list. They come back when a start there succeeds, or all at once when
few are left. Of the other zones it takes the cheapest without a placement. It holds a constant number above the slots,
and runs on-demand for those that are not warm.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from agent.lab.availability.availability_ticks import Choice, Maker, Rule, Seen
from agent.lab.availability.span import Setting, Span

T = TypeVar("T")
FEW_ZONES = 4
"""With this many zones all are active again when one is left; with fewer only when none is (published simulator)."""


@dataclass(frozen=True, slots=True)
class OnDemand:
    """All slots on demand."""

    slots: int

    def choose(self, seen: Seen) -> Choice:
        """Return all slots on demand."""
        return Choice((0,) * len(seen.held), self.slots)


@dataclass(frozen=True, slots=True)
class StaticSpread:
    """Interruptible only: evenly over the pools in their order. A lost instance starts again in its pool."""

    slots: int

    def choose(self, seen: Seen) -> Choice:
        """Return the same even spread at every step."""
        count = len(seen.held)
        return Choice(tuple(self.slots // count + (place < self.slots % count) for place in range(count)))


@dataclass(slots=True)
class RoundRobin:
    """Interruptible only: every start goes to the next pool in turn."""

    slots: int
    following: int = 0

    def choose(self, seen: Seen) -> Choice:
        """Return the present instances, and one more in each next pool for each missing one."""
        spots = list(seen.held)
        for _ in range(self.slots - sum(spots)):
            spots[self.following] += 1
            self.following = (self.following + 1) % len(spots)
        return Choice(tuple(spots))


@dataclass(slots=True)
class SpotHedge:
    """Dynamic placement: `extra` instances above the slots, and on-demand for those not warm, at most the slots."""

    slots: int
    extra: int
    active: list[int] = field(default_factory=list)

    def choose(self, seen: Seen) -> Choice:
        """Return the present instances, the missing ones in active zones, and on-demand for those not warm yet."""
        if not seen.step:
            self.active = list(range(len(seen.held)))
        self._learn(seen)
        spots = list(seen.held)
        for _ in range(self.slots + self.extra - sum(spots)):
            free = [zone for zone in self.active if not spots[zone]]
            spots[min(free or self.active, key=seen.prices.__getitem__)] += 1
        lacking = self.slots + self.extra - sum(seen.warm)
        return Choice(tuple(spots), min(self.slots, max(lacking, 0)))

    def _learn(self, seen: Seen) -> None:
        for zone, (wanted, held) in enumerate(zip(seen.wanted, seen.held, strict=True)):
            if held < wanted and zone in self.active:
                self.active.remove(zone)
            elif 0 < held == wanted and zone not in self.active:
                self.active.append(zone)
        if len(self.active) <= (len(seen.held) >= FEW_ZONES):
            self.active = list(range(len(seen.held)))


@dataclass(frozen=True, slots=True)
class Turned:
    """A rule that sees the pools in another order, so that its choice between equal pools does not depend on names."""

    rule: Rule
    by: int

    def choose(self, seen: Seen) -> Choice:
        """Return the rule's choice, turned back."""
        turned = Seen(
            seen.step,
            self._turn(seen.wanted),
            self._turn(seen.held),
            self._turn(seen.warm),
            seen.on_demand,
            seen.on_demand_warm,
            self._turn(seen.prices),
        )
        chosen = self.rule.choose(turned)
        return Choice(tuple(self._turn(chosen.spots, back=True)), chosen.on_demand)

    def _turn(self, values: Sequence[T], *, back: bool = False) -> Sequence[T]:
        by = (-self.by if back else self.by) % len(values)
        return (*values[by:], *values[:by])


def _turned(rule: Callable[[Setting], Rule], span: Span, setting: Setting) -> Rule:
    return Turned(rule(setting), int(span.begins_hours // 24))


RULES: Mapping[str, Maker] = {
    "on_demand": lambda _, setting: OnDemand(setting.slots),
    "static_spread": partial(_turned, lambda setting: StaticSpread(setting.slots)),
    "round_robin": partial(_turned, lambda setting: RoundRobin(setting.slots)),
    "spothedge_0": partial(_turned, lambda setting: SpotHedge(setting.slots, 0)),
    "spothedge_1": partial(_turned, lambda setting: SpotHedge(setting.slots, 1)),
    "spothedge_2": partial(_turned, lambda setting: SpotHedge(setting.slots, 2)),
}
"""The rules by their names in a bench; SpotHedge by its number above the slots."""
