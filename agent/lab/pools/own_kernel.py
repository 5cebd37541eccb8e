"""Our own kernel on the bench: observations update a belief, and decide/deadline chooses.

One pool is chosen for by the rule of `deadline`, several by `multi_pool_policy`.
"""

from dataclasses import dataclass, field, replace

from agent.decide.deadline import hazards, multi_pool_policy, regimes
from agent.domain.market.tenure import Tenure
from agent.lab.deadline import learning_rule
from agent.lab.deadline.one_pool import OnePool
from agent.lab.jobs.job_terms import HOUR, Terms
from agent.lab.jobs.tick_engine import NOTHING, Choice, Policy, Sight
from agent.lab.pools import paid_probes, table_room


def policy(
    terms: Terms,
    known: regimes.Regimes = regimes.SHIPPED,
    alone: hazards.Hazards = hazards.SHIPPED,
    numbers: multi_pool_policy.MultiPoolParams = multi_pool_policy.SHIPPED,
    *,
    pays_for_probes: bool = False,
) -> Policy:
    """Return the kernel for a job: `alone` are the first hazards of one pool, `known` the regimes of several.

    With `pays_for_probes` it counts the next look as a cost of waiting.
    """
    if len(terms.pools) == 1:
        return OnePool(learning_rule.rule(alone))
    table_room.take()
    return Wander(terms, known, numbers, pays_for_probes)


def standing(sight: Sight, terms: Terms) -> multi_pool_policy.JobState:
    """Return the state of a job at a tick."""
    span = terms.ticks * terms.tick
    return multi_pool_policy.JobState(
        left=(span - sight.now) / HOUR,
        todo=(terms.work - sight.done) / HOUR,
        tenure=sight.runs.tenure,
        pool=sight.runs.pool,
        where=sight.where,
        warming=sight.warm / HOUR,
        overhead=terms.overhead / HOUR,
        gap=terms.tick / HOUR,
        span=span / HOUR,
        room=(span - terms.work) / HOUR,
    )


@dataclass(slots=True)
class Wander:
    """Sees every pool in every tick and takes the kernel's choice."""

    terms: Terms
    known: regimes.Regimes = regimes.SHIPPED
    numbers: multi_pool_policy.MultiPoolParams = multi_pool_policy.SHIPPED
    pays_for_probes: bool = False
    _beliefs: list[regimes.Belief] = field(default_factory=list, init=False)

    def choose(self, sight: Sight) -> Choice:
        """Return the kernel's choice."""
        self._look(sight)
        pools = [
            multi_pool_policy.Pool(
                price, belief, float(self.terms.egress[sight.where, pool]) if sight.where >= 0 else 0.0
            )
            for pool, (price, belief) in enumerate(zip(sight.spot, self._beliefs, strict=True))
        ]
        ask = sight.on_demand[sight.fallback]
        at = replace(standing(sight, self.terms), look=paid_probes.price(sight) if self.pays_for_probes else 0.0)
        choice = multi_pool_policy.choose(at, pools, ask, self.terms.egress, self.known, self.numbers)
        if choice.tenure is None:
            return NOTHING
        if choice.tenure is Tenure.INTERRUPTIBLE:
            return Choice(Tenure.INTERRUPTIBLE, choice.pool)
        return sight.runs if sight.runs.tenure is Tenure.ON_DEMAND else Choice(Tenure.ON_DEMAND, sight.fallback)

    def _look(self, sight: Sight) -> None:
        hours, seen = self.terms.tick / HOUR, sight.up
        if not self._beliefs:
            self._beliefs = [regimes.first(self.known, is_up=is_up) for is_up in seen]
            return
        self._beliefs = [
            regimes.observe(self.known, belief, is_up=is_up, hours=hours)
            for belief, is_up in zip(self._beliefs, seen, strict=True)
        ]
