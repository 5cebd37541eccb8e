"""Draw the hosts of a simulated market and the slices they offer.

1. The same seed and number of hosts give the same market, id for id.
2. Models of GPU and the number of GPUs are drawn in strata, so that even fifty hosts look like the market.
"""

import bisect
import dataclasses
import itertools
import math
import random
import statistics
from collections.abc import Sequence
from typing import Any

from agent.simulator import recorded_figures
from agent.simulator.vast import card_catalogue, places
from agent.simulator.vast.model import Gpu, Host, Slice

# GPUs of a host and their share, fitted to CENSUS_OFFERS over CENSUS_HOSTS and to SINGLE_GPU_SHARES; assumed otherwise.
SIZES: tuple[tuple[float, int], ...] = ((0.24, 1), (0.30, 2), (0.29, 4), (0.03, 6), (0.14, 8))
WHOLE_ONLY = 0.57  # share of hosts with several GPUs that rent them only all together
SECOND_BLOCK = 0.18  # chance that a size has a second slice, which overlaps the whole but not the first one
DISK_ONLY = 0.02  # share of hosts that also rent bare disk
DATACENTERS = 0.2  # share of owners that run one
STATIC_IPS = 0.2  # share of the other hosts with a static address
VERIFIED, UNVERIFIED = 0.72, 0.22  # share of hosts; the rest has lost its verification
LISTED_SINCE_KNOWN = 0.97  # share of hosts with a known date of listing
LIKE_THE_OWNER = 0.4  # chance that a host's floor or end is its owner's habit
ENDS_SOON, ENDS_NEVER = 0.03, 0.015  # share of hosts whose listing ends within days, or in another century
SMALL_LARGE_CARD = 0.3  # chance that such a card comes in fewer than eights
CHEAP = 0.1  # $/h below which hosts set prices in tenths of a cent
LARGE_CARDS = frozenset({"A100 SXM4", "H100 SXM", "H200", "B200"})  # come in eights, seldom alone
NEW_OWNER = 0.45  # chance that a host has a new owner
DAY = 86_400.0


class Owner:
    """An account that rents hosts out, with the traits that its hosts share."""

    __slots__ = ("down", "end", "floor", "is_datacenter", "owner_id", "place", "price", "reach", "storage", "up")

    def __init__(self, rng: random.Random) -> None:
        """Draw one."""
        self.owner_id = rng.randrange(1_000, 620_000)
        self.place = rng.choices(places.PLACES, cum_weights=_PLACE_WEIGHTS)[0]
        self.is_datacenter = rng.random() < DATACENTERS
        self.price = rng.lognormvariate(0.0, recorded_figures.PRICE_SPREAD * 0.7)
        self.floor = rng.random()
        storage = min(max(rng.lognormvariate(math.log(0.15), 0.65), 0.01), 1.0)
        self.storage = round(storage, 2) * recorded_figures.FEE
        self.up = round(min(rng.lognormvariate(math.log(3.0), 1.1), 30.0), 1) / 1024 * recorded_figures.FEE
        self.down = self.up * rng.choice((1.0, 1.0, 0.67, 0.5))
        self.reach = rng.lognormvariate(math.log(1500.0), 0.9) * self.place[2]
        self.end = rng.random()


_PLACE_WEIGHTS = list(itertools.accumulate(place[0] for place in places.PLACES))
_DRIVER_WEIGHTS = list(itertools.accumulate(driver[0] for driver in places.DRIVERS))


def draw_hosts(rng: random.Random, count: int, start: float) -> list[Host]:
    """Draw a number of hosts, in the order of their ids."""
    models = _strata(rng, [weight for weight, _ in card_catalogue.MODELS], count)
    sizes = _strata(rng, [share for share, _ in SIZES], count)
    ids = sorted(rng.sample(range(1_000, 1_000 + max(150_000, 4 * count)), count))
    owners: list[Owner] = []
    hosts: list[Host] = []
    for index, machine_id in enumerate(ids):
        if not owners or rng.random() < NEW_OWNER:
            owners.append(Owner(rng))
            owner = owners[-1]
        else:
            owner = rng.choice(owners)
        gpu = card_catalogue.MODELS[models[index]][1]
        hosts.append(_host(rng, machine_id, owner, gpu, _size(rng, gpu, SIZES[sizes[index]][1]), start))
    return hosts


def draw_slices(rng: random.Random, hosts: Sequence[Host]) -> dict[int, Slice]:
    """Draw the hosts' slices: aligned blocks of their GPUs that overlap, and now and then only disk."""
    blocks = [(host, gpus) for host in hosts for gpus in _blocks(rng, host)]
    ids = sorted(rng.sample(range(8_000_000, 8_000_000 + max(40_000_000, 4 * len(blocks))), len(blocks)))
    return {
        offer_id: Slice(offer_id, host.machine_id, host, gpus)
        for offer_id, (host, gpus) in zip(ids, blocks, strict=True)
    }


def _strata(rng: random.Random, weights: Sequence[float], count: int) -> list[int]:
    """Draw indices in proportion to their weights, as evenly as whole numbers allow, in random order."""
    bounds = list(itertools.accumulate(weights))
    drawn = [bisect.bisect_right(bounds, (index + rng.random()) / count * bounds[-1]) for index in range(count)]
    rng.shuffle(drawn)
    return [min(index, len(weights) - 1) for index in drawn]


def _size(rng: random.Random, gpu: Gpu, drawn: int) -> int:
    if gpu.name in LARGE_CARDS:
        return drawn if rng.random() < SMALL_LARGE_CARD else 8
    return drawn


def _host(rng: random.Random, machine_id: int, owner: Owner, gpu: Gpu, count: int, start: float) -> Host:
    """Draw one host of an owner."""
    ask = gpu.price * owner.price * owner.place[3] * rng.lognormvariate(0.0, recorded_figures.PRICE_SPREAD * 0.7)
    ask = max(round(ask, 3 if ask < CHEAP else 2), 0.002)
    floor = max(round(ask * _floor_ratio(rng, owner), 3), 0.001)
    reliability = _reliability(rng)
    parts = _parts(rng, count)
    reach = min(owner.reach * rng.lognormvariate(0.0, 0.4), 32_000.0)
    speed = _speed(rng.gauss(0.0, 1.0))
    return Host(
        machine_id=machine_id,
        owner_id=owner.owner_id,
        gpu=gpu,
        gpu_count=count,
        first_gpu_id=machine_id * 10,
        ask_per_gpu=ask * recorded_figures.FEE,
        floor_per_gpu=floor * recorded_figures.FEE,
        storage_price=owner.storage,
        up_price=owner.up,
        down_price=owner.down,
        inet_up=round(reach * rng.uniform(0.4, 1.0), 1),
        inet_down=round(reach, 1),
        reliability=round(reliability, 7),
        true_reliability=min(max(1.0 - (1.0 - reliability) * rng.lognormvariate(0.0, 0.5), 0.5), 0.99999),
        verification=_verification(rng.random()),
        is_datacenter=owner.is_datacenter,
        is_static_ip=owner.is_datacenter or rng.random() < STATIC_IPS,
        geolocation=owner.place[1],
        public_ip=f"198.51.100.{rng.randrange(1, 255)}",
        listed_since=start - rng.expovariate(1 / (2 * DAY)) if rng.random() < LISTED_SINCE_KNOWN else None,
        end_time=_end_time(rng, owner, start),
        **_hardware(rng, gpu, count, parts, speed),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of a host, from the lists in `places`."""

    processor: tuple[str, int, float, str, float]
    disk: tuple[str, float]
    driver: tuple[float, str, float]


def _parts(rng: random.Random, gpus: int) -> _Parts:
    processor = places.PROCESSORS[_processor(rng, gpus)]
    disk = rng.choice(places.DISKS)
    return _Parts(processor, disk, rng.choices(places.DRIVERS, cum_weights=_DRIVER_WEIGHTS)[0])


def _hardware(rng: random.Random, gpu: Gpu, count: int, parts: _Parts, speed: float) -> dict[str, Any]:
    """Draw the hardware fields of a host. The order of the draws decides the market of a seed."""
    return {
        "dlperf_per_gpu": gpu.dlperf * speed,
        "tflops_per_gpu": gpu.tflops * (1.0 + rng.uniform(-0.015, 0.015)),
        "memory_bw": round(gpu.memory_bw * rng.uniform(0.95, 1.02), 1),
        "driver": parts.driver[1],
        "cuda": parts.driver[2],
        "cpu_name": parts.processor[0],
        "cpu_cores": parts.processor[1],
        "cpu_ghz": parts.processor[2],
        "ram_mb": int(count * rng.choice((32, 32, 64, 64, 96, 128)) * rng.uniform(990, 1010)),
        "disk_gb": round(count * min(max(rng.lognormvariate(math.log(420.0), 0.7), 60.0), 4000.0), 1),
        "disk_bw": round(parts.disk[1] * rng.uniform(0.7, 1.05), 1),
        "disk_name": parts.disk[0],
        "board": parts.processor[3],
        "os_version": rng.choice(("20.04", "22.04", "22.04", "24.04")),
        "pci_gen": min(parts.processor[4], 4.0),
        "pcie_bw": round(rng.uniform(0.75, 1.0) * 6.5 * min(parts.processor[4], 4.0), 1),
        "pcie_lanes": rng.choice((8, 16, 16, 16)),
        "direct_ports": rng.choice((24, 49, 99, 101, 249, 499)),
        "has_avx": True,
        "credit_discount": rng.choice((0.0, 0.05, 0.1, 0.15, 0.4)),
    }


def _floor_ratio(rng: random.Random, owner: Owner) -> float:
    """Draw floor over ask from recorded_figures.FLOOR_KINDS; an owner's hosts tend to the same ratio."""
    drawn = owner.floor if rng.random() < LIKE_THE_OWNER else rng.random()
    for share, low, high in recorded_figures.FLOOR_KINDS:
        if drawn < share:
            return rng.uniform(low, high)
        drawn -= share
    return 1.0


def _speed(normal: float) -> float:
    """Return a host's share of its card's speed by one normal draw, mostly about 1: recorded_figures.SPEED_KINDS."""
    drawn = statistics.NormalDist().cdf(normal)
    for share, low, high in recorded_figures.SPEED_KINDS:
        if drawn < share:
            return low + (high - low) * drawn / share
        drawn -= share
    as_others = sum(kind[0] for kind in recorded_figures.SPEED_KINDS)
    rest = min(max(drawn / (1.0 - as_others), 1e-9), 1.0 - 1e-9)
    return math.exp(statistics.NormalDist(0.0, recorded_figures.SPEED_NOISE).inv_cdf(rest))


def _reliability(rng: random.Random) -> float:
    """Draw an advertised reliability; fitted to recorded_figures.RELIABILITY, whose median is near 0.996."""
    return 1.0 - min(rng.lognormvariate(math.log(0.0045), 1.25), 0.4)


def _processor(rng: random.Random, gpus: int) -> int:
    """Choose a processor with enough lanes for the GPUs."""
    large, medium = 8, 3
    if gpus >= large:
        return rng.choice((1, 2, 3, 5, 10, 11))
    if gpus >= medium:
        return rng.choice((0, 1, 2, 3, 4, 9, 10))
    return rng.randrange(len(places.PROCESSORS))


def _verification(drawn: float) -> str:
    if drawn < VERIFIED:
        return "verified"
    return "unverified" if drawn < VERIFIED + UNVERIFIED else "deverified"


def _end_time(rng: random.Random, owner: Owner, start: float) -> float:
    """Draw when the listing ends: mostly months away, now and then within days or never."""
    drawn = owner.end if rng.random() < LIKE_THE_OWNER else rng.random()
    if drawn < ENDS_SOON:
        return round(start + rng.uniform(0.4, 6.0) * DAY)
    if drawn > 1.0 - ENDS_NEVER:
        return 4_071_532_194.0
    return round(start + min(rng.lognormvariate(math.log(90.0), 0.8), 700.0) * DAY)


def _blocks(rng: random.Random, host: Host) -> list[tuple[int, ...]]:
    count = host.gpu_count
    blocks = [tuple(range(count))]
    if count > 1 and rng.random() >= WHOLE_ONLY:
        for size in (4, 2, 1):
            if size < count:
                blocks.append(tuple(range(size)))
                last = (count // size - 1) * size
                if last and rng.random() < SECOND_BLOCK:
                    blocks.append(tuple(range(last, last + size)))
    if rng.random() < DISK_ONLY:
        blocks.append(())
    return blocks
