"""Decode, match, score and plan the whole market, beside json.loads of the same bytes."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from agent import strategy_files
from agent.decide import plan
from agent.decide.limits import limits
from agent.decide.strategy import Tuned
from agent.domain import money
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market import gpu
from agent.domain.market.label import Label
from agent.domain.market.offer import Offer
from agent.domain.record import hold
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Requirements, Workload, WorkloadKind
from agent.markets.vast import parse
from agent.simulator import climate_files
from agent.simulator.vast.http import offer_rows
from agent.simulator.vast.world import World
from tests.bench import report
from tests.support import builders
from tests.support import whole_market as market_answer

HOSTS = 7400
WORKLOADS = 100
SLOTS_EACH = 10
ROUNDS = 7
START = 1_793_836_800.0
NOW = datetime.fromtimestamp(START, UTC)
MODELS = ("RTX 4090", "RTX 3090", "RTX 5090", "RTX A6000", "RTX 3060", "H100 SXM", "A100 SXM4", "RTX 4080", "L40S")
MOST = 1.0
"""Times json.loads."""


def whole_market() -> bytes:
    """Encode every offer of a market of 7,400 hosts, full width, all of them to be had: nothing is skipped early."""
    world = World(climate_files.named("calm"), seed=7, start=START, hosts=HOSTS)
    raw = market_answer.encoded(world, offer_rows.ON_DEMAND)
    return raw.replace(b'"rentable":false', b'"rentable":true')


def workloads() -> tuple[Workload, ...]:
    """Name workloads that ask for one model, for several, or for any."""
    return tuple(_workload(number) for number in range(WORKLOADS))


def _workload(number: int) -> Workload:
    models = [MODELS[number % len(MODELS)], MODELS[(number // 3) % len(MODELS)]][: 1 + number % 2]
    wants = Requirements(
        gpus=(1, 1, 2, 1, 4)[number % 5],
        gpu_models=() if number % 10 == 9 else tuple(gpu.model(name) for name in models),
        min_vram_mb=8192,
        min_reliability=0.9,
        verified_only=number % 4 == 0,
        min_inet_down_mbps=100.0,
        regions=("US", "SE", "DE") if number % 7 == 3 else (),
    )
    return Workload(
        name=f"w{number:03}",
        image="image",
        max_price=money.per_hour("6.00"),
        strategy="patient" if number % 8 else "ondemand",
        requirements=wants,
        slots=SLOTS_EACH,
        checkpoint=Checkpoint(place=CheckpointPlace.REMOTE),
    )


def once(raw: bytes, fleet: Fleet, tuned: Mapping[str, Tuned]) -> plan.Plan:
    """Go from the bytes of an answer to a plan."""
    offers = parse.harvest(raw, NOW).offers
    view = msgspec.structs.replace(fleet.markets["vast"], offers=tuple(offers))
    return plan.plan(msgspec.structs.replace(fleet, markets={"vast": view}), tuned, limits.Limits())


def empty_fleet() -> Fleet:
    """Give a fleet that rents nothing yet."""
    view = MarketView(
        market="vast", listed_at=NOW, is_fresh=True, listings=5, is_key_proven=True, credit=money.usd(1000)
    )
    return Fleet(
        fleet_id="f1ee7",
        now=NOW,
        monotonic=0.0,
        started_at=NOW,
        workloads=workloads(),
        markets={"vast": view},
    )


def full_fleet(offers: list[Offer], state: LeaseState) -> Fleet:
    """Give a fleet whose slots are all filled, each on a host of its own, in one state."""
    fleet = empty_fleet()
    by_host = list({offer.host_id: offer for offer in offers}.values())
    places = [place for work in fleet.workloads for place in work.places]
    leases = [
        lease(number, place, offer, state) for number, (place, offer) in enumerate(zip(places, by_host, strict=False))
    ]
    return msgspec.structs.replace(fleet, leases=tuple(leases))


def lease(number: int, place: Slot, offer: Offer, state: LeaseState) -> Lease:
    return builders.lease(
        number,
        slot=place,
        host_id=offer.host_id,
        owner_id=offer.owner_id,
        gpu=offer.gpu,
        gpus=offer.gpus,
        state=state,
        opened_at=NOW - timedelta(hours=2),
        state_since=NOW - timedelta(minutes=5),
        accrued_until=NOW - timedelta(minutes=2),
        run_since=NOW - timedelta(minutes=5) if state is LeaseState.RUNNING else None,
        ask=offer.ask,
        host_floor=offer.floor,
    )


def half_fleet(offers: list[Offer]) -> Fleet:
    """Give a fleet of which every other slot runs, and is listed under its label."""
    fleet = full_fleet(offers, LeaseState.RUNNING)
    leases = fleet.leases[::2]
    rows = tuple(
        builders.instance(number * 2, host_id=lease.host_id, label="ours") for number, lease in enumerate(leases)
    )
    names = {lease.instance_id: Label(fleet.fleet_id, lease.slot, lease.intent_id) for lease in leases}
    view = msgspec.structs.replace(fleet.markets["vast"], instances=rows, labels=names)
    return msgspec.structs.replace(fleet, leases=leases, markets={"vast": view})


def array_fleet(offers: list[Offer]) -> Fleet:
    """Give a fleet of one array of 1,000 slots, of which some are done and 7 of 8 run, so that one begins."""
    name, fleet = "sweep", full_fleet(offers, LeaseState.RUNNING)
    work = replace(fleet.workloads[1], name=name, slots=1000, kind=WorkloadKind.BATCH, array=ArrayTerms(8))
    live = tuple(
        msgspec.structs.replace(lease, slot=Slot(name, 400 + index)) for index, lease in enumerate(fleet.leases[:7])
    )
    marks = (OperatorHold(Word.DONE, hold.of_slot(place), NOW, "its end") for place in work.places[:400])
    return msgspec.structs.replace(fleet, workloads=(work,), leases=live, holds=tuple(marks))


def wide_array_fleet(offers: list[Offer]) -> Fleet:
    """Give the same array as wide as it is long, with nothing done and 8 of its slots running: all others begin."""
    fleet = array_fleet(offers)
    work = replace(fleet.workloads[0], array=ArrayTerms(1000))
    more = msgspec.structs.replace(fleet.leases[0], lease_id="more", instance_id="more", slot=Slot(work.name, 999))
    since = NOW - timedelta(hours=2)
    ready = tuple(msgspec.structs.replace(lease, run_since=since) for lease in (*fleet.leases, more))
    return msgspec.structs.replace(fleet, workloads=(work,), leases=ready, holds=())


def wanting(fleet: Fleet, **changes: Any) -> Fleet:
    """Give the fleet with every workload's requirements changed alike."""
    works = (replace(work, requirements=replace(work.requirements, **changes)) for work in fleet.workloads)
    return msgspec.structs.replace(fleet, workloads=tuple(works))


def measure() -> bool:
    """Print the ratios; return whether all are within bounds."""
    raw = whole_market()
    tuned = strategy_files.load()
    offers = parse.harvest(raw, NOW).offers
    size = f"{len(offers):,} offers ({len(raw) / 1e6:.1f} MB), {WORKLOADS} workloads, {WORKLOADS * SLOTS_EACH:,} slots"
    print(f"decode + match + score + plan: {size}")
    anything = wanting(empty_fleet(), gpus=1, gpu_models=(), regions=())
    cases = {
        "every slot runs": full_fleet(offers, LeaseState.RUNNING),
        "every slot is paused": full_fleet(offers, LeaseState.PAUSED),
        "every slot is empty": empty_fleet(),
        "every other slot is empty": half_fleet(offers),
        "all empty, all want the same": anything,
        "an array of 1,000: 400 done, 8 live": array_fleet(offers),
        "an array of 1,000, all at once, 8 live": wide_array_fleet(offers),
        "all empty, any model, nothing fits": wanting(anything, min_reliability=0.99999999),
    }
    verdicts = [_case(name, raw, fleet, tuned) for name, fleet in cases.items()]
    return all(verdicts)


def _case(name: str, raw: bytes, fleet: Fleet, tuned: Mapping[str, Tuned]) -> bool:
    ours, theirs, made = report.against(ROUNDS, lambda: once(raw, fleet, tuned), lambda: json.loads(raw))
    kinds = Counter(type(decision).__name__.lower() for decision in made.decisions)
    figure = f"{ours * 1000:.0f} ms; json.loads {theirs * 1000:.0f} ms"
    compared = f"ratio {ours / theirs:.2f}, at most {MOST}"
    said = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return report.line(f"{name}: {said}", figure, compared, holds=ours <= MOST * theirs)
