"""A question for offers -> the body of a search, and the check of its answer against the question.

Invariants:
1. Every filter is checked again on our side: the market does not always apply them.
2. A model is asked for in every spelling the market uses; underscores match nothing there.
3. A question about one offer filters by `ask_contract_id`: the market accepts a filter on `id` but matches nothing.
"""

from collections.abc import Callable, Iterable
from typing import Any

from agent.domain.market import gpu
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.markets.market_record import Figure, SavedOffer, UnreadableAnswer
from agent.markets.port import OfferQuery
from agent.markets.vast import names, query

Question = dict[str, Any]

SAVE = "vastai search offers --raw"
"""The vendor's command that prints an answer."""
_MOST_GPUS = 1024
TYPES = {Tenure.INTERRUPTIBLE: "bid", Tenure.ON_DEMAND: "on-demand"}

_STRICTER: dict[str, Callable[[float, float], float]] = {"gte": max, "gt": max, "lte": min, "lt": min}
_COUNTRY_LETTERS = 2
_NOTHING: tuple[object, ...] = (None, [])


def body(asked: OfferQuery, tenure: Tenure, spelled: names.GpuNames, rows: int) -> Question:
    """Return the body of a search for offers of a tenure, at most `rows` of them.

    Raises:
        BadQuery: the workload's own query cannot be asked.
    """
    wanted = _wanted(asked, spelled)
    question: Question = {
        field: dict([condition]) for field, condition in wanted.items() if condition[1] not in _NOTHING
    }
    _join(question, operators(asked, spelled))
    # The order sorts the returned sample, not the market.
    order = [["dlperf_per_dphtotal", "desc"]]
    return question | {"order": order, "type": TYPES[tenure], "limit": rows, "allocated_storage": asked.disk_gb}


def body_for_asks(offer_ids: Iterable[str], disk_gb: float) -> Question:
    """Return the body of the on-demand search for the asks of offers that a bid search found."""
    wanted = _numbers(offer_ids)
    return {
        "ask_contract_id": {"in": wanted},
        "rentable": {"eq": True},
        "type": TYPES[Tenure.ON_DEMAND],
        "limit": len(wanted),
        "allocated_storage": disk_gb,
    }


def operators(asked: OfferQuery, spelled: names.GpuNames) -> query.Filters:
    """Return the operator's own filters, with models in the market's spelling.

    Raises:
        BadQuery: they cannot be asked.
    """
    filters = query.parse(asked.requirements.query)
    models = filters.get("gpu_name", {})
    for operator in ("eq", "in"):
        if operator in models:
            wanted = models.pop(operator)
            listed = wanted if isinstance(wanted, list) else [wanted]
            models["in"] = list(spelled.spellings(gpu.model(str(name)) for name in listed))
    return filters


def fits(offer: Offer, asked: OfferQuery, tenure: Tenure) -> bool:
    """Return whether an offer matches the question."""
    wants = asked.requirements
    models = _models(asked)
    return (
        offer.gpus == wants.gpus
        and (not models or offer.gpu in models)
        and offer.vram_mb >= (wants.min_vram_mb or 0)
        and offer.reliability >= (wants.min_reliability or 0.0)
        and offer.inet_down_mbps >= (wants.min_inet_down_mbps or 0.0)
        and offer.disk_gb >= asked.disk_gb
        and (offer.is_verified or not wants.verified_only)
        and (offer.is_datacenter is True or not wants.datacenter_only)
        and (not asked.host_ids or offer.host_id in asked.host_ids)
        and (not asked.offer_ids or offer.offer_id in asked.offer_ids)
        and _is_affordable(offer, asked, tenure)
    )


def _wanted(asked: OfferQuery, spelled: names.GpuNames) -> dict[str, tuple[str, Any]]:
    """Return field -> (operator, value), with None or an empty list for fields that are not asked."""
    wants = asked.requirements
    # For a region of another length the market has no code; the answer is checked for it.
    has_codes = all(len(region) == _COUNTRY_LETTERS for region in wants.regions)
    return {
        "external": ("eq", False),
        "rentable": ("eq", True),
        "num_gpus": ("eq", wants.gpus),
        "verified": ("eq", True if wants.verified_only else None),
        "datacenter": ("eq", True if wants.datacenter_only else None),
        "gpu_name": ("in", list(spelled.spellings(_models(asked)))),
        "gpu_ram": ("gte", wants.min_vram_mb),
        "reliability": ("gte", wants.min_reliability),
        "inet_down": ("gte", wants.min_inet_down_mbps),
        "disk_space": ("gte", asked.disk_gb),
        "dph_total": ("lte", None if asked.max_price is None else asked.max_price.dollars),
        "geolocation": ("in", [region.upper() for region in wants.regions] if has_codes else None),
        "machine_id": ("in", _numbers(asked.host_ids)),
        "ask_contract_id": ("in", _numbers(asked.offer_ids)),
    }


def _is_affordable(offer: Offer, asked: OfferQuery, tenure: Tenure) -> bool:
    price: UsdPerHour | None = offer.floor if tenure is Tenure.INTERRUPTIBLE else offer.ask
    return asked.max_price is None or price is None or price + offer.disk_rate(asked.disk_gb) <= asked.max_price


def _models(asked: OfferQuery) -> tuple[gpu.GpuModel, ...]:
    return asked.gpu_models or asked.requirements.gpu_models


def _join(question: Question, filters: query.Filters) -> None:
    """Add the operator's filters. If both name a field, the stricter figure is sent and both are checked."""
    for field, conditions in filters.items():
        ours = question.setdefault(field, {})
        for operator, value in conditions.items():
            stricter = _STRICTER.get(operator)
            ours[operator] = stricter(ours[operator], value) if stricter and operator in ours else value


def _numbers(identifiers: Iterable[str]) -> list[int]:
    return [int(identifier) for identifier in identifiers if identifier.isascii() and identifier.isdigit()]


def saved(document: object) -> list[SavedOffer]:
    """Return the offers in the JSON of a saved answer. Raises: UnreadableAnswer."""
    offers = document.get("offers") if isinstance(document, dict) else document
    if not isinstance(offers, list):
        raise UnreadableAnswer("offers", f"is no list; save the output of {SAVE}")
    return [_saved(f"offers[{number}]", offer) for number, offer in enumerate(offers)]


def _saved(where: str, offer: object) -> SavedOffer:
    if not isinstance(offer, dict) or not isinstance(offer.get("gpu_name"), str):
        raise UnreadableAnswer(f"{where}.gpu_name", f"is missing; save the output of {SAVE} whole")
    count = offer.get("num_gpus")
    if not isinstance(count, int) or not 1 <= count <= _MOST_GPUS:
        raise UnreadableAnswer(f"{where}.num_gpus", "is no number of GPUs; save the search's output whole")
    # In an answer for bids the price of an offer is its lowest bid.
    ask = None if offer.get("is_bid") else offer.get("dph_base", offer.get("dph_total"))
    return SavedOffer(
        where,
        offer["gpu_name"],
        count,
        lowest_bid=Figure("min_bid", offer.get("min_bid")),
        ask=Figure("dph_total", ask),
        is_rentable=offer.get("rentable") is not False,
    )
