"""A rehearsed day of the auction under one strategy, in memory: the daemon's own cycle without a ledger."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from agent.clock import SteadyClock, SteppedClock
from agent.decide.strategy import Tuned
from agent.domain import gpu, money
from agent.domain.workload import Checkpoint, CheckpointPlace, Requirements, Workload
from agent.lab.bids import waste
from agent.lab.bids.market import WorldMarket
from agent.lab.engine import Engine
from agent.markets import port
from agent.observe.poller import Poller
from agent.simulator import climate
from agent.simulator.world import World

START = datetime(2026, 7, 27, tzinfo=UTC)
"""Where rehearsals begin."""
IMAGE = "pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime"
MODELS = ("RTX 4090", "RTX 3090")
CHECKPOINT = Checkpoint(timedelta(minutes=15), timedelta(seconds=60), 2.0, CheckpointPlace.REMOTE)
BUSY = timedelta(seconds=2)
"""After a write the next look follows so soon, as in the daemon."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is rehearsed: a climate, a seed, and how long and how often the market is looked at."""

    climate: str
    seed: int
    hours: float = 24.0
    poll: timedelta = timedelta(seconds=60)

    @property
    def world(self) -> World:
        """The market as it stands when the day begins."""
        return World(climate.named(self.climate), seed=self.seed, start=START.timestamp())

    @property
    def end(self) -> datetime:
        """When it ends."""
        return START + timedelta(hours=self.hours)


@dataclass(frozen=True, slots=True)
class Lived:
    """A day under one strategy: what was paid for what, and how it went."""

    split: waste.Split
    charged: float
    losses: int
    leases: int
    on_demand_hours: float


def workload(strategy: str) -> Workload:
    """Return the workload of the bench: that of the shipped configuration, on either of two cards."""
    return Workload(
        name="train",
        image=IMAGE,
        max_price=money.per_hour("0.45"),
        strategy=strategy,
        requirements=Requirements(
            gpu_models=tuple(map(gpu.model, MODELS)),
            min_vram_mb=24_000,
            min_reliability=0.95,
            min_inet_down_mbps=100.0,
        ),
        disk_gb=40.0,
        image_gb=5.0,
        checkpoint=CHECKPOINT,
    )


class Day:
    """A day that passes: the market, and the engine that looks at it."""

    def __init__(
        self,
        setting: Setting,
        strategy: str,
        tuned: Mapping[str, Tuned],
        *,
        world: World | None = None,
        through: port.Market | None = None,
        clock: SteppedClock | None = None,
    ) -> None:
        """Stand at its beginning, in the setting's world or another, which is seen through the market in memory."""
        self.setting = setting
        self.world = setting.world if world is None else world
        self.market = WorldMarket(self.world)
        self.clock = SteppedClock(START) if clock is None else clock
        seen = self.market if through is None else through
        poller = Poller(seen, SteadyClock(self.clock), "", lambda _: "")
        self.engine = Engine(seen, (workload(strategy),), tuned, START, poller=poller)

    def live(self) -> Lived:
        """Let it pass and return what became of it."""
        while self.clock.now() < self.setting.end:
            self.step()
        return self.told()

    def step(self) -> None:
        """Look once, then let time pass until the next look."""
        now = self.clock.now()
        before = len(self.engine.decisions)
        self.engine.cycle(now)
        wait = BUSY if len(self.engine.decisions) > before else self.setting.poll
        self.clock.advance(min(wait, self.setting.end - now).total_seconds())
        self.world.advance_to(self.clock.time())

    def told(self) -> Lived:
        """Return what has become of it so far."""
        world = self.world
        end = self.clock.time()
        contracts = world.contracts.values()
        speeds = {each.contract_id: each.host.dlperf_per_gpu * each.slice.num_gpus for each in contracts}
        split = waste.split(world.turns(), speeds, self.market.stops, CHECKPOINT, end)
        return Lived(
            split=split,
            charged=world.charged_total(),
            losses=len(self.engine.book.losses),
            leases=len(world.contracts),
            on_demand_hours=sum(each.worked + world.running_seconds(each) for each in contracts if not each.is_bid)
            / 3600,
        )
