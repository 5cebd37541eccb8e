"""Any weather, rivals, restarts and strokes of fate in any order: the world stays one that the rules allow.

The rules themselves are held by the world after every cycle (tests/support/world.py): 1, 2, 3 and 6, no orphan for more
than ten minutes, the ledger's spend. At the end the weather clears, and every slot must come to run again.
"""

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.order import Order
from agent.simulator.vast.model import Contract, EndCause
from tests.support import levers, loop
from tests.support.scene import PROPERTY_POLL, Scene, work
from tests.support.wiring import IS_WIRED
from tests.support.world import Rehearsed, in_memory

ROUTES = ["*", "GET /instances", "PUT /asks", "PUT /instances", "DELETE", "POST", "/users", "/notifications"]
FAULTS = [
    {"fault": "throttle_text"},
    {"fault": "throttle_retry_after", "retry_after": 90},
    {"fault": "html_403"},
    {"fault": "soft_refusal"},
    {"fault": "server_error_before"},
    {"fault": "server_error_after"},
    {"fault": "slow", "delay": 45},
    {"fault": "truncated"},
    {"fault": "malformed"},
    {"fault": "reset", "when": "before"},
    {"fault": "reset", "when": "after"},
    {"fault": "unknown_status", "status": "frozen"},
]
LISTS = ["empty_list", "partial_list", "stale_list"]
HOSTS = ["host_offline", "stuck_loading", "pull_failure"]


class AnyWeather(RuleBasedStateMachine):
    """A world and everything that may befall it."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=None if IS_WIRED else loop.OneThread)
        self.directory = Path(tempfile.mkdtemp(prefix="gpubid-rules-", dir=in_memory()))
        self.foreign: list[tuple[Contract, float | None]] = []
        self.rivals: list[int] = []

    @initialize(seed=st.integers(0, 10_000), slots=st.integers(1, 3))
    def begin(self, seed: int, slots: int) -> None:
        scene = Scene(seed=seed, hosts=110, workloads=(work(slots=slots),), poll=PROPERTY_POLL)
        self.world = Rehearsed(self.directory, scene, is_wired=IS_WIRED)
        if IS_WIRED:
            self.run(self.world.simulator.start())
        self.run(self.world.open())

    def run(self, doing: Any) -> Any:
        return self.runner.run(doing)

    @rule(minutes=st.sampled_from([0, 0, 1, 5, 20, 60]))
    def go_on(self, minutes: float) -> None:
        self.run(self.world.cycle(minutes))

    @rule(
        fault=st.sampled_from(FAULTS),
        route=st.sampled_from(ROUTES),
        seconds=st.sampled_from([1, 30, 300, 1800]),
        probability=st.sampled_from([1.0, 0.3]),
    )
    def blow(self, fault: dict[str, Any], route: str, seconds: float, probability: float) -> None:
        self.world.weather(route=route, seconds=seconds, probability=probability, **fault)

    @rule(fault=st.sampled_from(LISTS), seconds=st.sampled_from([20, 300, 570]))
    def lie(self, fault: str, seconds: float) -> None:
        """Every lie is shorter than the grace; two of them must not follow each other without a true listing."""
        self.world.still()
        self.run(self.world.cycle(1))
        self.world.weather(fault, route="GET /instances", seconds=seconds)

    @rule(fault=st.sampled_from(HOSTS), seconds=st.sampled_from([60, 600, 3600]))
    def strike(self, fault: str, seconds: float) -> None:
        self.world.weather(fault, seconds=seconds)

    @rule()
    def clear_up(self) -> None:
        self.world.still()

    @precondition(lambda self: bool(self.world.live()))
    @rule(which=st.integers(0, 2), times=st.sampled_from([1.05, 1.3, 2.0, 6.0, None]))
    def compete(self, which: int, times: float | None) -> None:
        contract = self.world.live()[which % len(self.world.live())]
        bid = None if times is None or contract.bid is None else contract.bid * times
        if not contract.host.is_gone:
            self.rivals.append(self.world.rival(contract.slice.machine_id, bid=bid))

    @precondition(lambda self: bool(self.rivals))
    @rule()
    def give_way(self) -> None:
        self.world.market.remove_rival(self.rivals.pop())

    @precondition(lambda self: bool(self.world.live()))
    @rule(which=st.integers(0, 2), fate=st.sampled_from(["exit", "stop", "gone", "destroy"]))
    def befall(self, which: int, fate: str) -> None:
        market, contract = self.world.market, self.world.live()[which % len(self.world.live())]
        market.advance_to(self.world.clock.time())
        if contract.ended is None and fate == "exit":
            levers.exit_container(market, contract.contract_id)
        elif contract.ended is None and fate == "stop":
            market.stop(contract.contract_id)
        elif contract.ended is None and fate == "destroy":
            market.destroy(contract.contract_id)
        elif contract.ended is None:
            market.set_host_gone(contract.slice.machine_id)

    @rule()
    def go_broke(self) -> None:
        self.world.weather("no_credit", seconds=900)

    @rule(seconds=st.sampled_from([0, 30, 900]))
    def restart(self, seconds: float) -> None:
        self.run(self.world.restart(seconds))

    @precondition(lambda self: len(self.foreign) < 3 and self.world.market.credit > 1)
    @rule(label=st.sampled_from([None, "", "mine", "gpubid", "gpubid:000000000000:train:0:0123456789abcdef"]))
    def somebody_rents(self, label: str | None) -> None:
        contract = self.world.foreign(label)
        self.foreign.append((contract, contract.bid))

    def teardown(self) -> None:
        """Let the sky clear: the world must come back to order by itself."""
        try:
            if hasattr(self, "world") and self.world.is_open:
                self.run(self._come_to_rest())
        finally:
            if hasattr(self, "world"):
                self.run(self.world.close())
                self.run(self.world.simulator.stop())
            self.runner.close()
            shutil.rmtree(self.directory, ignore_errors=True)
        super().teardown()

    async def _come_to_rest(self) -> None:
        world = self.world
        world.still()
        while self.rivals:
            world.market.remove_rival(self.rivals.pop())
        # A lease that is believed to run may have stopped unseen: only after the grace are running and moving leases
        # known.
        await world.cycle(minutes=15)
        if await world.events("workload.held"):
            # Storms of failed starts hold the workload for a person, who says that it may go on.
            await world.app.say(Order("resume", "train"), "a test")
        await world.until_running(minutes=360)
        await world.cycle(minutes=15)
        for contract, bid in self.foreign:
            assert contract.end_cause is not EndCause.DESTROYED, "a foreign one was released"
            assert contract.bid == bid, "a foreign one was rebid"
        # A return to a cheaper host has two leases until the new one runs.
        await world.until(lambda: len(self._kept()) == world.scene.workloads[0].slots, minutes=60)
        kept = self._kept()
        assert sorted(lease.slot.index for lease in kept) == list(range(world.scene.workloads[0].slots))
        assert {lease.state for lease in kept} == {LeaseState.RUNNING}
        assert {lease.instance_id for lease in world.leases()} == {str(each.contract_id) for each in world.live()}
        assert not world.open_intents()

    def _kept(self) -> list[Lease]:
        return [lease for lease in self.world.leases() if not lease.is_held]


TestAnyWeather = AnyWeather.TestCase
