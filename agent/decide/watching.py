"""What looking at the market teaches about interruptible capacity: seen at every look, remembered, forgotten slowly.

A loss of our own lease counts as capacity lost, also where other hosts have some: it costs a start all the same.
"""

from collections.abc import Mapping
from datetime import timedelta

import numpy as np

from agent.decide import hazards, match
from agent.domain.capacity import Capacity
from agent.domain.fleet import Fleet
from agent.domain.lease import LeaseState
from agent.domain.money import UsdPerHour
from agent.domain.tenure import Tenure
from agent.domain.workload import Workload

_HOUR = timedelta(hours=1)
_HOLDS = frozenset({LeaseState.STARTING, LeaseState.RUNNING})
_NOTHING_TAKEN = match.Taken()


def watched(known: Mapping[str, Capacity], fleet: Fleet) -> dict[str, Capacity]:
    """Return what is known of the capacity of each workload with a deadline, by name, after this look."""
    found = ((work.name, _looked(known.get(work.name), fleet, work)) for work in fleet.workloads if work.deadline)
    return {name: capacity for name, capacity in found if capacity is not None}


def learned(known: Capacity | None) -> hazards.Learned:
    """Return what a strategy is told of a workload's capacity: the shipped hazards, and what was seen."""
    shipped = hazards.SHIPPED
    if known is None or len(known.evidence) != len(shipped.factors):
        return hazards.Learned(shipped)
    age = (known.seen_at - known.since) / _HOUR
    return hazards.Learned(shipped, hazards.Belief(known.is_there, age, np.array(known.evidence)), known.price)


def _looked(known: Capacity | None, fleet: Fleet, work: Workload) -> Capacity | None:
    price = _price(fleet, work)
    if price is None and not any(view.offers for view in fleet.markets.values()):
        return known  # the market was not asked: no answer is not a no
    if known is None or len(known.evidence) != len(hazards.SHIPPED.factors):
        nothing = (0.0,) * len(hazards.SHIPPED.factors)
        return Capacity(price is not None, fleet.now - hazards.FIRST_AGE_HOURS * _HOUR, fleet.now, nothing, price)
    hours = (fleet.now - known.seen_at) / _HOUR
    if hours <= 0:
        return known
    is_there = price is not None and not _was_lost(fleet, work, known)
    age = (known.seen_at - known.since) / _HOUR
    before = hazards.Belief(known.is_there, age, np.array(known.evidence))
    after = hazards.observe(hazards.SHIPPED, before, is_up=is_there, hours=hours)
    since = known.since if is_there is known.is_there else fleet.now
    evidence = tuple(float(each) for each in after.evidence)
    return Capacity(is_there, since, fleet.now, evidence, price or known.price)


def _was_lost(fleet: Fleet, work: Workload, known: Capacity) -> bool:
    return any(loss.slot.workload == work.name and loss.at > known.seen_at for loss in fleet.losses)


def _price(fleet: Fleet, work: Workload) -> UsdPerHour | None:
    """Return what an hour of interruptible capacity costs, held or to be had; None where there is none."""
    mine = (held for place in work.places for held in fleet.leases_of(place))
    held = [lease.gpu_rate for lease in mine if lease.tenure is Tenure.INTERRUPTIBLE and lease.state in _HOLDS]
    return min(held) if held else min(_floors(fleet, work), default=None)


def _floors(fleet: Fleet, work: Workload) -> list[UsdPerHour]:
    return [
        row.floor
        for name, view in fleet.markets.items()
        if work.may_use(name)
        for row in view.offers
        if row.floor is not None
        and row.floor + row.disk_rate(work.disk_gb) <= work.max_price
        and match.refusal(row, work, fleet.now, _NOTHING_TAKEN) is None
    ]
