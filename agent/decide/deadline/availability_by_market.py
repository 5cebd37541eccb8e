"""Capacity that searches show on each market by itself, for deadline jobs on several markets: one belief per market.

It is kept beside the knowledge of all markets together (`availability`), as shares of regimes instead of models of a
pool.

Invariants:
1. A belief depends on the observations and their times, not on their number. Looks with equal results count by the
   hours between them.
2. During a time without a look regimes may turn. Nothing is known about the spell after it.
"""

import functools
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec
import numpy as np

from agent.decide.deadline import availability, regimes
from agent.domain.fleet import Fleet
from agent.domain.market.capacity import Capacity
from agent.domain.money import UsdPerHour
from agent.domain.work.workload import Workload

_HOUR = timedelta(hours=1)
_FIRST_AGE = regimes.FIRST_AGE * _HOUR


@dataclass(frozen=True, slots=True)
class Known:
    """A strategy's view of one market: the belief at its last look, and the hourly cost when it last had capacity."""

    belief: regimes.Belief
    price: UsdPerHour | None
    looked_at: datetime
    """The time of the last look."""
    is_in_view: bool
    """Whether its search was answered lately, or offers of its models are in view: then no fitting bid means no
    capacity."""


def watched(known: Mapping[str, Capacity], fleet: Fleet) -> dict[str, Capacity]:
    """Return the knowledge of each market of each workload, by "name@market", after this look.

    Workloads with equal requirements share it: a loss of one of them is a loss for all.
    """
    sharing: dict[tuple[str, str], list[Workload]] = {}
    for work in fleet.workloads:
        for market in markets(fleet, work):
            sharing.setdefault((market, _pool(work)), []).append(work)
    found: dict[str, Capacity] = {}
    for (market, _), works in sharing.items():
        keys = [_key(work, market) for work in works]
        before = next((known[key] for key in keys if key in known), None)
        after = _looked(before, _alone(fleet, market), works, market)
        if after is not None:
            found |= dict.fromkeys(keys, after)
    return found


def markets(fleet: Fleet, work: Workload) -> tuple[str, ...]:
    """Return the markets that are watched one by one: those of a deadline job that may use several."""
    usable = tuple(sorted(name for name in fleet.markets if work.may_use(name)))
    return usable if work.deadline is not None and len(usable) > 1 else ()


def known(fleet: Fleet, work: Workload) -> dict[str, Known]:
    """Return a strategy's view by market; markets without a look are left out."""
    kept = {market: fleet.capacity.get(_key(work, market)) for market in markets(fleet, work)}
    return {
        market: Known(belief(each), each.price, each.seen_at, _is_in_view(fleet, work, market))
        for market, each in kept.items()
        if each is not None
    }


def _is_in_view(fleet: Fleet, work: Workload, market: str) -> bool:
    models, view = work.requirements.gpu_models, fleet.markets[market]
    return work.name in view.answered or any(not models or offer.gpu in models for offer in view.offers)


def by_workload(kept: Iterable[Capacity], fleet: Fleet) -> dict[str, Capacity]:
    """Return the ledger's record of each market of each workload, by "name@market"."""
    by_place = {(each.market, each.pool): each for each in kept}
    places = ((work, market) for work in fleet.workloads for market in markets(fleet, work))
    known = ((_key(work, market), by_place.get((market, _pool(work)))) for work, market in places)
    return {key: each for key, each in known if each is not None}


@functools.lru_cache(4)
def version(used: regimes.Regimes) -> str:
    """Return a digest of the regimes that the shares belong to."""
    return hashlib.sha256(repr(used).encode()).hexdigest()[:12]


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


def _looked(before: Capacity | None, fleet: Fleet, works: Sequence[Workload], market: str) -> Capacity | None:
    rates = (availability.going_rate(fleet, work) for work in works)
    price = min((rate for rate in rates if rate is not None), default=None)
    if price is None and not availability.was_asked(fleet.markets[market], works):
        return before  # nothing new is known
    if before is None:
        return _first(fleet, works[0], market, price)
    names = {work.name for work in works}
    was_lost = any(loss.slot.workload in names and loss.at > before.seen_at for loss in fleet.losses)
    is_there = price is not None and not was_lost
    passed = fleet.now - before.seen_at
    if passed <= timedelta(0) or (is_there is before.is_there and passed < availability.SAME_EVERY):
        return before
    if passed > availability.UNWATCHED:
        shares = belief(before).shares @ regimes.SHIPPED.turns(passed / _HOUR)
        begun = _first(fleet, works[0], market, price)
        return replace(
            begun,
            evidence=tuple(shares.tolist()),
            price=price or before.price,
            is_there=is_there,
            looks=before.looks + 1,
        )
    after = regimes.observe(regimes.SHIPPED, belief(before), is_up=is_there, hours=passed / _HOUR)
    has_changed = is_there is not before.is_there
    return replace(
        before,
        is_there=is_there,
        since=fleet.now if has_changed else before.since,
        seen_at=fleet.now,
        evidence=tuple(after.shares.tolist()),
        price=price or before.price,
        is_begun=before.is_begun or has_changed,
        version=version(regimes.SHIPPED),
        looks=before.looks + 1,
    )


def _first(fleet: Fleet, work: Workload, market: str, price: UsdPerHour | None) -> Capacity:
    begun = regimes.first(regimes.SHIPPED, is_up=price is not None)
    return Capacity(
        price is not None,
        fleet.now - _FIRST_AGE,
        fleet.now,
        tuple(begun.shares.tolist()),
        price,
        market=market,
        pool=_pool(work),
        version=version(regimes.SHIPPED),
    )


def is_of(kept: Capacity) -> bool:
    """Return whether the record has shares of the present regimes."""
    return kept.version == version(regimes.SHIPPED) and len(kept.evidence) == regimes.SHIPPED.count


def belief(kept: Capacity) -> regimes.Belief:
    """Return the belief about a market at its last look."""
    used = regimes.SHIPPED
    age = (kept.seen_at - kept.since) / _HOUR
    if not is_of(kept):
        return replace(regimes.first(used, is_up=kept.is_there), age=age)
    return regimes.Belief(kept.is_there, age, np.array(kept.evidence))
