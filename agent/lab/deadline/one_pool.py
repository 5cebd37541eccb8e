"""Rules of one pool as policies of the engine. A rule names only the tenure, because there is only one place."""

from collections.abc import Callable
from dataclasses import dataclass

from agent.domain.market.tenure import Tenure
from agent.lab.jobs import uniform_progress
from agent.lab.jobs.tick_engine import NOTHING, Choice, Sight

Rule = Callable[[Sight], Tenure | None]
"""The choice for this tick. Interruptible without capacity means nothing runs."""
SPOT, ON_DEMAND = Choice(Tenure.INTERRUPTIBLE, 0), Choice(Tenure.ON_DEMAND, 0)


@dataclass(frozen=True, slots=True)
class OnePool:
    """Follows a rule. It is made again for each case, because the rule may remember."""

    rule: Rule

    def choose(self, sight: Sight) -> Choice:
        """Return the rule's choice."""
        tenure = self.rule(sight)
        if tenure is Tenure.ON_DEMAND:
            return ON_DEMAND
        return SPOT if tenure is Tenure.INTERRUPTIBLE and sight.up[0] else NOTHING


class Guarded(OnePool):
    """Follows a rule under the last call that all published ones share."""

    def choose(self, sight: Sight) -> Choice:
        """Return the forced choice, or the rule's choice."""
        forced = uniform_progress.last_resort(sight)
        return forced if forced is not None else OnePool.choose(self, sight)
