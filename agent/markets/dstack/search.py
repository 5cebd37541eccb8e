"""A plan's row -> an offer of ours, checked against the question: the server does not know our names of models."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from agent.domain import money
from agent.domain.market import card_memory, host
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.markets import text
from agent.markets.dstack import figures, names, rows
from agent.markets.port import OfferQuery

MARKET = "dstack"
_FREE = frozenset({"available", "unknown"})
"""Availabilities of a row that can be rented. An idle or busy one is an old machine of the fleet, never used again."""
_OF_NOBODY = frozenset({"google", "intel", "tenstorrent"})


def offers(
    found: Iterable[rows.Offer], backends: frozenset[str], seen_at: datetime, asked_gb: float, egress: Mapping[str, int]
) -> list[Offer]:
    """Return the readable offers that can be rented, the cheapest first, each pool once.

    `asked_gb` is the disk that the plan was asked for, `egress` micro-dollars for a gigabyte that leaves each cloud.
    """
    made = [
        _offer(row, seen_at, asked_gb, egress.get(row.backend, 0))
        for row in found
        if row.backend in backends and row.availability in _FREE
    ]
    by_id: dict[str, Offer] = {}
    known = [one for one in made if one is not None]
    for offer in sorted(known, key=lambda one: (one.ask or one.floor or money.FREE, one.offer_id)):
        by_id.setdefault(offer.offer_id, offer)
    return list(by_id.values())


def fits(offer: Offer, asked: OfferQuery) -> bool:
    """Return whether an offer matches. A `query` is in another market's grammar and filters nothing."""
    wants, most = asked.requirements, asked.max_price
    models = asked.gpu_models or wants.gpu_models
    return (
        offer.gpus == wants.gpus
        and (not models or offer.gpu in models)
        and offer.vram_mb >= (wants.min_vram_mb or 0)
        and offer.reliability >= (wants.min_reliability or 0.0)
        and offer.inet_down_mbps >= (wants.min_inet_down_mbps or 0.0)
        and (not wants.regions or offer.region in wants.regions)
        and not wants.network_volume
        and (not asked.host_ids or offer.host_id in asked.host_ids)
        and (not asked.offer_ids or offer.offer_id in asked.offer_ids)
        and (most is None or (offer.ask or offer.floor or most) <= most)
        and (Tenure.INTERRUPTIBLE if offer.is_price_taken else Tenure.ON_DEMAND) in asked.tenures
    )


def cheapest(offers: Iterable[Offer], most: int) -> list[Offer]:
    """Return at most so many offers of each cloud, model and tenure, in their order.

    A plan has a row for each tenure, and its rows cost nothing more: a cut through all of it would leave spot pools
    alone, which are the cheapest, and no machine on demand.
    """
    taken: Counter[tuple[str, str, bool]] = Counter()
    found = []
    for offer in offers:
        group = (host.first_part(offer.host_id), offer.gpu, offer.is_price_taken)
        taken[group] += 1
        if taken[group] <= most:
            found.append(offer)
    return found


def price(dollars: float | None) -> UsdPerHour | None:
    """Return the rate of a price, rounded up, or None for a missing or absurd one; a comparison with NaN is false."""
    if dollars is None or not 0 < dollars <= figures.MOST_DOLLARS_PER_HOUR:
        return None
    return money.per_hour_up(dollars)


def paid_price(dollars: float | None, most: UsdPerHour | None) -> UsdPerHour | None:
    """Return the rate of a machine; None if it is above the highest price of the order, which the server never pays."""
    rate = price(dollars)
    return None if rate is not None and most is not None and rate.micros > most.micros + 1 else rate


def ordered_price(dollars: float | None) -> UsdPerHour | None:
    """Return the rate that an order was made with, which `orders.dollars` rounded up by less than a micro-dollar."""
    return price(None if dollars is None else round(dollars, 6))


def _offer(row: rows.Offer, seen_at: datetime, asked_gb: float, egress: int) -> Offer | None:
    gpus, is_spot = row.instance.resources.gpus, row.instance.resources.spot
    card = gpus[0].name if gpus else ""
    where = names.pool_of(row.backend, row.region, row.instance.name, card, is_spot=is_spot)
    listed = price(row.price)
    if where is None or listed is None or not gpus:
        return None
    if len({gpu.name for gpu in gpus}) > 1 or (gpus[0].vendor or "") in _OF_NOBODY:
        return None
    model = names.model(gpus[0].name)
    most = card_memory.GIGABYTES.get(model)
    told = max(0, min(gpu.memory_mib for gpu in gpus))
    return Offer(
        market=MARKET,
        offer_id=where.offer_id,
        host_id=where.host_id,
        owner_id="",
        gpu=model,
        gpus=len(gpus),
        vram_mb=told if most is None else min(told, most * figures.MB_PER_GB),
        dlperf=names.dlperf(model) * len(gpus),
        reliability=figures.RELIABILITY,
        is_verified=True,
        region=text.clean(where.region, 64),
        inet_down_mbps=figures.INET_MBPS,
        inet_up_mbps=figures.INET_MBPS,
        disk_gb=_disk_gb(row.instance.resources.disk, max(asked_gb, figures.LEAST_DISK_GB.get(row.backend, 0))),
        ask=None if is_spot else listed,
        floor=listed if is_spot else None,
        storage_micros_per_gb_month=0,
        traffic_down_micros_per_gb=0,
        traffic_up_micros_per_gb=0,
        ends_at=None,
        seen_at=seen_at,
        is_datacenter=True,
        is_price_taken=is_spot,
        opens_ports=False,
        asks_pages=True,
        egress_micros_per_gb=egress,
        keeps_disk=False,
    )


def _disk_gb(told: rows.Disk | None, asked_gb: float) -> float:
    """Return the largest disk that a machine may have. A disk of at most the asked size means that any size is made.

    What is asked of a cloud is at least the smallest disk that it makes.
    """
    size = max(0, told.size_mib) / figures.MB_PER_GB if told is not None else 0.0
    return figures.LARGEST_DISK_GB if 0 < size <= math.ceil(asked_gb) else size
