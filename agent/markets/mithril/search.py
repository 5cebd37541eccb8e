"""A pool with its prices -> an offer of one machine, checked against the question: the market filters nothing."""

from collections.abc import Collection
from datetime import datetime

import msgspec

from agent.domain import card_benchmarks
from agent.domain.market.offer import Offer
from agent.domain.money import UsdPerHour
from agent.markets import text
from agent.markets.mithril import figures, names, parse, prices
from agent.markets.port import OfferQuery

_HUGE_GB = 1_000_000


def fits(offer: Offer, asked: OfferQuery) -> bool:
    """Return whether an offer matches, but for its price. A `query` is in another market's grammar and filters nothing.

    Every machine is in a data centre, so every offer counts as verified.
    """
    wants = asked.requirements
    models = asked.gpu_models or wants.gpu_models
    return (
        offer.gpus == wants.gpus
        and (not models or offer.gpu in models)
        and offer.vram_mb >= (wants.min_vram_mb or 0)
        and offer.reliability >= (wants.min_reliability or 0.0)
        and offer.inet_down_mbps >= (wants.min_inet_down_mbps or 0.0)
        and (not wants.regions or _is_in(offer.region, wants.regions))
        and (not asked.host_ids or offer.host_id in asked.host_ids)
        and (not asked.offer_ids or offer.offer_id in asked.offer_ids)
    )


def offer(pool: names.Pool, kind: parse.InstanceType, disk_micros: int | None, seen_at: datetime) -> Offer:
    """Return the offer of a pool without its prices; figures.py has the figures that the market does not report.

    It has no ask, since nothing is sold on demand: a reservation's price is for a term.
    """
    model = kind.model
    return Offer(
        market=parse.MARKET,
        offer_id=pool.offer_id,
        host_id=pool.host_id,
        owner_id="",
        gpu=model,
        gpus=kind.num_gpus,
        vram_mb=kind.vram_mb,
        dlperf=card_benchmarks.dlperf(model) * kind.num_gpus,
        reliability=figures.RELIABILITY,
        is_verified=True,
        region=text.clean(names.region(pool.region), 64),
        inet_down_mbps=figures.INET_MBPS,
        inet_up_mbps=figures.INET_MBPS,
        # The market reports no size of a boot disk and takes none in an order, so no size excludes a pool.
        disk_gb=_HUGE_GB,
        ask=None,
        floor=None,
        storage_micros_per_gb_month=disk_micros or 0,
        traffic_down_micros_per_gb=0,
        traffic_up_micros_per_gb=0,
        ends_at=None,
        seen_at=seen_at,
        is_price_unknown=True,
        is_datacenter=True,
    )


def priced(offer: Offer, shown: prices.Prices | None, own: Collection[UsdPerHour] = ()) -> Offer:
    """Return an offer with the price to win and the price paid; a pool without prices has an unknown price.

    `own` are limits of bids of ours that hold machines there.
    """
    if shown is None:
        return offer
    to_win = shown.to_win(own)
    return msgspec.structs.replace(offer, floor=to_win, is_price_unknown=to_win is None, price_paid=shown.paid)


def _is_in(region: str, wanted: tuple[str, ...]) -> bool:
    parts = {part.strip().casefold() for part in region.split(",")}
    return any(name.casefold() in parts for name in wanted)
