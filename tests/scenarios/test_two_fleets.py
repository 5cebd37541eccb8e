"""Two daemons of different fleets on one account, each with a ledger: on PostgreSQL a schema each in one database.

The world's own daemon is judged as always. The other one is a whole program too; whatever it writes is kept here.
"""

import contextlib
import dataclasses
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.app import App
from agent.domain.record.lease import LeaseState
from agent.markets import labels
from agent.outside import Outside
from agent.simulator.http_wire import Answer, Asked
from agent.simulator.vast.model import Contract
from tests.support import engines, spending
from tests.support.in_process import InProcess
from tests.support.scene import KEY
from tests.support.world import FLEET, UNWIRED, Rehearsed, rehearsed

OTHER = "07e407e407e4"


@dataclasses.dataclass(slots=True)
class OtherFleet:
    """The other daemon, and the instances that its writes were about."""

    app: App
    written: list[int]

    def leases(self) -> list[str]:
        return [lease.instance_id for lease in self.app.ledger.recollection().leases]


@contextlib.asynccontextmanager
async def other_fleet(world: Rehearsed, folder: Path) -> AsyncIterator[OtherFleet]:
    """Start the daemon of another fleet with the same key, while the block runs."""
    written: list[int] = []
    answer = type(world.simulator.api).answer.__get__(world.simulator.api)

    async def noted(asked: Asked) -> Answer:
        if asked.method in {"PUT", "DELETE"} and (found := re.search(r"/instances/(?:bid_price/)?(\d+)", asked.path)):
            written.append(int(found[1]))
        return await answer(asked)

    ledger = folder / "other.sqlite"
    config = dataclasses.replace(world.config, ledger=ledger, ledger_server=engines.server(ledger))
    outside = Outside(
        world.clock,
        lambda _: KEY,
        {"vast": UNWIRED},
        new_id=lambda: f"{world.ids.getrandbits(64):016x}",
        jitter=lambda: 0.5,
        fleet_id=OTHER,
        exchanges={"vast": InProcess(noted)},
    )
    app = await App.open(config, world.scene.tuned, outside)
    try:
        yield OtherFleet(app, written)
    finally:
        await app.close()


def of(world: Rehearsed, fleet: str) -> list[Contract]:
    """Return the live instances whose label names a fleet."""
    parsed = ((each, labels.parse(each.label or "")) for each in world.market.live_contracts())
    return [each for each, label in parsed if label is not None and label.fleet_id == fleet]


async def both(world: Rehearsed, other: OtherFleet, minutes: float) -> None:
    """Let both daemons run cycles in turn."""
    until = world.clock.monotonic() + minutes * 60
    while world.clock.monotonic() < until:
        await world.cycle()
        await other.app.cycle()
        world.market.advance_to(world.clock.time())
        await world.check()


@pytest.mark.both_engines
async def test_each_keeps_to_its_own_instances(tmp_path: Path) -> None:
    async with rehearsed(tmp_path) as world, other_fleet(world, tmp_path) as other:
        await both(world, other, 30)
        (mine,), (theirs,) = of(world, FLEET), of(world, OTHER)
        assert [lease.state for lease in world.leases()] == [LeaseState.RUNNING]
        assert other.leases() == [str(theirs.contract_id)]

        # One is outbid and moves; the other one keeps what it has.
        world.rival(mine.slice.machine_id, bid=(mine.bid or 1.0) * 20)
        await both(world, other, 45)
        assert [each.contract_id for each in of(world, FLEET)] != [mine.contract_id]
        assert theirs in of(world, OTHER)

        await world.restart(after_seconds=600)
        await both(world, other, 10)
        (moved,) = of(world, FLEET)

        # All spending of one is stopped; the other one goes on.
        await spending.kill(world.app)
        await both(world, other, 30)
        assert moved.ended is not None
        assert of(world, FLEET) == []
        assert theirs in of(world, OTHER)
        await spending.kill(other.app)
        assert set(other.written) == {theirs.contract_id}

        assert await world.events("orphan.seen", "alert.second_daemon") == []
        assert await (await other.app.ledger.reader()).events(kinds=("orphan.seen", "alert.second_daemon")) == []
