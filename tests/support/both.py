"""The program with both simulated markets, on one clock that only tests move.

The ledger is a real file, and a wired world has real HTTP. The truth of RunPod is in `pods`, that of Vast in `hosts`.
"""

import contextlib
import datetime as dt
import random
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from agent.app import App
from agent.clock import SteppedClock
from agent.config.settings import Config, Listen, MarketSettings
from agent.cycle import Pass
from agent.decide.accounting import meter
from agent.decide.limits.limits import Limits
from agent.domain import money
from agent.domain.record.event import Event
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.workload import Workload
from agent.ledger.tables.spend_rows import SpendKey
from agent.markets.market_record import MarketOptions
from agent.outside import Outside
from agent.simulator import faults
from agent.simulator.climate import Climate
from agent.simulator.market_model import Charge
from agent.simulator.runpod.climate_table import Runpod
from agent.simulator.runpod.model import Pod
from agent.simulator.vast.model import Contract
from agent.simulator.vast.world import World
from tests.support import engines
from tests.support.in_process import InProcess
from tests.support.scene import FLEET, HOURS_POLL, KEY, START, STILL, strategies
from tests.support.steered import Simulator
from tests.support.wiring import IS_WIRED

OF_THE_PAST = STILL.having(Runpod(mode="historical"))
"""A still market whose RunPod sells pods at a bid, as it did until September 2026."""
LIMITS = Limits(money.per_hour(20), money.per_hour(50), money.usd(500), money.usd(5000), 20)


class Both:
    """Make one with `both`."""

    app: App

    def __init__(self, simulator: Simulator, clock: SteppedClock, config: Config, *, is_wired: bool = True) -> None:
        self.simulator, self.clock, self.config = simulator, clock, config
        self._is_wired = is_wired
        self.hosts, self.pods = simulator.world, simulator.pods
        self._ids = random.Random("both")

    async def open(self) -> None:
        """Start the program."""
        answers = {
            "vast": self.simulator.api.answer,
            "runpod": self.simulator.runpod_api.answer,
            "mithril": self.simulator.mithril_api.answer,
            "dstack": self.simulator.sides["dstack"].answer,
        }
        outside = Outside(
            self.clock,
            lambda _: KEY,
            {name: self.simulator.url(name) or f"http://{name}.invalid" for name in answers},
            new_id=lambda: f"{self._ids.getrandbits(64):016x}",
            jitter=lambda: 0.5,
            fleet_id=FLEET,
            exchanges={} if self._is_wired else {name: InProcess(answer) for name, answer in answers.items()},
        )
        self.app = await App.open(self.config, strategies(), outside)

    async def restart(self, after_seconds: float = 0.0) -> None:
        """Close the program and, after a pause without looks, open another one on the same ledger."""
        await self.app.close()
        self.clock.advance(after_seconds)
        await self.open()

    async def cycle(self, minutes: float = 0.0) -> Pass:
        """Run one cycle, or as many as the daemon would in these minutes. Return the last."""
        until = self.clock.monotonic() + minutes * 60
        while True:
            began = self.clock.monotonic()
            done = await self.app.cycle()
            wait = 2.0 if done.is_busy else self.config.poll.total_seconds()
            self.clock.advance(max(wait - (self.clock.monotonic() - began), 0.1))
            if self.clock.monotonic() >= until:
                return done

    async def until(self, is_reached: Callable[[], bool], minutes: float = 180.0) -> None:
        """Run cycles until a condition is true. Fail if that takes longer than these minutes."""
        limit = self.clock.monotonic() + minutes * 60
        while not is_reached():
            seen = self.app.seen
            assert self.clock.monotonic() < limit, (self.leases(), seen.plan.decisions if seen else None)
            await self.cycle()

    def leases(self) -> list[Lease]:
        """Return the open leases."""
        return [lease for lease in self.app.ledger.recollection(self.clock.now()).leases if lease.is_open]

    def running(self) -> list[Lease]:
        """Return the running leases."""
        return [lease for lease in self.leases() if lease.state is LeaseState.RUNNING]

    def live(self) -> list[Pod]:
        """Return the pods that exist, as they really are."""
        self.pods.advance_to(self.clock.time())
        return [pod for pod in self.pods.pods.values() if pod.ended is None]

    def contracts(self, market: str) -> list[Contract] | list[Pod]:
        """Return the contracts or pods that really exist on a market."""
        if market == "runpod":
            return self.live()
        self.hosts.advance_to(self.clock.time())
        return self.hosts.live_contracts()

    def charges(self, market: str) -> list[Charge]:
        """Return everything that a market charged so far."""
        self.simulator.advance_to(self.clock.time())
        world = self.pods if market == "runpod" else self.hosts
        return world.charges(world.start_time, self.clock.time())

    def weather(self, market: str, fault: str, **fields: Any) -> None:
        """Start a fault on a market. The fields are those of POST /weather."""
        self.simulator.advance_to(self.clock.time())
        weather = self.simulator.runpod.weather if market == "runpod" else self.simulator.weather
        weather.add(faults.parse({"fault": fault, "market": market, **fields}))

    def still(self) -> None:
        """End all weather."""
        self.simulator.advance_to(self.clock.time())
        self.simulator.weather.clear_all()
        self.simulator.runpod.weather.clear_all()

    async def events(self, *kinds: str) -> list[Event]:
        """Return the ledger's events of these kinds, the oldest first."""
        reader = await self.app.ledger.reader()
        return list(reversed(await reader.events(kinds=kinds, limit=10_000)))

    async def spend(self) -> float:
        """Return the ledger's spend in dollars, including the cost of open leases since the last metering."""
        reader = await self.app.ledger.reader()
        counted = sum(line.amount.dollars for line in await reader.spend_by(SpendKey.LEASE))
        return counted + meter.outstanding(self.leases(), self.clock.now()).dollars


@contextlib.asynccontextmanager
async def both(  # noqa: PLR0913 - each has a default
    directory: Path,
    *workloads: Workload,
    markets: tuple[str, ...] = ("vast", "runpod"),
    seed: int = 11,
    limits: Limits = LIMITS,
    start: dt.datetime = START,
    climate: Climate = STILL,
    poll: dt.timedelta = HOURS_POLL,
    is_wired: bool = IS_WIRED,
    options: Mapping[str, MarketOptions] | None = None,
    log_bytes: int = 0,
) -> AsyncIterator[Both]:
    """Run the program with both markets while the block runs. Unless IS_WIRED, no connection carries its requests.

    `options` are the keys that only one market has, by its name.
    """
    clock = SteppedClock(start)
    simulator = Simulator(World(climate, seed=seed, start=clock.time(), hosts=60), clock, seed=seed)
    config = Config(
        file=directory / "agent.toml",
        digest="",
        markets=tuple(
            MarketSettings(name, "", "still", "", None, spend=False, options=(options or {}).get(name))
            for name in markets
        ),
        limits=limits,
        workloads=workloads,
        poll=poll,
        ledger=directory / "ledger.sqlite",
        listen=Listen("127.0.0.1", 0),
        strategies=None,
        log_bytes=log_bytes,
        ledger_server=engines.server(directory / "ledger.sqlite"),
    )
    world = Both(simulator, clock, config, is_wired=is_wired)
    try:
        if is_wired:
            await simulator.start()
        await world.open()
        try:
            yield world
        finally:
            await world.app.close()
    finally:
        await simulator.stop()
