"""What becomes of a job over a window under one rule, tick by tick.

Semantics (published simulator of "Can't Be Late", with its guarantee mended): the rule sees whether capacity is there
in this tick and chooses none, interruptible or on-demand for it; a tick in a tenure costs that tenure's price times the
tick; every start (the first, after a loss, on a change of tenure) spends the restart overhead before work advances, and
an overhead longer than a tick carries over; what is lost is gone at the beginning of its first tick without capacity;
work finished inside a tick pays the whole tick; finishing after the deadline is late.

Invariants:
1. A rule sees nothing of a later tick.
2. All seconds are whole, so equal choices give equal ends.
"""

from collections.abc import Callable
from dataclasses import dataclass

from agent.domain.market.tenure import Tenure
from agent.lab.deadline.window import Window


@dataclass(frozen=True, slots=True)
class Setting:
    """A job: whole seconds of work, of the allowed time, and of overhead at each start."""

    work: int
    allowed: int
    overhead: int

    @classmethod
    def of_hours(cls, work: float, allowed: float, overhead: float) -> "Setting":
        """Return the setting of these hours, rounded to whole seconds."""
        return cls(round(work * 3600), round(allowed * 3600), round(overhead * 3600))


@dataclass(slots=True)
class Standing:
    """What a rule sees at the beginning of a tick, in whole seconds since the job began.

    `tenure` is what ran in the tick before and still stands; `warming` is the overhead that its start has yet to spend.
    """

    setting: Setting
    gap: int
    tick: int = 0
    done: int = 0
    tenure: Tenure | None = None
    warming: int = 0
    is_up: bool = False
    spot_price: float = 0.0
    on_demand_price: float = 0.0

    @property
    def now(self) -> int:
        """Seconds since the job began."""
        return self.tick * self.gap

    @property
    def todo(self) -> int:
        """Seconds of work left."""
        return self.setting.work - self.done

    @property
    def left(self) -> int:
        """Seconds until the deadline."""
        return self.setting.allowed - self.now


Rule = Callable[[Standing], Tenure | None]
"""What to hold in this tick; interruptible without capacity is none."""


@dataclass(frozen=True, slots=True)
class Lived:
    """What became of a job: dollars, seconds until it was done (None: never seen), the tenure of each tick."""

    dollars: float
    finished: int | None
    tenures: tuple[Tenure | None, ...]

    def is_late(self, setting: Setting) -> bool:
        """Whether it was done after the deadline or not at all."""
        return self.finished is None or self.finished > setting.allowed


def run(rule: Rule, window: Window, setting: Setting) -> Lived:
    """Return what becomes of a job under a rule."""
    at = Standing(setting, window.gap_seconds)
    dollars, held = 0.0, []
    for tick, is_up in enumerate(window.is_up):
        at.tick, at.is_up = tick, is_up
        at.spot_price, at.on_demand_price = window.spot_prices[tick], window.on_demand_prices[tick]
        if at.tenure is Tenure.INTERRUPTIBLE and not is_up:
            at.tenure, at.warming = None, 0
        chosen = rule(at)
        chosen = None if chosen is Tenure.INTERRUPTIBLE and not is_up else chosen
        held.append(chosen)
        if chosen is not None:
            price = at.spot_price if chosen is Tenure.INTERRUPTIBLE else at.on_demand_price
            dollars += price * at.gap / 3600
        ends = _advance(at, chosen)
        if ends is not None:
            return Lived(dollars, ends, tuple(held))
    return Lived(dollars, None, tuple(held))


def _advance(at: Standing, chosen: Tenure | None) -> int | None:
    """Let a tick pass; return the second at which the work was done in it, or None."""
    warming = at.warming if chosen is at.tenure else at.setting.overhead
    at.tenure = chosen
    if chosen is None:
        at.warming = 0
        return None
    spent = min(warming, at.gap)
    at.warming = warming - spent
    todo = at.todo
    at.done += min(at.gap - spent, todo)
    return at.now + spent + todo if at.todo == 0 else None
