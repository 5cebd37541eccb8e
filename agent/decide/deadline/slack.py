"""When work with a deadline may wait for interruptible capacity, and when it must not: arithmetic in hours.

Every rule ends at the last resort of Uniform Progress (Wu et al., "Can't Be Late", NSDI 2024): the last instant at
which on-demand can start and be in time. Two rules pay for on-demand before that, both only without interruptible
capacity. Uniform Progress's own rule: less is done than the straight line from start to deadline asks. The slack rule
of LEVI (arXiv 2605.09764): slack is below a tenth of the remaining work.

Invariants:
1. Slack falls by at most one hour an hour, whatever runs or fails.
2. On-demand rented while slack is not negative is in time if its start takes at most `start`.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.domain.market.tenure import Tenure


@dataclass(frozen=True, slots=True)
class Outlook:
    """The time to finish on demand from now, in hours.

    `todo` hours of work are done at `speed`, after `start` for the start and `restart` for repeated work and the
    restore. `reserve` is for looking and choosing. `left` is the time until the deadline.
    """

    now: datetime
    left: float
    todo: float
    speed: float
    start: float
    restart: float
    reserve: float

    @property
    def needed(self) -> float:
        """Hours from renting on demand now until the work is done."""
        return self.start + self.restart + self.todo / self.speed

    @property
    def slack(self) -> float:
        """Hours that may pass without any progress before on-demand must be rented."""
        return self.left - self.needed - self.reserve

    @property
    def switch_at(self) -> datetime:
        """The point of no return: when on-demand must be rented if nothing progresses until then."""
        return self.now + timedelta(hours=max(min(self.slack, 1e6), -1e6))

    @property
    def is_last_call(self) -> bool:
        """Whether on-demand must be rented now."""
        return self.slack <= 0

    def may_try(self, start: float) -> bool:
        """Return whether there is time for a start of interruptible capacity that fails, and for its restart."""
        return self.slack > start + self.restart

    def is_short(self, share: float) -> bool:
        """Return whether slack is below this share of the remaining work."""
        return self.slack < share * self.todo / self.speed


def is_behind(done: float, hours: float, line: float, pace: float) -> bool:
    """Return whether less is done than `pace` (a share) of the straight line."""
    return done < pace * hours * line


@dataclass(frozen=True, slots=True)
class Look:
    """One look: the running tenure, whether interruptible capacity is there, whether work is behind the line.

    `start` is the time that a start of interruptible capacity takes, in hours.
    """

    tenure: Tenure | None
    is_up: bool
    is_behind: bool
    start: float


def choose(outlook: Outlook, look: Look, share: float, spare: float) -> Tenure | None:
    """Return the tenure that the two rules of slack hold until the next look, or None to wait.

    On-demand is rented when slack is below `share` of the remaining work. It is left for capacity that is back if a
    failed try would still leave `spare` hours of slack.
    """
    if outlook.is_last_call:
        return Tenure.ON_DEMAND
    if look.tenure is Tenure.INTERRUPTIBLE:
        return look.tenure
    if look.tenure is Tenure.ON_DEMAND:
        is_back = look.is_up and not look.is_behind and outlook.may_try(spare + outlook.start)
        return Tenure.INTERRUPTIBLE if is_back else look.tenure
    may_try = outlook.may_try(look.start)
    if look.is_up and may_try:
        return Tenure.INTERRUPTIBLE
    return Tenure.ON_DEMAND if look.is_behind or outlook.is_short(share) or not may_try else None
