"""A rehearsed world: the whole program and the market it rents from, on one clock that only tests move.

HTTP is real unless a world is not wired. The ledger is a real file. Nothing sleeps. A bucket that is served answers
in real time; the world's clock stops during the answer. After every cycle the world is checked against the truth of the
market, and a world that the money-safety rules do not allow ends the test:

1. Every order that reaches the market has a durable intent in state *sent*, and a paying one arrives once per intent.
2. No intent has two contracts; no slot has two open paying intents; no host holds two leases.
3. A billing contract with our label has an open lease or an open intent, or gets one within ten minutes.
4. A contract without our label never gets an order.
5. The ledger's spend stays within the larger of 1 % and $0.02 of the charges, once the listing is fresh and true, plus
   the dollars that nobody could see.
"""

import asyncio
import contextlib
import dataclasses
import math
import random
import re
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from agent.app import App
from agent.clock import SteppedClock
from agent.config.settings import Config, Listen, MarketSettings
from agent.cycle import Pass
from agent.decide.accounting import meter
from agent.decide.plan import Plan
from agent.domain.money import MICROS
from agent.domain.record.event import Event
from agent.domain.record.intent import Intent, IntentKind
from agent.domain.record.lease import Lease, LeaseState
from agent.ledger.storage_port import Storage
from agent.outside import Outside
from agent.simulator import faults
from agent.simulator.processes.process_registry import ProcessRegistry
from agent.simulator.vast.model import Contract, RentTerms
from agent.simulator.vast.world import World
from tests.support import bucket_calls, engines, loop
from tests.support.bucket_calls import BucketCalls
from tests.support.in_process import InProcess
from tests.support.judge import Judge
from tests.support.scene import (
    CENT_POLL,
    FLEET,
    HOURS_POLL,
    KEY,
    MINUTE,
    POLL,
    PROPERTY_POLL,
    START,
    STILL,
    Scene,
    strategies,
    work,
)
from tests.support.steered import of_vast
from tests.support.wiring import IS_WIRED
from tests.support.witness import Order, Witness, is_ours

__all__ = [
    "CENT_POLL",
    "FLEET",
    "HOURS_POLL",
    "MINUTE",
    "POLL",
    "PROPERTY_POLL",
    "START",
    "STILL",
    "ImpossibleWorld",
    "Rehearsed",
    "Scene",
    "play",
    "rehearsed",
    "strategies",
    "work",
]

BUSY_SECONDS = 2.0

HOSTS = 90

SPENT_MICROS = "SELECT coalesce(sum(gpu + disk + traffic), 0) FROM spend"
UNWIRED = "http://vast.invalid"
MEMORY = Path("/dev/shm")  # noqa: S108 - a memory file system; what is made there is removed


class ImpossibleWorld(AssertionError):
    """The world is in a state that the money-safety rules do not allow."""


class Rehearsed:
    """The program and its market, whose own objects are in `market` and `simulator`. Make one with `rehearsed`."""

    app: App

    def __init__(self, directory: Path, scene: Scene, *, is_wired: bool = True) -> None:
        """Make the market. If it is not wired, requests do not go over a connection."""
        self.scene = scene
        self.is_wired = is_wired
        self.clock = SteppedClock(scene.start)
        self.market = World(
            scene.climate, seed=scene.seed, start=self.clock.time(), hosts=scene.hosts, credit=scene.credit
        )
        processes = ProcessRegistry(self.clock, folder=scene.disks) if scene.disks is not None else None
        self.simulator = of_vast(self.market, self.clock, seed=scene.seed, gate=scene.gate, processes=processes)
        self.config = Config(
            file=directory / "agent.toml",
            digest="",
            markets=(market_settings(may_spend=scene.may_spend),),
            limits=scene.limits,
            workloads=scene.workloads,
            poll=scene.poll,
            ledger=directory / "ledger.sqlite",
            listen=Listen("127.0.0.1", 0),
            strategies=None,
            recording_bytes=scene.recording_bytes,
            log_bytes=scene.log_bytes,
            fronts=scene.fronts,
            ledger_server=engines.server(directory / "ledger.sqlite"),
        )
        self._witness = Witness(self.config.ledger, self.market, self.clock.time)
        api = self.simulator.api
        api.answer = self._witness.before(api.answer)  # type: ignore[method-assign,assignment]
        self.is_checked = True
        self.plans: list[Plan] = []
        self.ids = random.Random(f"{scene.seed}/ids")
        self.is_open = False
        self._file: sqlite3.Connection | None = None
        """The ledger's file as it is on the disk, once the judge has read it."""
        self.buckets = BucketCalls()
        self._judge = Judge(self)

    # --- the program ------------------------------------------------------------------------------------------------
    async def open(self, ledger_place: Storage | None = None) -> None:
        """Start the program, as the standby that has won the lead of `ledger_place` if that is given."""
        outside = Outside(
            self.clock,
            lambda _: KEY,
            {"vast": self.simulator.vast_url if self.is_wired else UNWIRED},
            new_id=lambda: f"{self.ids.getrandbits(64):016x}",
            jitter=lambda: 0.5,
            fleet_id=FLEET,
            credential=self.scene.credential,
            ledger_place=ledger_place,
            exchanges={} if self.is_wired else {"vast": InProcess(self.simulator.api.answer)},
        )
        self.app = await App.open(self.config, self.scene.tuned, outside)
        self.is_open = True

    async def close(self) -> None:
        """Stop the program. Running contracts continue."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if self.is_open:
            self.is_open = False
            await self.app.close()

    async def restart(self, after_seconds: float = 0.0) -> None:
        """Close the program and, after a pause without looks, open another one on the same ledger."""
        await self.close()
        self.clock.advance(after_seconds)
        await self.open()

    async def cycle(self, minutes: float = 0.0) -> Pass:
        """Run one cycle, or as many as the daemon would in these minutes. Return the last."""
        until = self.clock.monotonic() + minutes * 60
        while True:
            began = self.clock.monotonic()
            done = await self.app.cycle()
            self.plans.append(done.plan)
            await self.buckets.settle()
            await self.app.logs.settle()
            await self.app.keys.settle()
            await self.app.estimates.settle()
            self.market.advance_to(self.clock.time())
            if self.is_checked:
                await self.check()
            wait = BUSY_SECONDS if done.is_busy else self.config.poll.total_seconds()
            self.clock.advance(max(wait - (self.clock.monotonic() - began), 0.1))
            if self.clock.monotonic() >= until:
                return done

    async def until(self, is_reached: Callable[[], bool], minutes: float = 60.0) -> None:
        """Run cycles until a condition is true. Fail if that takes longer than these minutes."""
        limit = self.clock.monotonic() + minutes * 60
        while not is_reached():
            assert self.clock.monotonic() < limit, f"not reached within {minutes} minutes: {self.told()}"
            await self.cycle()

    async def until_running(self, minutes: float = 180.0, slots: int | None = None) -> Lease:
        """Run cycles until every slot, or so many, have a running lease. Return the first."""
        places = sum(item.slots for item in self.scene.workloads) if slots is None else slots

        def is_reached() -> bool:
            return sum(lease.state is LeaseState.RUNNING for lease in self.leases()) >= places

        await self.until(is_reached, minutes)
        return next(lease for lease in self.leases() if lease.state is LeaseState.RUNNING)

    # --- what the program believes ----------------------------------------------------------------------------------
    def leases(self) -> list[Lease]:
        """Return the open leases."""
        return list(self.app.ledger.recollection(self.clock.now()).leases)

    def lease(self) -> Lease:
        """Return the one open lease."""
        leases = self.leases()
        assert len(leases) == 1, leases
        return leases[0]

    def open_intents(self) -> list[Intent]:
        """Return the open intents."""
        return list(self.app.ledger.recollection(self.clock.now()).intents)

    async def intents(self, *kinds: IntentKind) -> list[Intent]:
        """Return all intents of these kinds (without any: of every kind), the oldest first."""
        reader = await self.app.ledger.reader()
        return [each for each in reversed(await reader.intents(100_000)) if not kinds or each.kind in kinds]

    async def past_leases(self) -> list[Lease]:
        """Return every lease there ever was, the oldest first."""
        reader = await self.app.ledger.reader()
        return list(reversed(await reader.leases(100_000)))

    async def events(self, *kinds: str) -> list[Event]:
        """Return the ledger's events of these kinds, the oldest first."""
        reader = await self.app.ledger.reader()
        return list(reversed(await reader.events(kinds=kinds, limit=100_000)))

    async def spend(self) -> float:
        """Return the ledger's spend in dollars, including the cost of open leases since the last metering."""
        # The judge asks after every cycle. Through the program's own reader this took a twentieth of the time.
        if self.config.ledger_server is not None:
            ((counted,),) = engines.rows(self.config.ledger, SPENT_MICROS)
        else:
            self._file = self._file or sqlite3.connect(f"file:{self.config.ledger}?mode=ro", uri=True)
            (counted,) = self._file.execute(SPENT_MICROS).fetchone()
        return float(counted) / MICROS + meter.outstanding(self.leases(), self.clock.now()).dollars

    @property
    def orders(self) -> list[Order]:
        """Every write that reached the market, the oldest first."""
        return self._witness.orders

    # --- what is true -----------------------------------------------------------------------------------------------
    def truth(self) -> dict[str, Any]:
        """Return the whole truth of the market, as GET /truth shows it."""
        self.simulator.weather.advance_to(self.clock.time())
        return self.simulator.control.truth()

    def contracts(self) -> list[Contract]:
        """Return every contract with our label, also ended ones, in order of creation."""
        return [contract for contract in self.market.contracts.values() if is_ours(contract)]

    def live(self) -> list[Contract]:
        """Return the contracts of ours that exist."""
        return [contract for contract in self.contracts() if contract.ended is None]

    def contract(self) -> Contract:
        """Return the one contract of ours that exists."""
        found = self.live()
        assert len(found) == 1, found
        return found[0]

    def calls(self, method: str, prefix: str, since: float = 0.0) -> list[tuple[float, str, str, int]]:
        """Return the calls to the market as (time, method, path, status). A dropped connection has status 0."""
        return [
            call
            for call in self.simulator.api.calls
            if call[1] == method and re.sub(r"^/api/v\d", "", call[2]).startswith(prefix) and call[0] >= since
        ]

    def told(self) -> str:
        """Return a few lines for a test that failed."""
        lines = [f"{self.clock.now():%H:%M:%S} leases {self.leases()}", f"intents {self.open_intents()}"]
        lines += [f"{contract.contract_id} {contract.status} bid {contract.bid}" for contract in self.contracts()]
        return "\n".join(lines)

    # --- what happens to it -----------------------------------------------------------------------------------------
    def weather(self, fault: str, **fields: Any) -> int:
        """Start a fault, and return its id. The fields are those of POST /weather."""
        self.simulator.weather.advance_to(self.clock.time())
        return self.simulator.weather.add(faults.parse({"fault": fault, **fields}))

    def still(self) -> None:
        """End all weather."""
        self.simulator.weather.advance_to(self.clock.time())
        self.simulator.weather.clear_all()

    def rival(self, machine_id: int, *, bid: float | None = None, gpus: int | None = None) -> int:
        """Put a competitor on a host who wants as many GPUs as we have there, on demand if `bid` is None."""
        self.market.advance_to(self.clock.time())
        ours = (contract.slice.num_gpus for contract in self.live() if contract.slice.machine_id == machine_id)
        gpus = gpus or next(ours, None)
        return self.market.add_rival(machine_id, gpus, bid, on_demand=bid is None)

    def foreign(self, label: str | None = "somebody else's", *, most: float = math.inf) -> Contract:
        """Rent something in the same account that is not ours, on demand at up to `most` an hour."""
        self.market.advance_to(self.clock.time())
        held = {contract.slice.machine_id for contract in self.market.live_contracts()}
        slice_ = next(
            each
            for each in self.market.listed()
            if each.num_gpus == 1
            and each.machine_id not in held
            and self.market.true_floor(each) is not None
            and self.market.ask(each) <= most
        )
        return self.market.create(slice_.offer_id, RentTerms(20.0, "alpine:latest", label), bid=self.market.ask(slice_))

    def show_elsewhere(self, contract: Contract, machine_id: int) -> None:
        """Let the market show a contract on another host than the one that was rented."""
        records = self.simulator.surface.records
        records.record(contract)
        records._fixed[contract.contract_id]["machine_id"] = machine_id

    def forbid_spending(self) -> None:
        """Remove `spend = true` from the configuration. This takes effect at the next start."""
        self.config = dataclasses.replace(self.config, markets=(market_settings(may_spend=False),))

    def refuse_rows(self, table: str) -> None:
        """Let the ledger refuse every new row of a table from now on, as a full disk would."""
        engines.refuse_rows(self.config.ledger, table)

    def accept_rows(self) -> None:
        """Let the ledger accept new rows again."""
        engines.accept_rows(self.config.ledger)

    async def check(self) -> None:
        """Refuse a world that the rules do not allow.

        Raises:
            ImpossibleWorld: with every rule that is broken.
        """
        broken = [*self._witness.broken, *await self._judge.broken()]
        if broken:
            raise ImpossibleWorld("\n".join([*broken, self.told()]))


def market_settings(*, may_spend: bool) -> MarketSettings:
    """Return the settings of a market. One that may not spend looks like a live market without `spend = true`."""
    return MarketSettings("vast", "", "still" if may_spend else "", "", None, spend=False)


@contextlib.asynccontextmanager
async def rehearsed(
    directory: Path, scene: Scene | None = None, *, is_wired: bool = IS_WIRED, **changes: Any
) -> AsyncIterator[Rehearsed]:
    """Run a world while the block runs. Unless IS_WIRED, no connection carries what it asks of its market."""
    world = Rehearsed(directory, dataclasses.replace(scene or Scene(), **changes), is_wired=is_wired)
    on_loop = asyncio.get_running_loop()
    if isinstance(on_loop, loop.Loop):
        on_loop.stand_still(lambda: world.buckets.count > 0)
    with bucket_calls.counted(world.buckets):
        try:
            if is_wired:
                await world.simulator.start()
            await world.open()
            yield world
        finally:
            await world.close()
            await world.simulator.stop()


def play(story: Callable[[Rehearsed], Awaitable[None]], **changes: Any) -> None:
    """Play one story in a separate world, for properties, whose tests are no coroutines.

    By default it has HOSTS hosts, so that three slots find a host in all but one of 400 seeds, and PROPERTY_POLL. Its
    ledger is in memory and it is not wired, unless IS_WIRED.
    """

    async def told() -> None:
        with tempfile.TemporaryDirectory(prefix="gpubid-rules-", dir=in_memory()) as directory:
            async with rehearsed(Path(directory), **{"hosts": HOSTS, "poll": PROPERTY_POLL, **changes}) as world:
                await story(world)

    if IS_WIRED:
        asyncio.run(told())
    else:
        loop.run(lambda _: told())


def in_memory() -> Path | None:
    """Return the memory file system, if there is one and the run is not wired."""
    return MEMORY if MEMORY.is_dir() and not IS_WIRED else None
