"""Capacity that searches show on each market by itself, for deadline jobs on several markets: one belief per market.

It is kept beside the knowledge of all markets together, and learned as that is (`availability`, with its invariants).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import msgspec

from agent.decide.deadline import availability, hazards
from agent.domain.fleet import Fleet
from agent.domain.market.capacity import Capacity
from agent.domain.money import UsdPerHour
from agent.domain.work.workload import Workload

USED = hazards.OF_SEVERAL


@dataclass(frozen=True, slots=True)
class Known:
    """A strategy's view of one market: the belief, and the hourly cost when capacity was last seen."""

    belief: hazards.Belief
    price: UsdPerHour | None


def watched(known: Mapping[str, Capacity], fleet: Fleet) -> dict[str, Capacity]:
    """Return the knowledge of each market of each workload, by "name@market", after this look."""
    found: dict[str, Capacity] = {}
    for work in fleet.workloads:
        for market in markets(fleet, work):
            key = _key(work, market)
            after = availability.looked(known.get(key), _alone(fleet, market), [work], USED)
            if after is not None:
                found[key] = after if after.pool else replace(after, market=market, pool=_pool(work))
    return found


def markets(fleet: Fleet, work: Workload) -> tuple[str, ...]:
    """Return the markets that are watched one by one: those of a deadline job that may use several."""
    usable = tuple(sorted(name for name in fleet.markets if work.may_use(name)))
    return usable if work.deadline is not None and len(usable) > 1 else ()


def known(fleet: Fleet, work: Workload) -> dict[str, Known]:
    """Return a strategy's view by market; markets without a look are left out."""
    kept = {market: fleet.capacity.get(_key(work, market)) for market in markets(fleet, work)}
    return {market: Known(belief(each), each.price) for market, each in kept.items() if each is not None}


def by_workload(kept: Iterable[Capacity], fleet: Fleet) -> dict[str, Capacity]:
    """Return the ledger's record of each market of each workload, by "name@market"."""
    by_place = {(each.market, each.pool): each for each in kept}
    places = ((work, market) for work in fleet.workloads for market in markets(fleet, work))
    known = ((_key(work, market), by_place.get((market, _pool(work)))) for work, market in places)
    return {key: each for key, each in known if each is not None}


def _key(work: Workload, market: str) -> str:
    return f"{work.name}@{market}"


def _pool(work: Workload) -> str:
    return f"{availability.pool_of(work)}, by market"


def _alone(fleet: Fleet, market: str) -> Fleet:
    return msgspec.structs.replace(
        fleet,
        markets={market: fleet.markets[market]},
        leases=tuple(lease for lease in fleet.leases if lease.market == market),
        losses=tuple(loss for loss in fleet.losses if loss.market == market),
    )


def belief(kept: Capacity) -> hazards.Belief:
    """Return the belief about a market at its last look."""
    return availability.belief(kept, USED)
