"""What an hour of a workload's work is worth where its file says so as a share of the on-demand price.

The on-demand price of a workload is the mean of the `CHEAPEST` lowest asks among offers that fit it, with the disk, for
an hour at the speed of its fastest model. Offers of this cycle count first, then the last wide sample, then the asks of
the hosts of its own leases.

Invariants:
1. Without any such ask the value stays unknown, and the highest price counts as everywhere.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

import msgspec

from agent.decide.pricing import offer_refusal
from agent.decide.pricing.offer_terms import speed
from agent.decide.strategy import AUTO, Auto
from agent.domain.fleet import Fleet
from agent.domain.market.gpu import GpuModel
from agent.domain.market.offer import Offer
from agent.domain.money import UsdPerHour
from agent.domain.work.workload import Workload

CHEAPEST = 3
"""The number of lowest asks that make the price: a single lowest ask is often a mistake of its host. `gpubid estimate`
takes as many."""


def resolved(fleet: Fleet) -> Fleet:
    """Return the fleet with `value_per_hour` in dollars for each workload that has it as a share of on-demand."""
    if all(work.value_share is None for work in fleet.workloads):
        return fleet
    return msgspec.structs.replace(fleet, workloads=tuple(_valued(fleet, work) for work in fleet.workloads))


def share(number: float | Auto, work: Workload, unvalued: float) -> float:
    """Return a strategy's share of an hour's worth; "auto" is all of it, or `unvalued` for work without a value."""
    if number != AUTO:
        return number
    return unvalued if work.value_per_hour is None else 1.0


def on_demand_price(fleet: Fleet, work: Workload) -> UsdPerHour | None:
    """Return the on-demand price of an hour of a workload, by the latest asks; None if no ask is known."""
    views = [view for name, view in fleet.markets.items() if work.may_use(name)]
    full = fastest(fleet.typical, work)
    offers = _lowest([row for view in views for row in view.offers], work, fleet, full)
    sampled = offers or _lowest([row for view in views for row in view.sample], work, fleet, full)
    asks = sampled or sorted(
        (lease.ask + lease.disk_rate).scaled(1 / speed(lease.dlperf, full, math.inf))
        for lease in fleet.leases
        if lease.slot.workload == work.name and lease.ask is not None
    )
    cheapest = asks[:CHEAPEST]
    return UsdPerHour(sum(ask.micros for ask in cheapest) // len(cheapest)) if cheapest else None


def fastest(known: Mapping[tuple[GpuModel, int], float], work: Workload) -> float:
    """Return the DLPerf of the fastest slice among a workload's models, or 0 if it names fewer than two."""
    wants = work.requirements
    seen = [known.get((model, wants.gpus), 0.0) for model in wants.gpu_models]
    return max(seen) if len(seen) > 1 else 0.0


def _valued(fleet: Fleet, work: Workload) -> Workload:
    price = None if work.value_share is None else on_demand_price(fleet, work)
    if price is None or work.value_share is None:
        return work
    return replace(work, value_per_hour=price.scaled(work.value_share))


def _lowest(offers: Iterable[Offer], work: Workload, fleet: Fleet, full: float) -> list[UsdPerHour]:
    """Return the asks of fitting offers with the disk, each for an hour at full speed, in rising order."""
    fits = offer_refusal.fitting(work, fleet.now)
    return sorted(
        (row.ask + row.disk_rate(work.disk_gb)).scaled(1 / speed(row.dlperf, full, math.inf))
        for row in offers
        if row.ask is not None and fits(row)
    )
