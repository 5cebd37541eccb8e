"""Decode, match, score and plan three whole markets together, beside json.loads of the same bytes."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from agent import strategy_files
from agent.decide import plan
from agent.decide.limits import limits
from agent.decide.strategy import Tuned
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market.instance import Instance
from agent.domain.market.label import Label
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.record.lease import Lease, LeaseState
from agent.markets.mithril import names
from agent.markets.mithril import parse as bid_rows
from agent.markets.mithril import prices as told_prices
from agent.markets.mithril import rules as uniform
from agent.markets.mithril import search as pools
from agent.markets.runpod import parse as pod_rows
from agent.markets.runpod import rules as listed
from agent.markets.vast import parse
from agent.markets.vast import rules as at_a_bid
from agent.simulator import climate_files
from agent.simulator.http_wire import Asked
from agent.simulator.simulated_clock import ScaledClock
from agent.simulator.simulated_market import SimulatedMarket
from agent.simulator.vast.http import call_gate
from agent.simulator.vast.world import World
from tests.bench import planning, report
from tests.bench.planning import MOST, NOW, ROUNDS, START
from tests.support import builders
from tests.support.steered import Simulator

RULES = {"vast": at_a_bid.RULES, "runpod": listed.RULES, "mithril": uniform.RULES}
DISK_MICROS = 80_000
CLOUDS = (pod_rows.SECURE, pod_rows.COMMUNITY)
COUNTS = (1, 2, 4)
"""The numbers of GPUs that the workloads want; RunPod is asked for each in each cloud."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What the three markets answer, whole: RunPod's by cloud and number of GPUs, Mithril's prices by pool."""

    vast: bytes
    runpod: Mapping[tuple[str, int], bytes]
    types: bytes
    auctions: bytes
    prices: Mapping[names.Pool, bytes]

    def all(self) -> Iterator[bytes]:
        """Yield every body."""
        yield from (self.vast, *self.runpod.values(), self.types, self.auctions, *self.prices.values())

    def offers(self) -> dict[str, tuple[Offer, ...]]:
        """Decode every offer, by market."""
        return {
            "vast": tuple(parse.harvest(self.vast, NOW).offers),
            "runpod": tuple(self._pods()),
            "mithril": tuple(self._pools()),
        }

    def _pods(self) -> Iterator[Offer]:
        for (cloud, gpus), body in self.runpod.items():
            for row in pod_rows.catalogue(body):
                yield from pod_rows.offers(row, cloud, gpus, None, NOW, {})

    def _pools(self) -> Iterator[Offer]:
        kinds = bid_rows.instance_types(self.types)
        for row in bid_rows.auctions(self.auctions):
            if row.pool is not None and row.instance_type in kinds:
                bare = pools.offer(row.pool, kinds[row.instance_type], DISK_MICROS, NOW)
                yield pools.priced(bare, told_prices.prices(self.prices[row.pool]))


async def answers() -> Answers:
    """Ask the simulated markets once, the way the adapters do; Vast's answer is its whole market in one."""
    clock = ScaledClock(START, speed=0.0)
    simulator = Simulator(World(climate_files.named("calm"), seed=7, start=START, hosts=1), clock)
    runpod, mithril = simulator.sides["runpod"], simulator.sides["mithril"]
    catalogue = {"include": "AVAILABILITY", "product": "POD"}
    pods = {
        (cloud, gpus): await _asked(runpod, "/v2/catalog/gpus", cloud=cloud, count=str(gpus), **catalogue)
        for cloud in CLOUDS
        for gpus in COUNTS
    }
    auctions = await _asked(mithril, "/v2/spot/availability")
    places = [row.pool for row in bid_rows.auctions(auctions) if row.pool is not None]
    prices = {
        place: await _asked(mithril, "/v2/pricing/current", instance_type=place.instance_type, region=place.region)
        for place in places
    }
    return Answers(planning.whole_market(), pods, await _asked(mithril, "/v2/instance-types"), auctions, prices)


async def _asked(market: SimulatedMarket, path: str, **query: str) -> bytes:
    key = {"Authorization": f"Bearer {call_gate.DEFAULT_KEY}"}
    answer = await market.answer(Asked("GET", path, query, key, base_url="http://127.0.0.1"))
    assert answer.status == 200, answer.body
    return answer.body


def once(told: Answers, fleet: Fleet, tuned: Mapping[str, Tuned]) -> plan.Plan:
    """Go from the bytes of the answers to a plan."""
    offers = told.offers()
    views = {name: msgspec.structs.replace(view, offers=offers[name]) for name, view in fleet.markets.items()}
    return plan.plan(msgspec.structs.replace(fleet, markets=views), tuned, limits.Limits())


def empty_fleet() -> Fleet:
    """Give a fleet on three markets that rents nothing yet."""
    fleet = planning.empty_fleet()
    vast = fleet.markets["vast"]
    views: dict[str, MarketView] = {
        name: msgspec.structs.replace(vast, market=name, rules=rules) for name, rules in RULES.items()
    }
    return msgspec.structs.replace(fleet, markets=views)


def full_fleet(offers: Mapping[str, tuple[Offer, ...]], state: LeaseState) -> Fleet:
    """Give a fleet whose slots are all filled, on the three markets by turns."""
    fleet = empty_fleet()
    priced = {
        "vast": list({offer.host_id: offer for offer in offers["vast"]}.values()),
        "runpod": [offer for offer in offers["runpod"] if offer.ask is not None],
        "mithril": [offer for offer in offers["mithril"] if offer.floor is not None],
    }
    markets = list(priced)
    leases = []
    for number, place in enumerate(place for work in fleet.workloads for place in work.places):
        market = markets[number % len(markets)]
        mine = priced[market]
        leases.append(_lease(number, market, mine[number // len(markets) % len(mine)], slot=place, state=state))
    return msgspec.structs.replace(fleet, leases=tuple(leases))


def _lease(number: int, market: str, offer: Offer, **changes: Any) -> Lease:
    lease = planning.lease(number, changes["slot"], offer, changes["state"])
    lease = msgspec.structs.replace(lease, lease_id=f"{market}-{number}", market=market, offer_id=offer.offer_id)
    if market == "runpod":
        return msgspec.structs.replace(lease, tenure=Tenure.ON_DEMAND)
    return lease if market == "vast" else msgspec.structs.replace(lease, bid_limit=builders.per_hour("6.00"))


def half_fleet(offers: Mapping[str, tuple[Offer, ...]]) -> Fleet:
    """Give a fleet of which every other slot runs, and is listed by its market under its label."""
    fleet = full_fleet(offers, LeaseState.RUNNING)
    leases = fleet.leases[::2]
    views = {}
    for name, view in fleet.markets.items():
        mine = [lease for lease in leases if lease.market == name]
        labels = {lease.instance_id: Label(fleet.fleet_id, lease.slot, lease.intent_id) for lease in mine}
        rows = tuple(map(_row, mine))
        views[name] = msgspec.structs.replace(view, instances=rows, labels=labels)
    return msgspec.structs.replace(fleet, leases=leases, markets=views)


def _row(lease: Lease) -> Instance:
    return builders.instance(
        int(lease.instance_id),
        market=lease.market,
        host_id=lease.host_id,
        label="ours",
        tenure=lease.tenure,
        limit=lease.bid_limit,
    )


def measure() -> bool:
    """Print the ratios; return whether all are within bounds."""
    told = asyncio.run(answers())
    tuned = strategy_files.load()
    offers = told.offers()
    counts = ", ".join(f"{len(rows):,} of {name}" for name, rows in offers.items())
    size = sum(map(len, told.all())) / 1e6
    works, slots = planning.WORKLOADS, planning.WORKLOADS * planning.SLOTS_EACH
    print(f"decode + match + score + plan: offers {counts} ({size:.1f} MB), {works} workloads, {slots:,} slots")
    cases = {
        "every slot runs": full_fleet(offers, LeaseState.RUNNING),
        "every slot is paused": full_fleet(offers, LeaseState.PAUSED),
        "every slot is empty": empty_fleet(),
        "every other slot is empty": half_fleet(offers),
        "all empty, all want the same": planning.wanting(empty_fleet(), gpus=1, gpu_models=(), regions=()),
    }
    verdicts = [_case(name, told, fleet, tuned) for name, fleet in cases.items()]
    return all(verdicts)


def _case(name: str, told: Answers, fleet: Fleet, tuned: Mapping[str, Tuned]) -> bool:
    def decoded() -> list[object]:
        return [json.loads(body) for body in told.all()]

    ours, theirs, made = report.against(ROUNDS, lambda: once(told, fleet, tuned), decoded)
    kinds = Counter(type(decision).__name__.lower() for decision in made.decisions)
    figure = f"{ours * 1000:.0f} ms; json.loads {theirs * 1000:.0f} ms"
    said = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    compared = f"ratio {ours / theirs:.2f}, at most {MOST}"
    return report.line(f"{name}: {said}", figure, compared, holds=ours <= MOST * theirs)
