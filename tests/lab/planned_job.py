"""A job over one pool as the daemon sees it: each tick as a fleet, and the choice of the whole plan() in it."""

from collections.abc import Mapping
from datetime import timedelta

from agent.decide import plan
from agent.decide.deadline import availability
from agent.decide.limits import limits
from agent.decide.strategy import Tuned
from agent.domain.fleet import Fleet
from agent.domain.market.capacity import Capacity
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.record.lease import Lease
from agent.domain.work.deadline import Deadline as By
from agent.domain.work.deadline import Progress
from agent.domain.work.decision import Rent
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload
from agent.lab.jobs import tick_engine
from agent.lab.jobs.job_terms import HOUR, Terms
from strategies.deadline import Deadline, DeadlineParams
from strategies.hedged import Hedged
from strategies.hedged_rules.params import HedgedParams
from tests.support import builders

GAP = 600
OVERHEAD = 185
"""Seconds; no sum of ticks and starts makes slack equal to two starts, where the net's `<` and the kernel's meet."""
NOTHING = timedelta(0)
PARAMS = DeadlineParams(
    reserve=NOTHING,
    start_delay=timedelta(seconds=OVERHEAD),
    return_after=NOTHING,
    return_gain=0.0,
    return_slack=NOTHING,
    headroom=0.0,
)
CHECKPOINT = Checkpoint(NOTHING, NOTHING, 0.0, CheckpointPlace.REMOTE)


class Planned:
    """A rule that asks the whole plan(): it builds the fleet of the job's present state."""

    def __init__(self, params: DeadlineParams | HedgedParams) -> None:
        """Begin with nothing seen, under the strategy of these numbers."""
        is_hedged = isinstance(params, HedgedParams)
        strategy = Hedged() if is_hedged else Deadline()
        self._tuned: Mapping[str, Tuned] = {
            "deadline": builders.tuned(strategy, params, "hedged" if is_hedged else "deadline")
        }
        self._capacity: dict[str, Capacity] = {}

    def choose(self, at: tick_engine.Sight) -> Tenure | None:
        """Return the choice in the decision of the only slot."""
        fleet = _fleet(at, self._capacity)
        self._capacity = availability.watched(self._capacity, fleet)
        (made,) = plan.plan(_fleet(at, self._capacity), self._tuned, limits.Limits()).decisions
        return made.tenure if isinstance(made, Rent) else at.runs.tenure


def _fleet(at: tick_engine.Sight, capacity: dict[str, Capacity]) -> Fleet:
    now = builders.NOW + timedelta(seconds=at.now)
    return builders.fleet(
        now=now,
        workloads=(_workload(at.terms),),
        markets={"vast": builders.view(offers=tuple(_offers(at)), listed_at=now)},
        leases=_leases(at),
        progress={"train": Progress("train", at.done / HOUR, now, builders.NOW)},
        capacity=capacity,
    )


def _workload(terms: Terms) -> Workload:
    by = builders.NOW + timedelta(seconds=terms.deadline)
    deadline = By(terms.work / HOUR, by, restart=NOTHING)
    return builders.workload(
        strategy="deadline", deadline=deadline, checkpoint=CHECKPOINT, max_price=builders.per_hour("0.45")
    )


def _offers(at: tick_engine.Sight) -> list[Offer]:
    floor = builders.per_hour("0.20") if at.up[0] else None
    return [builders.offer(number, floor=floor) for number in (1, 2)]


def _leases(at: tick_engine.Sight) -> tuple[Lease, ...]:
    tenure = at.runs.tenure
    if tenure is None:
        return ()
    rate = builders.per_hour("0.20" if tenure is Tenure.INTERRUPTIBLE else "0.40")
    return (builders.lease(9, tenure=tenure, gpu_rate=rate),)
