"""Statistics of the simulated market, measured in the same way as those of the recorded market."""

import dataclasses
import math
import random

from agent.simulator import climate_files, recorded_figures
from agent.simulator.market_model import Refusal
from agent.simulator.vast.model import Host, NoticeKind, RentTerms, Slice
from agent.simulator.vast.world import World

START = 1_790_000_000.0
WATCHED = 2.35 * 3600.0  # the span of the inbox at hand


@dataclasses.dataclass(frozen=True)
class Statistics:
    """The samples."""

    hosts: list[Host]
    slices: list[Slice]
    floor_over_ask: list[float]
    jumps: list[float]  # new floor over the bid that lost
    first_outbids: list[float]  # seconds from start notice to first outbid
    outbid_while_watched: float  # share of starts, each watched from a moment in the span to its end
    stopped: list[tuple[float, bool]]  # seconds stopped, and whether it ended by resuming


def draw(seeds: int = 3, hosts: int = 5_000, rents: int = 220, hours: float = 8.0) -> Statistics:
    """Rent in the calibrated climate like the owner of the recorded inbox, wait, and read the inbox."""
    found = Statistics([], [], [], [], [], 0.0, [])
    hits = starts = 0
    for seed in range(seeds):
        market = World(climate_files.named("recorded"), seed=seed, start=START, hosts=hosts, credit=1e6)
        found.hosts.extend(market.hosts.values())
        found.slices.extend(market.slices.values())
        found.floor_over_ask.extend(
            market.host_floor(slice_) / market.ask(slice_) for slice_ in market.slices.values() if slice_.gpus
        )
        _rent(market, random.Random(seed), rents)
        market.advance_to(market.now + hours * 3600.0)
        seen = _read(market, found, random.Random(seed))
        hits, starts = hits + seen[0], starts + seen[1]
    return dataclasses.replace(found, outbid_while_watched=hits / starts)


def _rent(market: World, rng: random.Random, rents: int) -> None:
    """Bid 1.2 times the quoted floor, at most 0.65 of the ask, on hosts in random order, one slice each."""
    times, limit = recorded_figures.RECORDER_BID
    slices = [slice_ for slice_ in market.listed() if slice_.gpus and market.is_rentable(slice_)]
    rng.shuffle(slices)
    held: set[int] = set()
    for slice_ in slices:
        quoted = market.quoted_floor(slice_)
        if len(held) >= rents or slice_.machine_id in held or quoted is None:
            continue
        if times * quoted > limit * market.ask(slice_):
            continue
        try:
            market.create(slice_.offer_id, RentTerms(20, "vllm/vllm-openai"), bid=times * quoted)
        except Refusal:
            continue
        held.add(slice_.machine_id)


def _read(market: World, found: Statistics, rng: random.Random) -> tuple[int, int]:
    started: dict[int, float] = {}
    first: dict[int, float] = {}
    stopped: dict[int, float] = {}
    for notice in market.inbox:
        key = notice.contract_id
        if key is None:
            continue
        if notice.kind is NoticeKind.STARTED:
            started[key] = notice.at
        elif notice.kind is NoticeKind.OUTBID and notice.new_floor is not None and notice.price is not None:
            found.jumps.append(notice.new_floor / round(notice.price, 2) if notice.price >= 0.1 else math.nan)
            stopped[key] = notice.at
            if key in started:
                first.setdefault(key, notice.at - started[key])
        elif notice.kind is NoticeKind.RESUMED and key in stopped:
            found.stopped.append((notice.at - stopped.pop(key), True))
    found.stopped.extend((market.now - at, False) for at in stopped.values())
    found.first_outbids.extend(first.values())
    found.jumps[:] = [jump for jump in found.jumps if not math.isnan(jump)]
    hits = sum(first.get(key, math.inf) <= rng.uniform(0.0, WATCHED) for key in started)
    return hits, len(started)
