"""Interruptible capacity that searches show: observed at every look, remembered, and slowly forgotten.

A loss of our own lease counts as lost capacity, even if other hosts have some: the slot needs a new start all the same.
A listed offer that just refused a rent for want of capacity counts as none, until its cooldown ends.

Invariants:
1. The knowledge depends on the observations and their times, not on their number. Looks with equal results count by the
   hours between them.
2. Time without a look is no evidence. After it a new spell begins, and its beginning counts as not seen.
3. Evidence that was gathered under other hazards is dropped. Whether capacity is there, and since when, is kept.
"""

import functools
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np

from agent.decide.deadline import hazards
from agent.decide.pricing import cooldowns, offer_refusal
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market.capacity import Capacity, Counts
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.record.lease import LeaseState
from agent.domain.work.workload import MaxPrice, Requirements, Workload

UNWATCHED = timedelta(hours=2)
"""After this long without a look, the time between counts as unknown. Surveys come once an hour."""
SAME_EVERY = timedelta(minutes=2)
"""A look without a change is stored at most once in this time: each stored look is a row in the ledger."""
MOST_POOLS = 256
"""The most pools that are remembered. Beyond that, the pools that were not seen for longest are forgotten."""
_HOUR = timedelta(hours=1)
_FIRST_AGE = hazards.FIRST_AGE_HOURS * _HOUR
_HOLDS = frozenset({LeaseState.STARTING, LeaseState.RUNNING})


_Closed = Mapping[str, frozenset[str]]
"""The markets that are closed to a workload now, by its name."""


def watched(known: Mapping[str, Capacity], fleet: Fleet, closed: _Closed | None = None) -> dict[str, Capacity]:
    """Return the known capacity of each workload, by name, after this look; unchanged ones are the same objects.

    Offers of a market that is `closed` to a workload are no capacity for it.
    """
    sharing: dict[tuple[str, str], list[Workload]] = {}
    for work in fleet.workloads:
        sharing.setdefault(place(fleet, work), []).append(work)
    found: dict[str, Capacity] = {}
    for (market, pool), works in sharing.items():
        before = next((known[work.name] for work in works if work.name in known), None)
        after = _looked(before, fleet, works, closed or {})
        if after is not None:
            named = after if after.pool else replace(after, market=market, pool=pool)
            found |= dict.fromkeys((work.name for work in works), named)
    return found


def place(fleet: Fleet, work: Workload) -> tuple[str, str]:
    """Return the markets that a workload may use, and the pool it asks them for."""
    return "+".join(sorted(name for name in fleet.markets if work.may_use(name))), pool_of(work)


def pool_of(work: Workload) -> str:
    """Return the pool of a workload's requests: models, GPUs, highest price, and a digest of the other requirements."""
    return _pool(work.requirements, work.prices)


@functools.lru_cache(1024)
def _pool(asked: Requirements, most: MaxPrice) -> str:
    wants = replace(asked, gpu_models=tuple(sorted(asked.gpu_models)))
    text = f"{' or '.join(wants.gpu_models) or 'any GPU'} x{asked.gpus} up to {most.others}"
    text += "".join(f", {model} up to {price}" for model, price in sorted(most.by_gpu))
    if wants == Requirements(gpus=asked.gpus, gpu_models=wants.gpu_models):
        return text
    return f"{text} #{hashlib.sha256(repr(wants).encode()).hexdigest()[:6]}"


def by_workload(kept: Iterable[Capacity], fleet: Fleet) -> dict[str, Capacity]:
    """Return the ledger's record of each workload's pool, by name."""
    by_place = {(each.market, each.pool): each for each in kept}
    known = ((work.name, by_place.get(place(fleet, work))) for work in fleet.workloads)
    return {name: each for name, each in known if each is not None}


def news(before: Mapping[str, Capacity], after: Mapping[str, Capacity]) -> tuple[Capacity, ...]:
    """Return the changes of a look, each pool once."""
    changed = {(each.market, each.pool): each for name, each in after.items() if before.get(name) is not each}
    return tuple(changed.values())


def surplus(kept: Iterable[Capacity], more: Iterable[Capacity]) -> tuple[Capacity, ...]:
    """Return the pools to forget when more become known: the longest unseen, beyond `MOST_POOLS`."""
    by_place = {(each.market, each.pool): each for each in (*kept, *more)}
    newest = sorted(by_place.values(), key=lambda each: (each.seen_at, each.market, each.pool), reverse=True)
    return tuple(newest[MOST_POOLS:])


def learned(known: Capacity | None) -> hazards.Learned:
    """Return a strategy's view of a workload's capacity: the shipped hazards, and the evidence."""
    shipped = hazards.SHIPPED
    if known is None or not _is_of(known, shipped):
        return hazards.Learned(shipped)
    return hazards.Learned(shipped, _belief(known, shipped), known.price)


@functools.lru_cache(8)
def version(used: hazards.Hazards) -> str:
    """Return the digest of the models of the evidence."""
    return hashlib.sha256(repr(used).encode()).hexdigest()[:12]


def _is_of(known: Capacity, used: hazards.Hazards) -> bool:
    return known.version in {"", version(used)} and len(known.evidence) == len(used.factors)


def _belief(known: Capacity, used: hazards.Hazards) -> hazards.Belief:
    evidence = np.array(known.evidence) if _is_of(known, used) else np.zeros(len(used.factors))
    return hazards.Belief(known.is_there, (known.seen_at - known.since) / _HOUR, evidence)


def _looked(known: Capacity | None, fleet: Fleet, works: Sequence[Workload], closed: _Closed) -> Capacity | None:
    rates = (going_rate(fleet, work, closed.get(work.name, frozenset())) for work in works)
    price = min((rate for rate in rates if rate is not None), default=None)
    if price is None and not any(was_asked(view, works) for view in fleet.markets.values()):
        return known  # nothing new is known
    if known is None:
        return _first(fleet.now, price)
    is_there = price is not None and not any(_was_lost(fleet, work, known) for work in works)
    passed = fleet.now - known.seen_at
    if passed <= timedelta(0) or (is_there is known.is_there and passed < SAME_EVERY):
        return known
    if passed > UNWATCHED:
        return _resumed(known, fleet.now, is_there, price)
    return _followed(known, fleet.now, is_there, price)


def was_asked(view: MarketView, works: Iterable[Workload]) -> bool:
    """Return whether a market was asked for offers: an answer without any is a look that found no capacity."""
    return bool(view.offers) or any(work.name in view.answered for work in works)


def _first(now: datetime, price: UsdPerHour | None) -> Capacity:
    nothing = (0.0,) * len(hazards.SHIPPED.factors)
    return Capacity(price is not None, now - _FIRST_AGE, now, nothing, price, version=version(hazards.SHIPPED))


def _resumed(known: Capacity, now: datetime, is_there: bool, price: UsdPerHour | None) -> Capacity:  # noqa: FBT001
    """Return the knowledge after a time without looks."""
    shipped = hazards.SHIPPED
    evidence = _belief(known, shipped).evidence * 0.5 ** ((now - known.seen_at) / _HOUR / shipped.half_life)
    begun = replace(_first(now, price), is_there=is_there, evidence=tuple(evidence.tolist()))
    begun = replace(begun, price=price or known.price, market=known.market, pool=known.pool)
    return replace(begun, there=known.there, away=known.away, looks=known.looks + 1)


def _followed(known: Capacity, now: datetime, is_there: bool, price: UsdPerHour | None) -> Capacity:  # noqa: FBT001
    shipped = hazards.SHIPPED
    hours = (now - known.seen_at) / _HOUR
    after = hazards.observe(shipped, _belief(known, shipped), is_up=is_there, hours=hours)
    has_changed = is_there is not known.is_there
    counted = _counted(known, now, has_ended=has_changed) if known.is_begun else known
    return replace(
        counted,
        is_there=is_there,
        since=now if has_changed else known.since,
        seen_at=now,
        evidence=tuple(float(each) for each in after.evidence),
        price=price or known.price,
        is_begun=known.is_begun or has_changed,
        version=version(shipped),
        looks=known.looks + 1,
    )


def _counted(known: Capacity, now: datetime, *, has_ended: bool) -> Capacity:
    """Return the counts plus the hours since the last look, which are divided among the bins of age that they cover."""
    edges = hazards.SHIPPED.edges
    counts = known.there if known.is_there else known.away
    ends, hours = _sized(counts.ends, len(edges)), _sized(counts.hours, len(edges))
    begin, end = (known.seen_at - known.since) / _HOUR, (now - known.since) / _HOUR
    for number, (low, high) in enumerate(zip(edges, (*edges[1:], float("inf")), strict=True)):
        hours[number] += max(min(end, high) - max(begin, low), 0.0)
    if has_ended:
        ends[hazards.SHIPPED.bin(begin)] += 1
    updated = Counts(tuple(ends), tuple(hours))
    return replace(known, there=updated) if known.is_there else replace(known, away=updated)


def _sized(values: Sequence[float], bins: int) -> list[float]:
    """Return the counts, or zeros if they were counted for another number of bins."""
    return list(values) if len(values) == bins else [0.0] * bins


def _was_lost(fleet: Fleet, work: Workload, known: Capacity) -> bool:
    return any(loss.slot.workload == work.name and loss.at > known.seen_at for loss in fleet.losses)


def going_rate(fleet: Fleet, work: Workload, closed: frozenset[str] = frozenset()) -> UsdPerHour | None:
    """Return the hourly cost of interruptible capacity, of a lease or an offer; None if there is none.

    Offers of `closed` markets do not count.
    """
    mine = (leases for place in work.places for leases in fleet.leases_of(place))
    leases = [lease.gpu_rate for lease in mine if lease.tenure is Tenure.INTERRUPTIBLE and lease.state in _HOLDS]
    return min(leases) if leases else min(_floors(fleet, work, closed), default=None)


def _floors(fleet: Fleet, work: Workload, closed: frozenset[str]) -> list[UsdPerHour]:
    refused = offer_refusal.Unavailable(cooling=cooldowns.without_capacity(fleet))
    return [
        row.floor
        for name, view in fleet.markets.items()
        if work.may_use(name) and name not in closed
        for row in view.offers
        if row.floor is not None
        and row.floor + row.disk_rate(work.disk_gb) <= work.price_of(row.gpu)
        and offer_refusal.refusal(row, work, fleet.now, refused) is None
    ]
