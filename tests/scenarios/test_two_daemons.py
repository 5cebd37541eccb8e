"""Two daemons on one fleet: the second on a ledger is refused, a second on the fleet makes the first stop writing."""

import dataclasses
import random
import shutil
from pathlib import Path

import pytest

from agent.decide.limits.limits import Limits
from agent.domain import money
from agent.domain.market.label import Label
from agent.domain.record.intent import IntentKind
from agent.domain.slot import Slot
from agent.ledger.ledger_errors import Code, LedgerError
from agent.markets import labels
from tests.support import spending
from tests.support.world import FLEET, Rehearsed, rehearsed


def _other_daemon_rents(world: Rehearsed, slot: Slot) -> int:
    """Rent as a daemon on a copy of our ledger would: our fleet, an intent that we never wrote."""
    label = labels.text(Label(FLEET, slot, "feedfacefeedface"))
    return world.foreign(label).contract_id


async def test_second_opener_of_the_ledger_is_refused(tmp_path: Path) -> None:
    async with rehearsed(tmp_path) as world:
        await world.cycle()
        first = world.app
        with pytest.raises(LedgerError) as refused:
            await world.open()
        assert refused.value.code is Code.LOCKED
        world.app = first
        await world.until_running()


async def test_foreign_intent_of_our_fleet_stops_writing(tmp_path: Path) -> None:
    async with rehearsed(tmp_path) as world:
        held = await world.until_running()
        world.is_checked = False  # the other daemon's instance bills and our ledger does not know it
        _other_daemon_rents(world, Slot("train", 7))
        orders = len(world.orders)
        await world.cycle(minutes=2)
        world.rival(int(held.host_id), bid=held.gpu_rate.dollars * 1.2)
        await world.cycle(minutes=30)

        assert len(world.orders) == orders, "wrote although another daemon runs on this fleet"
        found = await world.events("orphan.seen")
        assert [event.reason_code for event in found] == ["second_daemon"]
        recorded = len(await world.intents())
        await world.cycle(minutes=10)
        assert len(await world.intents()) == recorded, "records an intent each cycle that it never sends"


async def test_a_label_that_one_listing_shows_is_no_second_daemon(tmp_path: Path) -> None:
    """The suspicion needs two listings and a look by id: one altered field must not disarm every later release."""
    async with rehearsed(tmp_path) as world:
        await world.until_running()
        theirs = world.foreign("theirs")
        told = labels.text(Label(FLEET, Slot("train", 7), "feedfacefeedface"))
        lie = {"field": "label", "value": told, "instance": str(theirs.contract_id)}
        world.weather("field_lie", route="GET /instances", **lie)
        world.weather("field_lie", route="GET /instances/", how="missing", **{**lie, "value": None})
        await world.cycle(minutes=3)
        assert not await world.events("orphan.seen")
        world.still()
        await spending.kill(world.app)
        await world.cycle(minutes=1)
        assert world.live() == []


async def test_a_kill_is_carried_on_beside_a_second_daemon(tmp_path: Path) -> None:
    """A person's ending goes on in later cycles; the other daemon's instances bill on our account too."""
    async with rehearsed(tmp_path) as world:
        await world.until_running()
        ours = world.live()
        world.is_checked = False  # the other daemon's instance bills and our ledger does not know it
        other = _other_daemon_rents(world, Slot("train", 7))
        await world.cycle(minutes=2)
        assert [event.reason_code for event in await world.events("orphan.seen")] == ["second_daemon"]
        assert [lease.instance_id for lease in world.leases() if lease.is_held] == [str(other)], "metered and capped"
        weather = world.weather("server_error_before", route="DELETE /instances")
        await spending.kill(world.app)
        assert all(contract.ended is None for contract in ours)
        world.simulator.weather.clear(weather)
        await world.cycle(minutes=2)
        assert all(contract.ended is not None for contract in ours)
        assert world.market.contracts[other].ended is not None


async def test_a_hard_cap_pauses_beside_a_second_daemon_until_it_is_done(tmp_path: Path) -> None:
    """The pauses that a crossed cap demands of proven ids go on in later cycles; nothing else is written."""
    async with rehearsed(tmp_path) as world:
        held = await world.until_running()
        world.is_checked = False  # the other daemon's instance bills and our ledger does not know it
        _other_daemon_rents(world, Slot("train", 7))
        await world.cycle(minutes=2)
        orders, ours = (
            len(world.orders),
            next(each for each in world.live() if str(each.contract_id) == held.instance_id),
        )
        weather = world.weather("server_error_before", route="PUT /instances")
        world.app.rules = dataclasses.replace(world.app.rules, caps=Limits(per_day=money.usd("0.001")))
        await world.cycle(minutes=2)
        assert ours.holds_gpu
        world.simulator.weather.clear(weather)
        await world.cycle(minutes=2)
        assert not ours.holds_gpu
        assert ours.ended is None, "a cap pauses first, and its releases wait for a person"
        assert {intent.kind for intent in await world.intents()} <= {IntentKind.RENT, IntentKind.PAUSE}
        assert len(world.orders) > orders


@pytest.mark.only_sqlite
async def test_copy_of_the_ledger_elsewhere_is_found_out(tmp_path: Path) -> None:
    """Both daemons see the other's rent; whoever sees it first stops, and no slot is filled a third time."""
    async with rehearsed(tmp_path) as world:
        await world.cycle()
        contract = world.contract()
        copy = tmp_path / "copy"
        copy.mkdir()
        for name in ("ledger.sqlite", "ledger.sqlite.fleet", "ledger.sqlite-wal"):
            if (tmp_path / name).exists():
                shutil.copy(tmp_path / name, copy / name)
        other = Rehearsed(copy, world.scene)
        other.ids = random.Random("other")
        other.clock, other.market, other.simulator = world.clock, world.market, world.simulator
        await other.open()
        try:
            world.market.destroy(contract.contract_id)
            for _ in range(200):
                for each in (world, other):
                    await each.app.cycle()
                world.clock.advance(15)
        finally:
            await other.app.close()
        assert len(world.live()) <= 2
        assert len(world.contracts()) <= 3
