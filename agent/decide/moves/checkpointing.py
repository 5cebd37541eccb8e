"""The interval of a workload's checkpoints, from the hazard of its own lease.

Over a stay, lost work plus time spent on writing is least at Daly's interval for the mean rate of losses. The hazard of
interruptible capacity falls with age. So the interval of an age is Young's for the hazard at that age: shorter while a
lease is young, longer later. Prices do not matter, because every hour of a lease costs the same.
"""

from collections.abc import Iterator, Mapping

from agent.decide.deadline import hazards
from agent.decide.estimate import checkpoints
from agent.decide.pricing import host_record, measured_checkpoints, useful_hour
from agent.domain.fleet import Fleet
from agent.domain.market.tenure import Tenure
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import Advice
from agent.domain.work.guard_terms import Ask
from agent.domain.work.workload import CheckpointPlace, Workload

SECONDS = "GPUBID_CHECKPOINT_SECONDS"
BY_AGE = "GPUBID_CHECKPOINT_BY_AGE"
MOST_HOURS = 24.0
RELIABILITY = 0.95
"""Reliability of a host whose offer is no longer seen. Assumed."""


def advice(work: Workload, tenure: Tenure, hazard: float) -> Advice | None:
    """Return the intervals at a rate of losses, or None if nothing is kept or the time of a checkpoint is unknown."""
    takes = work.checkpoint.takes
    if takes is None or not takes or hazard <= 0 or work.checkpoint.place is CheckpointPlace.NONE:
        return None
    write = takes.total_seconds() / 3600
    return Advice(_seconds(checkpoints.daly(write, 1 / hazard), write), tuple(_by_age(write, tenure, hazard)), hazard)


def of_lease(fleet: Fleet, lease: Lease, work: Workload) -> Advice | None:
    """Return the intervals of a lease, or None as `advice` does."""
    record = host_record.pooled(fleet.hosts, fleet.now).get(lease.host)
    view = fleet.markets.get(lease.market)
    offers = view.offers_on(lease.host_id) if view is not None else ()
    own = useful_hour.host_hazard(offers[0].reliability if offers else RELIABILITY, record)
    if lease.tenure is not Tenure.INTERRUPTIBLE:
        return advice(work, lease.tenure, own)
    contest = useful_hour.contested(record, host_record.market_hazard(fleet.hosts.values(), fleet.now))
    # As at the rent, whose container has these intervals: the mean over a stay. A young lease is lost more often.
    hours, loss = useful_hour.lasting(own, contest, useful_hour.HORIZON_HOURS)
    return advice(work, lease.tenure, loss / hours)


def of_guards(fleet: Fleet) -> Mapping[str, Advice]:
    """Return the intervals of the running leases whose guards ask for checkpoints, by the intents that rented them."""
    found = {}
    for work in (each for each in fleet.workloads if each.guard is not None and each.guard.ask is not Ask.NONE):
        reckoned = measured_checkpoints.believed(work, measured_checkpoints.of(fleet, work))
        for lease in (lease for place in work.places for lease in fleet.leases_of(place)):
            given = of_lease(fleet, lease, reckoned) if lease.state is LeaseState.RUNNING else None
            if given is not None and lease.guard_run is not None:
                found[lease.intent_id] = given
    return found


def environment(given: Advice | None) -> tuple[tuple[str, str], ...]:
    """Return the container's variables: seconds, and "AGE:SECONDS" for each age in seconds."""
    if given is None:
        return ()
    by_age = " ".join(f"{age}:{interval}" for age, interval in given.by_age)
    return ((SECONDS, str(given.interval)), (BY_AGE, by_age))


def _by_age(write: float, tenure: Tenure, hazard: float) -> Iterator[tuple[int, int]]:
    shapes = hazards.SHIPPED.shape if tenure is Tenure.INTERRUPTIBLE else ((0.0, 1.0),)
    for age, times in shapes:
        yield round(age * 3600), _seconds(checkpoints.young(write, 1 / (hazard * times)), write)


def _seconds(hours: float, write: float) -> int:
    return max(round(min(max(hours, write), MOST_HOURS) * 3600), 1)
