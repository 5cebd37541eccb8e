"""A policy that pays for its looks: it sees a pool only when it asks there.

- While nothing interruptible runs, every pool is asked in every tick. While an instance runs, the other pools are asked
  once an hour (the interval of SkyNomad's artifact). Between two looks a pool counts as last seen.
- A refused request costs nothing. A granted one that is not kept costs a minute of the pool's price, as there.
- If the policy chooses a pool that has lost its capacity since the last look, nothing changes in this tick, and the
  pool is seen as empty from then on.
"""

from copy import copy
from dataclasses import dataclass, field

from agent.domain.market.tenure import Tenure
from agent.lab.jobs.job_terms import HOUR
from agent.lab.jobs.tick_engine import Choice, Policy, Sight

EVERY_SECONDS = HOUR
PAID_HOURS = 1 / 60


def price(sight: Sight) -> float:
    """Return the dollars of asking every pool and keeping none, if the same pools have capacity as in a sight."""
    return sum(dollars for dollars, is_up in zip(sight.spot, sight.up, strict=True) if is_up) * PAID_HOURS


@dataclass(slots=True)
class PaidProbes:
    """A policy with paid looks. `dollars` is the price of those so far."""

    policy: Policy
    dollars: float = 0.0
    _known: list[bool] = field(default_factory=list)
    _due: int = 0

    def choose(self, sight: Sight, /) -> Choice:
        """Return the choice of the policy by the pools as it knows them."""
        runs = sight.runs if sight.runs.tenure is Tenure.INTERRUPTIBLE else None
        is_look = runs is None or sight.now >= self._due
        if is_look:
            self._known, self._due = list(sight.up), sight.now + EVERY_SECONDS
        if runs is not None:
            self._known[runs.pool] = True
        seen = copy(sight)
        seen.up = tuple(self._known)
        chosen = self.policy.choose(seen)
        if chosen.tenure is Tenure.INTERRUPTIBLE and not sight.up[chosen.pool]:
            self._known[chosen.pool] = False
            chosen = sight.runs
        if is_look:
            kept = {each.pool for each in (chosen, runs) if each and each.tenure is Tenure.INTERRUPTIBLE}
            granted = (pool for pool, is_up in enumerate(sight.up) if is_up and pool not in kept)
            self.dollars += sum(sight.spot[pool] for pool in granted) * PAID_HOURS
        return chosen
