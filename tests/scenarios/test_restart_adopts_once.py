"""Stopped and started again: open leases are kept as they are, nothing is adopted or rented a second time."""

from pathlib import Path

from agent.domain.market.label import Label
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from agent.markets import labels
from tests.support import engines
from tests.support.world import FLEET, rehearsed, work


async def test_restart_keeps_what_runs(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(work(slots=2),)) as world:
        await world.until_running()
        before = {lease.lease_id for lease in world.leases()}
        orders = len(world.orders)
        for _ in range(3):
            await world.restart(after_seconds=400)
            await world.cycle(minutes=5)
        assert {lease.lease_id for lease in world.leases()} == before
        assert [lease.state for lease in world.leases()] == [LeaseState.RUNNING] * 2
        assert len(world.orders) == orders
        assert not await world.events("orphan.seen", "lease.interrupted")


async def test_stopping_releases_nothing_and_says_what_goes_on(tmp_path: Path) -> None:
    async with rehearsed(tmp_path) as world:
        held = await world.until_running()
        leases, rate = world.app.billing()
        assert [lease.lease_id for lease in leases] == [held.lease_id]
        assert rate == held.gpu_rate + held.disk_rate
        orders = len(world.orders)
        await world.close()
        world.clock.advance(3600)
        world.market.advance_to(world.clock.time())
        assert len(world.orders) == orders
        assert world.market.billing_now() == [int(held.instance_id)]
        await world.open()


async def test_an_instance_of_ours_beside_a_rent_in_doubt_is_adopted_once_that_proves_void(tmp_path: Path) -> None:
    """It was held for a person and billed, and the slot rented a second one beside it."""
    async with rehearsed(tmp_path) as world:
        world.weather("server_error_before", route="PUT /asks")
        await world.cycle()
        (doubted,) = world.open_intents()
        await world.close()
        stranger = world.foreign(labels.text(Label(FLEET, doubted.slot, "feedfacefeedface")))
        world.clock.advance(30)
        await world.open()
        await world.cycle(minutes=2)
        (waits,) = world.leases()
        assert (waits.instance_id, waits.is_held) == (str(stranger.contract_id), True)
        assert world.open_intents() == [doubted]
        world.still()
        await world.cycle(minutes=15)
        lease = world.lease()
        assert (lease.instance_id, lease.is_held, lease.slot) == (str(stranger.contract_id), False, doubted.slot)
        assert len(world.contracts()) == 1, "nothing is rented beside it"
        found = await world.events("orphan.seen")
        assert found[0].reason_code == "wait"


async def test_lost_ledger_adopts_by_label(tmp_path: Path) -> None:
    """The ledger is gone, its fleet id is not.

    An instance for an empty slot is adopted, nothing is rented beside it.
    """
    async with rehearsed(tmp_path) as world:
        held = await world.until_running()
        await world.cycle(minutes=30)
        spent = await world.spend()
        await world.close()
        engines.lose(world.config.ledger)
        world.is_checked = False  # earlier charges are in the month's seed, not under a lease
        await world.open()
        await world.cycle(minutes=5)
        lease = world.lease()
        assert (lease.instance_id, lease.slot, lease.state) == (held.instance_id, held.slot, LeaseState.RUNNING)
        assert len(world.contracts()) == 1
        assert not await world.intents(IntentKind.RENT)
        assert (await world.events("orphan.seen"))[0].reason_code == "adopt"
        known = world.app.ledger.recollection(world.clock.now()).total.month.dollars
        assert known >= spent * 0.99, "the month's spend before the loss is not counted"
