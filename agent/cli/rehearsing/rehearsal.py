"""A rehearsal: agent and simulator in one process, real HTTP on loopback, and a clock that is stepped by hand.

With real processes the clock runs at a multiple of the machine's, and a seed does not repeat the same run.
The report has two independent sources: the ledger's own figures, and the simulator's truth.
"""

import contextlib
import random
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agent.app import App
from agent.cli.shared import simulated_volumes
from agent.clock import PacedClock, SteppedClock, SystemClock
from agent.config.settings import Config, MarketSettings
from agent.cycle import Pass
from agent.decide.accounting import meter
from agent.decide.pricing import offer_refusal
from agent.decide.strategy import Tuned
from agent.domain.market.gpu import GpuModel
from agent.domain.market.tenure import Tenure
from agent.domain.record.account import VOLUME, Line
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease
from agent.domain.work.workload import Workload
from agent.ledger.ledger_errors import LedgerError
from agent.ledger.tables.spend_rows import SpendKey, SpendLine
from agent.markets import labels, registered_markets
from agent.outside import Outside
from agent.simulator import climate, climate_files
from agent.simulator.market_server import Simulator
from agent.simulator.processes import process_registry
from agent.simulator.simulated_market import Ask

START = datetime(2026, 7, 27, tzinfo=UTC)
"""First instant of rehearsals: the UTC day with most recorded figures."""
KEY = "simulated-key"
BUSY_SECONDS = 2.0
"""After a write the next cycle follows soon, as in the daemon."""
SAMPLE_SECONDS = 900.0
"""How often the cheapest matching ask is recorded."""
ORPHAN_SECONDS = 600.0
FLEET_ID = "c0ffee000000"
TICK_SECONDS = 0.05
"""Real seconds between two steps of a market with real processes while it gets no requests."""


@dataclass(slots=True)
class Tally:
    """Counts of a running rehearsal."""

    cheapest: list[tuple[float, float]] = field(default_factory=list)
    next_sample: float = 0.0
    cycles: int = 0


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A finished rehearsal: its figures as in `--json`, and the facts of its report."""

    figures: Mapping[str, Any]
    events: tuple[Event, ...]
    spend: tuple[SpendLine, ...]
    leases: tuple[Lease, ...]
    config: Config
    paid: tuple[Line, ...] = ()
    """The ledger's record of paid time, by lease and day."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The settings of a rehearsal. `on_progress` receives the share done, `on_pass` each pass as it ends."""

    climate: str
    hours: float
    seed: int
    strategy: str | None = None
    hosts: int | None = None
    speed: float | None = None
    """Simulated seconds per real second, for a climate with real processes. The default is 30."""
    start: datetime = START
    is_kept: bool = False
    """Whether its ledger is kept. Then each cycle records the end, because a killed rehearsal records nothing."""
    on_progress: Callable[[float], None] = lambda _: None
    on_pass: Callable[[App, Pass], None] = lambda _app, _done: None


async def rehearse(
    config: Config, tuned: Mapping[str, Tuned], scene: Scene, directory: Path | None = None
) -> Rehearsal:
    """Run the whole program against a simulated market for `scene.hours` of its time.

    The ledger is created in `directory`, or in a temporary directory that is removed.

    Raises:
        ClimateError: there is no such climate, or it does not run at that speed.
    """
    if directory is None:
        with tempfile.TemporaryDirectory(prefix="gpubid-rehearsal-") as folder:
            return await _rehearse(config, tuned, scene, Path(folder))
    return await _rehearse(config, tuned, replace(scene, is_kept=True), directory)


async def _rehearse(config: Config, tuned: Mapping[str, Tuned], scene: Scene, directory: Path) -> Rehearsal:
    wall = SystemClock()
    began = wall.monotonic()
    clock, processes = _paced(scene) if climate_files.named(scene.climate).processes else (_stepped(scene), None)
    simulated = Simulator.begun(
        climate_files.named(scene.climate),
        clock,
        seed=scene.seed,
        start=clock.time(),
        hosts=scene.hosts,
        processes=processes,
    )
    config = _staged(config, scene, directory)
    ids = random.Random(f"{scene.seed}/ids")  # noqa: S311 - a rehearsal repeats itself, secrets are not at stake
    async with simulated as simulator:
        simulated_volumes.put(simulator, config.workloads)
        outside = Outside(
            clock,
            lambda _: KEY,
            {market.name: simulator.url(market.name) for market in config.markets},
            new_id=lambda: f"{ids.getrandbits(64):016x}",
            jitter=ids.random,
            fleet_id=FLEET_ID,
        )
        app = await App.open(config, tuned, outside)
        try:
            tally = await _run(app, clock, simulator, scene)
            return await _report(app, simulator, tally, scene, wall.monotonic() - began)
        finally:
            await _note_end(app)
            await app.close()


async def _note_end(app: App) -> None:
    """Record the end in the ledger, so that verbs that read it later meter its open leases no further."""
    # A rehearsal that a broken ledger ended has already said so.
    with contextlib.suppress(LedgerError):
        async with app.ledger.transaction() as tx:
            tx.keep_rehearsal_end(app.clock.now())


def _stepped(scene: Scene) -> SteppedClock:
    if scene.speed is not None:
        raise climate.ClimateError(f"{scene.climate!r} has no real processes and runs as fast as it can: no --speed")
    return SteppedClock(scene.start)


def _paced(scene: Scene) -> tuple[PacedClock, process_registry.ProcessRegistry]:
    speed = process_registry.MOST_SPEED if scene.speed is None else scene.speed
    if not process_registry.LEAST_SPEED <= speed <= process_registry.MOST_SPEED:
        raise climate.ClimateError(f"{scene.climate!r} runs at a --speed from 1 to 30, not at {speed:g}")
    clock = PacedClock(scene.start, speed)
    return clock, process_registry.ProcessRegistry(clock, speed=speed)


def _staged(config: Config, scene: Scene, directory: Path) -> Config:
    """Return the configuration with simulated markets and its own ledger. A rehearsal never uses a real ledger."""
    markets = tuple(
        MarketSettings(market.name, "", scene.climate, "", None, spend=False, options=market.options)
        for market in config.markets
    )
    # A guard would write to the real bucket.
    workloads = tuple(replace(work, guard=None) for work in config.workloads)
    if scene.strategy is not None:
        workloads = tuple(replace(work, strategy=scene.strategy) for work in workloads)
    return replace(config, markets=markets, workloads=workloads, ledger=directory / "rehearsal.sqlite", log_bytes=0)


async def _run(app: App, clock: SteppedClock | PacedClock, simulator: Simulator, scene: Scene) -> Tally:
    tally = Tally()
    end = scene.hours * 3600
    while clock.monotonic() < end:
        began = clock.monotonic()
        done = await app.cycle()
        tally.cycles += 1
        if scene.is_kept:
            await _note_end(app)
        scene.on_pass(app, done)
        if clock.monotonic() >= tally.next_sample:
            tally.next_sample = clock.monotonic() + SAMPLE_SECONDS
            _sample(tally, app, simulator, clock)
            scene.on_progress(min(1.0, clock.monotonic() / end))
        wait = BUSY_SECONDS if done.is_busy else app.config.poll.total_seconds()
        await _pass(clock, simulator, max(wait - (clock.monotonic() - began), 0.1))
    return tally


async def _pass(clock: SteppedClock | PacedClock, simulator: Simulator, seconds: float) -> None:
    """Let time pass. With a running clock, step the market too, so that processes end with their instance."""
    if isinstance(clock, SteppedClock):
        clock.advance(seconds)
        return
    end = clock.monotonic() + seconds
    while (left := end - clock.monotonic()) > 0:
        simulator.advance_to(clock.time())
        await clock.sleep(min(left, TICK_SECONDS * clock.speed))


def _sample(tally: Tally, app: App, simulator: Simulator, clock: SteppedClock | PacedClock) -> None:
    simulator.advance_to(clock.time())
    markets = {market.name for market in app.config.markets}
    asks = [ask for work in app.rules.workloads if (ask := _cheapest_ask(work, simulator, markets, clock.now()))]
    if asks:
        tally.cheapest.append((clock.time(), sum(asks) / len(asks)))


def _cheapest_ask(work: Workload, simulator: Simulator, markets: set[str], now: datetime) -> float | None:
    """Return dollars per hour, with disk, of the cheapest on-demand offer that meets the requirements."""
    fitting = (
        ask.dollars
        for name in sorted(markets)
        for ask in simulator.sides[name].asks(work.requirements.gpus, work.disk_gb)
        if _fits(ask, work, registered_markets.record(name).gpu_model, now)
    )
    return min(fitting, default=None)


def _fits(ask: Ask, work: Workload, model: Callable[[str], GpuModel], now: datetime) -> bool:
    wants = work.requirements
    return (
        (not wants.gpu_models or model(ask.gpu) in wants.gpu_models)
        and (not wants.verified_only or ask.is_verified)
        and (not wants.datacenter_only or ask.is_datacenter)
        and ask.reliability >= (wants.min_reliability or 0.0)
        and ask.inet_down_mbps >= (wants.min_inet_down_mbps or 0.0)
        and ask.vram_mb >= (wants.min_vram_mb or 0)
        and ask.disk_gb >= work.disk_gb
        and ask.ends_at - now.timestamp() >= offer_refusal.LEAST_STAY.total_seconds()
    )


async def _report(app: App, simulator: Simulator, tally: Tally, scene: Scene, wall: float) -> Rehearsal:
    now = app.clock.now()
    simulator.advance_to(now.timestamp())
    truth = _truth(app, simulator)
    reader = await app.ledger.reader()
    events = tuple(reversed(await reader.events(limit=100_000)))
    leases = await reader.leases(limit=100_000)
    # The simulated market charges for leases alone.
    lines = [line for line in await reader.spend_by(SpendKey.LEASE) if not line.key.startswith(VOLUME)]
    lines += [_open_line(charge) for lease in leases if lease.is_open for charge in meter.accrue(lease, now)]
    spend = sum(line.amount.dollars for line in lines)
    running, useful = _hours(app, lines, leases, now)
    asks = [price for _, price in tally.cheapest]
    on_demand_cost = sum(asks) / len(asks) * useful if asks else None
    losses = [event for event in events if event.kind == EventKind.LEASE_INTERRUPTED]
    figures: dict[str, Any] = {
        "climate": scene.climate,
        "seed": scene.seed,
        "strategy": sorted({work.strategy for work in app.rules.workloads}),
        "start": scene.start.isoformat(),
        "simulated_hours": scene.hours,
        "wall_seconds": round(wall, 3),
        "cycles": tally.cycles,
        "hosts": truth["hosts"],
        "slots": sum(work.slots for work in app.rules.workloads),
        "useful_hours": round(useful, 4),
        "running_hours": round(running, 4),
        "interruptions": dict(Counter(event.cause.value for event in losses if event.cause is not None)),
        "resumed_in_place": sum(event.kind == EventKind.LEASE_RESUMED for event in events),
        "moved": sum(event.kind == EventKind.LEASE_RELEASED_BY_US and event.reason_code == "moved" for event in events),
        "moves_per_slot_day": round(_moves_per_slot_day(app, leases, scene.hours), 4),
        "on_demand_hours": round(_on_demand_hours(leases, lines), 4),
        "spend": round(spend, 6),
        "charged": round(truth["charged_total"], 6),
        "ondemand_cost": None if on_demand_cost is None else round(on_demand_cost, 6),
        "savings_ratio": round(1 - spend / on_demand_cost, 4) if on_demand_cost else None,
        "orphans": _orphans(truth["contracts"], leases, events, now.timestamp()),
        "double_rents": _double_rents(truth["contracts"]),
        "calls": sum(len(simulator.sides[market.name].calls) for market in app.config.markets),
        "search_rows": truth["search_rows"],
        "over_cap": round(_over_cap(app, simulator, now), 6),
    }
    return Rehearsal(figures, events, tuple(lines), tuple(leases), app.config, tuple(await reader.lines()))


def _truth(app: App, simulator: Simulator) -> Mapping[str, Any]:
    """Return the truth of the configured markets as one value."""
    sides = [simulator.sides[market.name] for market in app.config.markets]
    truths = [side.truth() for side in sides]
    return {
        "contracts": [contract for truth in truths for contract in truth["contracts"]],
        "charged_total": sum(truth["charged_total"] for truth in truths),
        "hosts": sum(side.hosts for side in sides),
        "search_rows": sum(truth.get("search_rows", 0) for truth in truths),
    }


def _open_line(charge: meter.Charge) -> SpendLine:
    """Return the cost of an open lease since the ledger last counted."""
    return SpendLine(charge.lease_id, charge.gpu, charge.disk, charge.traffic, charge.running_seconds, 0.0)


def _hours(app: App, lines: list[SpendLine], leases: list[Lease], now: datetime) -> tuple[float, float]:
    """Return (running, useful) hours. A stretch that still runs counts as useful to its end."""
    running = sum(line.running_seconds for line in lines)
    useful = sum(line.useful_seconds for line in lines)
    checkpoints = {work.name: work.checkpoint for work in app.rules.workloads}
    for lease in leases:
        if lease.run_since is None or not lease.is_open:
            continue
        checkpoint = checkpoints.get(lease.slot.workload)
        if checkpoint is not None:
            stretch = (now - lease.run_since).total_seconds()
            useful += meter.useful_seconds(stretch, checkpoint, is_lost=False)
    return running / 3600, useful / 3600


def _moves_per_slot_day(app: App, leases: list[Lease], hours: float) -> float:
    """Return moves per slot and day: how often a slot ran on another lease than before. A failed start is no move."""
    ran = Counter(lease.slot for lease in leases if lease.has_run and not lease.is_held)
    slots = sum(work.slots for work in app.rules.workloads)
    return sum(count - 1 for count in ran.values()) / (slots * hours / 24) if slots else 0.0


def _on_demand_hours(leases: list[Lease], lines: list[SpendLine]) -> float:
    on_demand = {lease.lease_id for lease in leases if lease.tenure is Tenure.ON_DEMAND}
    return sum(line.running_seconds for line in lines if line.key in on_demand) / 3600


def _orphans(contracts: list[Mapping[str, Any]], leases: list[Lease], events: tuple[Event, ...], now: float) -> int:
    """Return the instances that billed for more than ten minutes with neither a lease nor an open intent."""
    by_instance = {lease.instance_id: lease for lease in leases}
    return sum(
        _unaccounted(contract, by_instance.get(str(contract["id"])), events, now) > ORPHAN_SECONDS
        for contract in contracts
    )


def _unaccounted(contract: Mapping[str, Any], lease: Lease | None, events: tuple[Event, ...], now: float) -> float:
    end = float(contract["ended"]) if contract["ended"] is not None else now
    if lease is not None:
        closed = lease.ended_at.timestamp() if lease.ended_at is not None else now
        before = max(0.0, lease.opened_at.timestamp() - float(contract["created"]))
        return max(before - _doubted(contract, events, now), 0.0) + max(0.0, end - closed)
    return max(0.0, end - float(contract["created"]) - _doubted(contract, events, now))


def _doubted(contract: Mapping[str, Any], events: tuple[Event, ...], now: float) -> float:
    """Return how long the intent that rented the instance was open."""
    label = labels.parse(contract["label"] or "")
    mine = [event for event in events if label is not None and event.intent_id == label.intent_id]
    began = [event.at for event in mine if event.kind == EventKind.INTENT_IN_DOUBT]
    if not began:
        return 0.0
    ended = [event.at for event in mine if event.kind in {EventKind.INTENT_CONFIRMED, EventKind.INTENT_VOID}]
    return (ended[0].timestamp() if ended else now) - began[0].timestamp()


def _double_rents(contracts: list[Mapping[str, Any]]) -> int:
    """Return how many intents have more than one instance in the simulator's truth."""
    rents = Counter(
        label.intent_id for contract in contracts if (label := labels.parse(contract["label"] or "")) is not None
    )
    return sum(count > 1 for count in rents.values())


def _over_cap(app: App, simulator: Simulator, now: datetime) -> float:
    """Return dollars charged on any UTC day beyond its cap and the overshoot that money-safety rule 12 allows.

    The allowance has two parts: five minutes at the fleet's highest rate, for one poll and the releases after it, and
    the disks that a pause keeps for the rest of the day.
    """
    cap = app.rules.caps.per_day
    if cap is None:
        return 0.0
    days: dict[float, float] = defaultdict(float)
    disks: dict[float, float] = defaultdict(float)
    first = now - timedelta(days=32)
    for market in app.config.markets:
        for charge in simulator.sides[market.name].charges(first.timestamp(), now.timestamp()):
            day = charge.at // 86_400 * 86_400
            days[day] += charge.dollars
            disks[day] += charge.dollars if charge.is_disk else 0.0
    rate = app.rules.caps.per_hour
    allowed = (rate.dollars if rate is not None else 0.0) * (app.config.poll.total_seconds() + 300) / 3600
    return max(0.0, *(total - cap.dollars - allowed - disks[day] for day, total in days.items()), 0.0)
