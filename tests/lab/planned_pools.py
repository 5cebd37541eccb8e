"""A job over two pools as the daemon sees it under `hedged`: each tick as a fleet, and the plan's choice in it."""

from datetime import timedelta
from typing import Any

from agent.decide import plan
from agent.decide.deadline import availability, availability_by_market
from agent.decide.limits import limits
from agent.domain.fleet import Fleet
from agent.domain.market.capacity import Capacity
from agent.domain.market.tenure import Tenure
from agent.domain.record.lease import Lease
from agent.domain.work.deadline import Deadline as By
from agent.domain.work.deadline import Progress
from agent.domain.work.decision import Release, Rent
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from agent.lab.jobs import tick_engine
from agent.lab.jobs.job_terms import HOUR, Terms
from strategies.hedged import Hedged
from strategies.hedged_rules.params import HedgedParams
from tests.support import builders

GAP, OVERHEAD = 600, 185
NOTHING = timedelta(0)
PARAMS = HedgedParams(
    reserve=timedelta(seconds=GAP), start_delay=timedelta(seconds=OVERHEAD), headroom=0.0, share_of_market=1.0
)
TUNED = {"hedged": builders.tuned(Hedged(), PARAMS, "hedged")}
MARKETS = ("runpod", "vast")
ASK = 0.40


class Planned:
    """A policy that asks the whole plan(): it builds the fleet of the job's present state."""

    def __init__(self, terms: Terms) -> None:
        """Begin with nothing seen."""
        self._terms = terms
        self._capacity: dict[str, Capacity] = {}

    def choose(self, sight: tick_engine.Sight) -> tick_engine.Choice:
        """Return the choice in the decision of the only slot."""
        fleet = self._fleet(sight)
        self._capacity = availability.watched(self._capacity, fleet) | availability_by_market.watched(
            self._capacity, fleet
        )
        (made,) = plan.plan(self._fleet(sight), TUNED, limits.Limits()).decisions
        if isinstance(made, Release):
            return tick_engine.NOTHING
        if not isinstance(made, Rent):
            return sight.runs
        if made.tenure is Tenure.ON_DEMAND:
            return tick_engine.Choice(Tenure.ON_DEMAND, sight.fallback)
        return tick_engine.Choice(Tenure.INTERRUPTIBLE, MARKETS.index(made.offer.market))

    def _fleet(self, sight: tick_engine.Sight) -> Fleet:
        now = builders.NOW + timedelta(seconds=sight.now)
        return builders.fleet(
            now=now,
            workloads=(self._workload(),),
            markets={name: _view(name, sight, now) for name in MARKETS},
            leases=_leases(sight),
            progress={"train": Progress("train", sight.done / HOUR, now, builders.NOW)},
            capacity=self._capacity,
        )

    def _workload(self) -> Any:
        by = builders.NOW + timedelta(seconds=self._terms.deadline)
        return builders.workload(
            strategy="hedged",
            deadline=By(self._terms.work / HOUR, by, restart=NOTHING),
            checkpoint=Checkpoint(NOTHING, NOTHING, 0.0, CheckpointPlace.REMOTE),
            max_price=builders.per_hour("0.45"),
        )


def _view(name: str, sight: tick_engine.Sight, now: Any) -> Any:
    pool = MARKETS.index(name)
    floor = builders.per_hour(float(sight.spot[pool])) if sight.up[pool] else None
    offers = tuple(
        builders.offer(number, market=name, host_id=f"{name}{number}", owner_id=f"{name}{number}", floor=floor)
        for number in (1, 2, 3)
    )
    return builders.view(market=name, offers=offers, listed_at=now)


def _leases(sight: tick_engine.Sight) -> tuple[Lease, ...]:
    if sight.runs.tenure is None:
        return ()
    name = MARKETS[sight.runs.pool]
    is_bid = sight.runs.tenure is Tenure.INTERRUPTIBLE
    rate = builders.per_hour(float(sight.spot[sight.runs.pool]) if is_bid else ASK)
    tenure = Tenure.INTERRUPTIBLE if is_bid else Tenure.ON_DEMAND
    return (builders.lease(9, market=name, lease_id=f"{name}-9", host_id=f"{name}9", tenure=tenure, gpu_rate=rate),)
