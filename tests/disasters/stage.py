"""The stage of one seed: both markets, the clocks, the ledger's folder, and the program's way to all of them."""

import dataclasses
import datetime as dt
import random
import shutil
import tempfile
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from multiprocessing import util
from pathlib import Path

from agent import strategy_files
from agent.app import App
from agent.clock import SteppedClock
from agent.config.settings import Config, Listen, MarketSettings
from agent.decide.limits.limits import Limits
from agent.decide.strategy import Tuned
from agent.domain import money
from agent.domain.market import gpu
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.deadline import Deadline, ProgressSign
from agent.domain.work.guard_terms import Accept, Bucket, GuardTerms
from agent.domain.work.idle_rule import IdleRule, OnIdle
from agent.domain.work.ready_sign import Liveness, Readiness, ReadySign
from agent.domain.work.stall import StallRule
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Fallback, Requirements, Workload, WorkloadKind
from agent.ledger.store import Ledger
from agent.markets.dstack.vendor_record import DstackOptions
from agent.markets.market_record import MarketOptions
from agent.markets.mithril.vendor_record import MithrilOptions
from agent.outside import Outside
from agent.simulator import faults
from agent.simulator.climate import Climate, Demand
from agent.simulator.dstack.climate_table import Dstack
from agent.simulator.mithril.climate_table import Mithril
from agent.simulator.runpod.climate_table import Runpod
from agent.simulator.vast.world import World
from tests.disasters.auctions.auction_draw import MARKET
from tests.disasters.clouds.cloud_draw import MARKET as CLOUDS
from tests.disasters.exchange import Process, StruckExchange, Weather, Witness
from tests.disasters.guards.guard_world import GuardWorld
from tests.disasters.health.scripted_ports import ScriptedPorts
from tests.disasters.story import Auctions, Clouds, Guarded, Health, Idle, Story, Work
from tests.support import engines, loop
from tests.support.in_process import InProcess
from tests.support.scene import FLEET, KEY, START
from tests.support.steered import Simulator

MEMORY = Path("/dev/shm")  # noqa: S108 - a memory file system; a folder of our own is made in it
HOSTS = 60
CREDIT = 2000.0
URLS = {name: f"https://{name}.invalid" for name in ("vast", "runpod", MARKET, CLOUDS)}
BUCKET_KEY = "KEY:SECRET"
PORT = 8000
_OPTIONS: Mapping[str, MarketOptions] = {
    # The simulated market bills nothing for a kept boot disk.
    MARKET: MithrilOptions(disk_per_gb_month=Decimal(0)),
    CLOUDS: DstackOptions(fleet="gpubid", backends=("cloudrift", "lambda", "aws")),
}
MODELS = ("RTX 4090", "RTX 3090", "RTX A5000", "RTX 4080S")
AUCTIONED = ("A100 SXM4", "B200")
"""The models that the market of auctions sells one at a time."""


class MachineClock:
    """The machine's clock: its pace is true, its time may be wrong."""

    def __init__(self, true: SteppedClock) -> None:
        self._true = true
        self.off = dt.timedelta()

    def now(self) -> dt.datetime:
        """Return the time of the machine's wall clock."""
        return self._true.now() + self.off

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return self._true.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await self._true.sleep(seconds)


@lru_cache(maxsize=1)
def strategies() -> Mapping[str, Tuned]:
    """Return the built-in strategies with their shipped numbers."""
    return strategy_files.load()


class Stage:
    """Everything of one seed but the program itself."""

    def __init__(self, story: Story, folder: Path) -> None:
        self.story = story
        self.folder = folder
        self.clock = SteppedClock(START)
        self.machine = MachineClock(self.clock)
        climate = _climate(story.demand, story.auctions, story.clouds)
        world = World(climate, seed=story.seed, start=self.clock.time(), hosts=HOSTS, credit=CREDIT)
        self.simulator = Simulator(world, self.clock, seed=story.seed)
        if story.auctions is not None and story.auctions.rows:
            pages = {"fault": "paged_list", "market": MARKET, "rows": story.auctions.rows}
            self.simulator.mithril.weather.add(faults.parse(pages))
        self.guards = GuardWorld(story, self.simulator) if story.is_guarded else None
        self.ports = ScriptedPorts(self.simulator, self.clock) if story.is_watched else None
        self.weather = Weather(story.strikes)
        self.ids = random.Random(f"{story.seed}/ids")
        self.fate = random.Random(f"{story.seed}/fate")
        self.config = config(story, folder / "ledger.sqlite")

    async def open(self, config: Config, process: Process, witness: Witness) -> App:
        """Start a life of the daemon on a ledger."""
        answers = {name: side.answer for name, side in self.simulator.sides.items()}
        outside = Outside(
            self.machine,
            lambda _: KEY,
            URLS,
            new_id=lambda: f"{self.ids.getrandbits(64):016x}",
            jitter=lambda: 0.5,
            fleet_id=FLEET,
            credential=lambda _: BUCKET_KEY,
            exchanges={
                name: StruckExchange(name, InProcess(answers[name]), self.weather, witness, process, self.clock)
                for name in self.story.markets
            },
        )
        return await App.open(config, strategies(), outside)


@lru_cache(maxsize=8)
def _climate(demand: float, auctions: Auctions | None = None, clouds: Clouds | None = None) -> Climate:
    told, there = auctions or Auctions(), clouds or Clouds()
    return Climate(
        name="disaster",
        demand=Demand(arrivals=demand, taken=0.02, fight_back=0.0),
        price_walks_per_day=0.0,
        failures=0.0,
        pull_failure_probability=0.0,
        tables=(
            Runpod(mode="historical", credit=CREDIT),
            Mithril(tells_win_price=told.tells, bills_notice=told.bills_notice),
            Dstack(capacity=there.capacity, gives_up=there.gives_up),
        ),
    )


def config(story: Story, ledger: Path) -> Config:
    """Return the files of a story as the program reads them."""
    capped = story.auctions or story.clouds
    per_hour = money.per_hour((capped.per_hour if capped is not None else 0.0) or 50)
    return Config(
        file=ledger.with_name("agent.toml"),
        digest="",
        markets=tuple(_market(name) for name in story.markets),
        limits=Limits(money.per_hour(20), per_hour, money.usd(500), money.usd(5000), story.instances or 40),
        workloads=tuple(workload(work, story.auctions) for work in story.works),
        poll=dt.timedelta(seconds=story.poll),
        ledger=ledger,
        ledger_server=engines.server(ledger),
        listen=Listen("127.0.0.1", 0),
        strategies=None,
    )


def _market(name: str) -> MarketSettings:
    return MarketSettings(name, "", "still", "", None, spend=False, options=_OPTIONS.get(name))


def workload(work: Work, auctions: Auctions | None = None) -> Workload:
    """Return a workload of a story."""
    is_auctioned = auctions is not None and (not work.markets or MARKET in work.markets)
    names = (*MODELS, *AUCTIONED) if is_auctioned else MODELS
    models = tuple(gpu.model(name) for name in names)
    wants = Requirements(gpus=1, gpu_models=models, verified_only=False)
    made = Workload(
        name=work.name,
        image="pytorch/pytorch:latest",
        max_price=money.per_hour(f"{auctions.most if auctions is not None else 0.9}"),
        strategy=work.strategy,
        requirements=wants,
        markets=work.markets,
        fallback=Fallback((CLOUDS,), dt.timedelta(seconds=work.fallback_after)) if work.fallback_after else Fallback(),
        slots=work.slots,
        disk_gb=40,
        image_gb=6.5,
        environment=(("SIM_DONE_AFTER", f"{work.ends_after:g}"),) if work.ends_after else (),
        checkpoint=Checkpoint(place=CheckpointPlace.REMOTE, size_gb=2),
        kind=WorkloadKind(work.kind),
        array=ArrayTerms(work.at_once, task_hours=_task_hours(work)) if work.at_once else None,
        done_line="done" if work.ends_after else "",
        ready=Readiness(ReadySign.LOG, line="ready") if work.is_read else Readiness(),
        deadline=Deadline(6.0, START + dt.timedelta(hours=30)) if work.strategy == "deadline" else None,
    )
    if work.health is not None:
        made = watched(made, work.health)
    if work.idle is not None:
        made = idled(made, work.idle)
    return made if work.guard is None else guarded(made, work.guard)


def watched(work: Workload, health: Health) -> Workload:
    """Return a workload that is watched for its health."""
    told = (("SIM_SILENT_ONCE_AFTER", health.silent_after), ("SIM_HANGS_ONCE_AFTER", health.hangs_after))
    live = Liveness(dt.timedelta(seconds=30))
    return dataclasses.replace(
        work,
        environment=(("SIM_READY_AFTER", "15"), *((name, f"{at:g}") for name, at in told if at), *work.environment),
        stalled=StallRule(dt.timedelta(seconds=health.stalled_after)),
        ready=Readiness(ReadySign.PORT, port=PORT, live=live) if health.serves else work.ready,
        ports=(PORT,) if health.serves else (),
    )


def idled(work: Workload, idle: Idle) -> Workload:
    """Return a workload whose idle GPUs are not only told, and do nothing from some time after each start."""
    told = (("SIM_IDLE_AFTER", f"{idle.after:g}"),) if idle.after else ()
    rule = IdleRule(lasts=dt.timedelta(seconds=idle.lasts), then=OnIdle(idle.then))
    return dataclasses.replace(work, environment=(*told, *work.environment), idle=rule)


def guarded(work: Workload, guard: Guarded) -> Workload:
    """Return a workload with its guard; each has a folder of its own in the bucket."""
    terms = GuardTerms(
        ("/ckpt",),
        bucket=Bucket("https://bucket.invalid", "us-east-1", "runs", work.name, f"{work.name}-bucket"),
        final_within=dt.timedelta(seconds=guard.final_within),
        deadman=dt.timedelta(seconds=guard.deadman) if guard.deadman else None,
        accept=Accept(guard.accept),
        keep_host=guard.keeps_host,
    )
    place = CheckpointPlace.DISK if guard.is_on_disk else CheckpointPlace.REMOTE
    kept = Checkpoint(place=place, size_gb=2, interval=dt.timedelta(seconds=guard.interval))
    told = work.deadline
    if told is not None:
        by = START + dt.timedelta(hours=guard.due_hours)
        told = Deadline(guard.work_hours, by, sign=ProgressSign.GUARD, total=3600.0 * guard.work_hours)
    return dataclasses.replace(
        work, command="python train.py", environment=(), done_line="", checkpoint=kept, deadline=told, guard=terms
    )


def _task_hours(work: Work) -> float | None:
    is_kept = work.guard is not None and work.guard.keeps_host
    return work.guard.needs / 3600 if work.guard is not None and is_kept else None


@lru_cache(maxsize=1)
def template() -> Path:
    """Return a folder with a new ledger of our fleet, made once a process."""
    folder = Path(tempfile.mkdtemp(prefix="gpubid-disasters-template-", dir=place()))

    async def made(_: loop.Loop) -> None:
        ledger = await Ledger.open(folder / "ledger.sqlite", clock=SteppedClock(START), fleet_id=FLEET)
        await ledger.close()

    loop.run(made)
    # Unlike atexit's, it is called at the end of a pool's worker too.
    util.Finalize(None, shutil.rmtree, args=(folder, True), exitpriority=0)
    return folder


def place() -> Path | None:
    """Return the memory file system, where there is one."""
    return MEMORY if MEMORY.is_dir() else None


def copy_template(folder: Path) -> None:
    """Put a new ledger of our fleet into a folder. On a server the daemon makes its own schema."""
    if engines.server(folder) is not None:
        folder.mkdir(exist_ok=True)
        return
    shutil.copytree(template(), folder, dirs_exist_ok=True)
