"""Which offers fit a workload; for the rest, which requirement failed.

Invariants:
1. `refusal` names the first requirement that fails, in one fixed order, and None means that all hold.
2. A book yields exactly the offers whose refusal is None, best first, without looking at those that cannot be better.
"""

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.decide import price
from agent.domain import offer, workload

LEAST_STAY = timedelta(hours=2)
"""An offer whose host leaves the market sooner is not worth the loading."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an offer does not fit: a machine code and a sentence."""

    code: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Taken:
    """What may not be rented now: hosts that already hold a lease of ours, and what is cooling down (why, by key)."""

    hosts: Collection[str] = frozenset()
    cooling: Mapping[str, str] | None = None


def refusal(candidate: offer.Offer, work: workload.Workload, now: datetime, taken: Taken) -> Refusal | None:
    """Return the first requirement that `candidate` fails, or None when it fits."""
    wants = work.requirements
    if not candidate.is_rentable:
        return Refusal("not_rentable", "the market says that it cannot be rented now")
    if candidate.gpus != wants.gpus:
        return Refusal("gpus", f"has {candidate.gpus} GPUs, wanted {wants.gpus}")
    if wants.gpu_models and candidate.gpu not in wants.gpu_models:
        return Refusal("gpu", f"is {candidate.gpu}, wanted {' or '.join(wants.gpu_models)}")
    if wants.min_vram_mb is not None and candidate.vram_mb < wants.min_vram_mb:
        return Refusal("vram", f"has {candidate.vram_mb} MB of VRAM, wanted {wants.min_vram_mb}")
    if wants.verified_only and not candidate.is_verified:
        return Refusal("verified", "is not verified")
    if wants.min_reliability is not None and candidate.reliability < wants.min_reliability:
        return Refusal("reliability", f"has reliability {candidate.reliability:.4f}, wanted {wants.min_reliability}")
    if wants.min_inet_down_mbps is not None and candidate.inet_down_mbps < wants.min_inet_down_mbps:
        return Refusal(
            "inet_down", f"loads at {candidate.inet_down_mbps:.0f} Mb/s, wanted {wants.min_inet_down_mbps:.0f}"
        )
    if candidate.disk_gb < work.disk_gb:
        return Refusal("disk", f"has {candidate.disk_gb:.0f} GB of disk, wanted {work.disk_gb:.0f}")
    if wants.regions and not _is_in(candidate.region, wants.regions):
        return Refusal(
            "region", f"is in {candidate.region or 'an unknown region'}, wanted {' or '.join(wants.regions)}"
        )
    if candidate.ends_at is not None and candidate.ends_at - now < LEAST_STAY:
        return Refusal("ends_soon", f"leaves the market at {candidate.ends_at:%Y-%m-%d %H:%M} UTC")
    return _refusal_of_taken(candidate, taken)


def _refusal_of_taken(candidate: offer.Offer, taken: Taken) -> Refusal | None:
    if candidate.host_id in taken.hosts:
        return Refusal(
            "host_held", "its host already holds a lease of ours; a second slice would bid against the first"
        )
    if taken.cooling:
        for key in (f"offer:{candidate.offer_id}", f"host:{candidate.host_id}"):
            if key in taken.cooling:
                return Refusal("cooldown", f"rests after {taken.cooling[key]}")
    return None


def _is_in(region: str, wanted: tuple[str, ...]) -> bool:
    parts = {part.strip().casefold() for part in region.split(",")}
    return any(name.casefold() in parts or name.casefold() == region.casefold() for name in wanted)


class Book:
    """Offers, arranged so that the best for a workload are found without looking at all of them."""

    def __init__(self, offers: Iterable[offer.Offer]) -> None:
        """Arrange `offers`: by GPU model and count, each group by the lower bound of its cost."""
        self.offers = tuple(offers)
        groups: dict[tuple[str, int], list[tuple[float, int]]] = defaultdict(list)
        for place, candidate in enumerate(self.offers):
            groups[candidate.gpu, candidate.gpus].append((price.least_per_dlperf(candidate), place))
        for group in groups.values():
            group.sort()
        self._groups = dict(groups)

    def rising(self, work: workload.Workload) -> Iterator[tuple[float, offer.Offer]]:
        """Yield (lower bound, offer) of the workload's models and GPU count, in rising order of the bound."""
        wants = work.requirements
        models = wants.gpu_models or {model for model, _ in self._groups}
        groups = [group for model in models if (group := self._groups.get((model, wants.gpus)))]
        for bound, place in heapq.merge(*groups):
            yield bound, self.offers[place]
