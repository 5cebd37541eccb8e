"""A question for offers, checked against every offer of the catalogue: the market filters almost nothing."""

from agent.domain.market.offer import Offer
from agent.markets.port import OfferQuery


def fits(offer: Offer, asked: OfferQuery) -> bool:
    """Return whether an offer matches. A `query` is in another market's grammar and filters nothing."""
    wants = asked.requirements
    models = asked.gpu_models or wants.gpu_models
    return (
        offer.gpus == wants.gpus
        and (not models or offer.gpu in models)
        and offer.vram_mb >= (wants.min_vram_mb or 0)
        and offer.reliability >= (wants.min_reliability or 0.0)
        and offer.inet_down_mbps >= (wants.min_inet_down_mbps or 0.0)
        and (offer.is_verified or not wants.verified_only)
        and (offer.is_datacenter is True or not wants.datacenter_only)
        and (not wants.network_volume or wants.network_volume in offer.network_volumes)
        and (not wants.regions or _is_in(offer.region, wants.regions))
        and (not asked.host_ids or offer.host_id in asked.host_ids)
        and (not asked.offer_ids or offer.offer_id in asked.offer_ids)
        and _is_affordable(offer, asked)
    )


def _is_in(region: str, wanted: tuple[str, ...]) -> bool:
    parts = {part.strip().casefold() for part in region.split(",")}
    return any(name.casefold() in parts for name in wanted)


def _is_affordable(offer: Offer, asked: OfferQuery) -> bool:
    prices = [price for price in (offer.ask, offer.floor) if price is not None]
    most, disk = asked.max_price, offer.disk_rate(asked.disk_gb)
    return most is None or any(price + disk <= most for price in prices)
