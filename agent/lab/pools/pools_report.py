"""One run over several pools told tick by tick, for a picture."""

from collections.abc import Mapping
from itertools import pairwise

from agent.domain.market.tenure import Tenure
from agent.lab.engine import run_timeline
from agent.lab.pools import play
from agent.lab.pools.play import Choice, Mode, Policy, Sight
from agent.lab.pools.pool_terms import HOUR, PoolsCase

TENURES = {Mode.NONE: None, Mode.INTERRUPTIBLE: Tenure.INTERRUPTIBLE, Mode.ON_DEMAND: Tenure.ON_DEMAND}


def timeline_of(case: PoolsCase, policies: Mapping[str, Policy]) -> run_timeline.Timeline:
    """Return what became of a case under each policy."""
    terms, up = case.terms, case.course.up[: case.terms.ticks]
    return run_timeline.Timeline(
        case=case.key,
        gap=terms.tick / HOUR,
        bands=tuple(run_timeline.Band(pool, tuple(up[:, place].tolist())) for place, pool in enumerate(terms.pools)),
        work=terms.work / HOUR,
        allowed=terms.deadline / HOUR,
        lanes=tuple(_lane(name, case, policy) for name, policy in policies.items()),
    )


class _Told:
    """A policy that writes down what was done at each tick."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.done: list[float] = []

    def choose(self, sight: Sight, /) -> Choice:
        self.done.append(sight.done / HOUR)
        return self._policy.choose(sight)


def _lane(name: str, case: PoolsCase, policy: Policy) -> run_timeline.Lane:
    told = _Told(policy)
    run = play.play(case, told)
    ended = case.terms.work / HOUR if run.ticks is not None else told.done[-1]
    held = [(tick, choice.pool) for tick, choice in enumerate(run.choices) if choice.mode is not Mode.NONE]
    return run_timeline.Lane(
        strategy=name,
        tenures=tuple(TENURES[choice.mode] for choice in run.choices),
        done=(*told.done, ended),
        dollars=run.cost,
        moves=tuple(tick for (_, before), (tick, pool) in pairwise(held) if pool != before),
    )
