"""The offers that fit a workload; for the others, the first requirement that failed.

Invariants:
1. `refusal` names the first requirement that fails, in one fixed order. None means that all are met.
2. `fitting` and `is_free` together agree with `refusal` on every offer.
3. A book gives every offer of a workload's models and GPU count, in rising order of a lower bound of its cost.
"""

import math
import statistics
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

import msgspec

from agent.decide.pricing import measured_speed, useful_hour
from agent.domain import money
from agent.domain.market import host, offer, tenure
from agent.domain.market.gpu import GpuModel
from agent.domain.record.cooldown import CooldownKind, Cooling
from agent.domain.record.host_check import HostCheck
from agent.domain.work import workload

LEAST_STAY = workload.Requirements().min_end_ahead
"""The required time before a host leaves the market, for a workload without a requirement."""
_KEYS: tuple[tuple[CooldownKind, Callable[[offer.Offer], str]], ...] = (
    (CooldownKind.OFFER, lambda row: row.key),
    (CooldownKind.HOST, lambda row: str(row.host)),
    (CooldownKind.OWNER, lambda row: str(row.owner)),
    (CooldownKind.MARKET, lambda row: row.market),
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an offer does not fit."""

    code: str
    """The requirement that failed, for programs."""
    sentence: str
    """The same for a person, in words that follow the host."""


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Hosts and offers that may not be rented now."""

    hosts: Collection[host.HostKey] = frozenset()
    """The hosts with a lease of ours."""
    cooling: Cooling | None = None
    """The cooldowns in force."""
    refused_bids: Mapping[str, money.UsdPerHour] = field(default_factory=dict)
    """The highest bid on each offer, by its key, that was just refused as too low."""

    def refuses(self, candidate: offer.Offer, way: useful_hour.Way) -> bool:
        """Return whether a way is a bid that is no higher than a refused one: the quoted floor is stale or rounded."""
        refused = self.refused_bids.get(candidate.key) if way.tenure is tenure.Tenure.INTERRUPTIBLE else None
        return refused is not None and way.bid <= refused


def refusal(candidate: offer.Offer, work: workload.Workload, now: datetime, taken: Unavailable) -> Refusal | None:
    """Return the first requirement that `candidate` fails, or None when it fits."""
    return (
        _refusal_of_hardware(candidate, work.requirements)
        or _refusal_of_host(candidate, work, now)
        or _refusal_of_taken(candidate, taken)
    )


def _refusal_of_hardware(candidate: offer.Offer, wants: workload.Requirements) -> Refusal | None:
    if not candidate.is_rentable:
        return Refusal("not_rentable", "cannot be rented now, as its market says")
    if candidate.gpus != wants.gpus:
        return Refusal("gpus", f"has {candidate.gpus} GPUs, wanted {wants.gpus}")
    if wants.gpu_models and candidate.gpu not in wants.gpu_models:
        return Refusal("gpu", f"is {candidate.gpu}, wanted {' or '.join(wants.gpu_models)}")
    if wants.min_vram_mb is not None and candidate.vram_mb < wants.min_vram_mb:
        return Refusal("vram", f"has {candidate.vram_mb} MB of VRAM, wanted {wants.min_vram_mb}")
    if wants.verified_only and not candidate.is_verified:
        return Refusal("verified", "is not verified")
    return _refusal_of_place(candidate, wants)


def _refusal_of_place(candidate: offer.Offer, wants: workload.Requirements) -> Refusal | None:
    if wants.network_volume and wants.network_volume not in candidate.network_volumes:
        return Refusal("network_volume", f"cannot mount network volume {wants.network_volume}, which is elsewhere")
    if not wants.datacenter_only:
        return None
    if candidate.is_datacenter is None:
        return Refusal("datacenter_unknown", f"is on {candidate.market}, which does not show data centres")
    return None if candidate.is_datacenter else Refusal("datacenter", "is not in a data centre")


def _refusal_of_host(candidate: offer.Offer, work: workload.Workload, now: datetime) -> Refusal | None:
    wants = work.requirements
    least, speed = wants.min_reliability, wants.min_inet_down_mbps
    if least is not None and candidate.reliability < least:
        return Refusal("reliability", f"has reliability {candidate.reliability:.4f}, wanted {least}")
    if speed is not None and candidate.inet_down_mbps < speed:
        return Refusal("inet_down", f"loads at {candidate.inet_down_mbps:.0f} Mb/s, wanted {speed:.0f}")
    if not candidate.keeps_disk and not _may_lose_disk(work):
        return Refusal(
            "keeps_no_disk",
            f"is on {candidate.market}, which keeps no disk of a lost instance, as checkpoints need",
        )
    if not work.is_reachable(opens_ports=candidate.opens_ports, asks_pages=candidate.asks_pages):
        what = "its proxy sends requests to one" if work.has_proxy else "readiness is asked at one"
        return Refusal("no_ports", f"is on {candidate.market}, which opens no ports, and {what}")
    if candidate.disk_gb < work.disk_gb:
        return Refusal("disk", f"has {candidate.disk_gb:.0f} GB of disk, wanted {work.disk_gb:.0f}")
    if wants.regions and not _is_in(candidate.region, wants.regions):
        where = candidate.region or "an unknown region"
        return Refusal("region", f"is in {where}, wanted {' or '.join(wants.regions)}")
    if candidate.ends_at is not None and candidate.ends_at - now < wants.min_end_ahead:
        return Refusal("ends_soon", f"leaves the market at {candidate.ends_at:%Y-%m-%d %H:%M} UTC")
    return None


def _may_lose_disk(work: workload.Workload) -> bool:
    return work.may_lose_disk or work.checkpoint.place is not workload.CheckpointPlace.DISK


def _refusal_of_taken(candidate: offer.Offer, taken: Unavailable) -> Refusal | None:
    if candidate.host in taken.hosts and not host.is_pool(candidate.host_id):
        return Refusal("host_held", "already holds a lease of ours; another slice would bid against it")
    why = next(_cooldown_grounds(candidate, taken.cooling), None) if taken.cooling else None
    return Refusal("cooldown", f"is in cooldown after {why}") if why is not None else None


def wanted(work: workload.Workload) -> Hashable:
    """Return all of a workload that decides which offers fit it: with equal values the same offers fit."""
    without_port = work.is_reachable(opens_ports=False, asks_pages=False)
    with_page = work.is_reachable(opens_ports=False, asks_pages=True)
    return work.requirements, work.disk_gb, _may_lose_disk(work), without_port, with_page


def fitting(work: workload.Workload, now: datetime) -> Callable[[offer.Offer], bool]:
    """Return a fast check that agrees with `refusal` when nothing is taken: it runs for thousands of offers a plan."""
    wants = work.requirements
    gpus, models, regions, verified_only = wants.gpus, frozenset(wants.gpu_models), wants.regions, wants.verified_only
    datacenter_only, volume = wants.datacenter_only, wants.network_volume
    vram, disk, stays_until = wants.min_vram_mb or 0, work.disk_gb, now + wants.min_end_ahead
    reliability = -math.inf if wants.min_reliability is None else wants.min_reliability
    speed = -math.inf if wants.min_inet_down_mbps is None else wants.min_inet_down_mbps
    may_lose_disk = _may_lose_disk(work)
    without_port = work.is_reachable(opens_ports=False, asks_pages=False)
    with_page = work.is_reachable(opens_ports=False, asks_pages=True)

    def fits(row: offer.Offer) -> bool:
        """Return whether an offer meets every requirement."""
        return (
            row.is_rentable
            and row.gpus == gpus
            and (not models or row.gpu in models)
            and row.vram_mb >= vram
            and (row.is_verified or not verified_only)
            and (row.is_datacenter is True or not datacenter_only)
            and (not volume or volume in row.network_volumes)
            and row.reliability >= reliability
            and row.inet_down_mbps >= speed
            and (row.keeps_disk or may_lose_disk)
            and (row.opens_ports or without_port or (row.asks_pages and with_page))
            and row.disk_gb >= disk
            and (not regions or _is_in(row.region, regions))
            and (row.ends_at is None or row.ends_at >= stays_until)
        )

    return fits


def cheapest(
    offers: Iterable[offer.Offer], work: workload.Workload, now: datetime
) -> tuple[money.UsdPerHour | None, money.UsdPerHour | None]:
    """Return the lowest floor and the lowest on-demand price among the offers that fit; None without any."""
    fits = fitting(work, now)
    rows = [row for row in offers if fits(row)]
    floors = [row.floor for row in rows if row.floor is not None]
    asks = [row.ask for row in rows if row.ask is not None]
    return min(floors, default=None), min(asks, default=None)


def is_free(row: offer.Offer, taken: Unavailable) -> bool:
    """Return whether no taken host and no cooldown forbids an offer, as `refusal` also checks."""
    if row.host in taken.hosts and not host.is_pool(row.host_id):
        return False
    return not taken.cooling or next(_cooldown_grounds(row, taken.cooling), None) is None


def _cooldown_grounds(row: offer.Offer, cooling: Cooling) -> Iterator[str]:
    """Yield the grounds of the cooldowns of an offer, its host, its owner and its market."""
    for kind, key_of in _KEYS:
        grounds = cooling.get(kind)
        why = grounds.get(key_of(row)) if grounds else None
        if why is not None:
            yield why


@lru_cache(maxsize=65_536)
def _is_in(region: str, wanted: tuple[str, ...]) -> bool:
    parts = {part.strip().casefold() for part in region.split(",")}
    return any(name.casefold() in parts or name.casefold() == region.casefold() for name in wanted)


class OrderedOffers:
    """Offers at one instant, arranged so that a workload's best ones are found without reading all."""

    def __init__(self, offers: Iterable[offer.Offer]) -> None:
        """Arrange `offers` by GPU model and count, each group by the lower bound of its cost."""
        self.offers = tuple(offers)
        self._groups: dict[tuple[str, int], list[tuple[float, int]]] = {}
        self._rising: dict[tuple[frozenset[str], int], tuple[tuple[float, offer.Offer], ...]] = {}
        for place, candidate in enumerate(self.offers):
            bound = useful_hour.least_per_dlperf(candidate)
            self._groups.setdefault((candidate.gpu, candidate.gpus), []).append((bound, place))

    def rising(self, wants: workload.Requirements) -> tuple[tuple[float, offer.Offer], ...]:
        """Return (lower bound, offer) of the wanted models and GPU count, by rising bound."""
        asked = frozenset[str](wants.gpu_models), wants.gpus
        if asked not in self._rising:
            models = asked[0] or {model for model, _ in self._groups}
            rows = sorted(row for model in models for row in self._groups.get((model, wants.gpus), ()))
            self._rising[asked] = tuple((bound, self.offers[place]) for bound, place in rows)
        return self._rising[asked]


def _measured(
    offers: Mapping[str, tuple[offer.Offer, ...]], checks: Iterable[HostCheck]
) -> Mapping[str, tuple[offer.Offer, ...]]:
    """Return the offers.

    A pool without a benchmark gets the DLPerf that our own checks measured on its model, else the median of cards of
    its model elsewhere.
    """
    lacking = {row.gpu for rows in offers.values() for row in rows if row.dlperf <= 0 and host.is_pool(row.host_id)}
    if not lacking:
        return offers
    shown: dict[GpuModel, list[float]] = {}
    for row in (row for rows in offers.values() for row in rows if row.gpu in lacking and row.dlperf > 0):
        shown.setdefault(row.gpu, []).append(row.dlperf / row.gpus)
    each = {model: statistics.median(figures) for model, figures in shown.items()}
    each |= measured_speed.benchmarks(checks, lacking)
    return {
        name: tuple(
            msgspec.structs.replace(row, dlperf=each[row.gpu] * row.gpus)
            if row.dlperf <= 0 and row.gpu in each and host.is_pool(row.host_id)
            else row
            for row in rows
        )
        for name, rows in offers.items()
    }


class OffersByMarkets:
    """The offers of all markets at one instant: one book for each set of markets that workloads use."""

    def __init__(self, offers: Mapping[str, tuple[offer.Offer, ...]], checks: Iterable[HostCheck] = ()) -> None:
        """Take the offers by market, and our checks of hosts; a book is arranged when it is first needed."""
        self._offers = _measured(offers, checks)
        self._books: dict[tuple[str, ...], OrderedOffers] = {}

    def of(self, work: workload.Workload) -> OrderedOffers:
        """Return the offers of the markets on which a workload may run."""
        markets = tuple(name for name in sorted(self._offers) if work.may_use(name))
        if markets not in self._books:
            self._books[markets] = OrderedOffers(row for name in markets for row in self._offers[name])
        return self._books[markets]
