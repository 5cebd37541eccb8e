"""After `gpubid ledger restore` each market is paid nothing until its bill shows the spend since the backup."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from agent.domain.record.lease import LeaseState
from agent.ledger.file import backup, restore
from agent.ledger.tables.spend_rows import MONTH_SEED, SpendKey
from tests.support import builders
from tests.support.both import OF_THE_PAST, Both, both
from tests.support.scene import POLL

pytestmark = pytest.mark.only_sqlite
BILLS = {"vast": "GET /charges", "runpod": "GET /v2/billing"}


async def counted_again(world: Both) -> float:
    """Return the dollars that the ledger took from the markets' bills."""
    reader = await world.app.ledger.reader()
    return sum(line.amount.dollars for line in await reader.spend_by(SpendKey.LEASE) if line.key == MONTH_SEED)


async def lose_what_came_after_a_backup(world: Both, copy: Path) -> None:
    """Rent on each market, put the ledger of before in the place of the present one, and start again."""
    path = world.config.ledger
    backup.copy(path, copy)
    await world.until(lambda: len(world.running()) == 2)
    await world.cycle(minutes=60)
    await world.app.close()
    restore.restore(copy, path, world.clock.now(), replaces=True)


@pytest.mark.parametrize("silent", sorted(BILLS))
async def test_a_market_whose_bill_is_silent_is_paid_nothing_until_it_is_read(tmp_path: Path, silent: str) -> None:
    jobs = [builders.workload(market, markets=(market,)) for market in BILLS]
    async with both(tmp_path, *jobs, climate=OF_THE_PAST, poll=POLL) as world:
        await lose_what_came_after_a_backup(world, tmp_path / "copy.sqlite")
        world.weather(silent, "server_error_before", route=BILLS[silent])
        await world.open()
        first = await counted_again(world)
        assert first > 0, "the bill of the other market"
        for minutes in (1.0, 10.0):
            done = await world.cycle(minutes)
            views = done.fleet.markets
            assert "bill" in views[silent].no_spend_because
            assert [view.market for view in views.values() if not view.no_spend_because] == [
                market for market in BILLS if market != silent
            ]
        assert await counted_again(world) == first
        world.still()
        done = await world.cycle(minutes=1)
        assert {view.no_spend_because for view in done.fleet.markets.values()} == {""}
        assert not world.app.ledger.was_lost
        both_bills = await counted_again(world)
        await world.restart(after_seconds=60)
        await world.cycle(minutes=10)
        assert await counted_again(world) == both_bills, "counted once"
        assert len(world.running()) == 2


async def test_an_instance_of_many_leases_does_not_hide_that_others_are_in_the_ledger(tmp_path: Path) -> None:
    """An instance that went on with several tasks has a lease for each: charges were counted again for the others."""
    job = builders.workload("vast", markets=("vast",), slots=2)
    async with both(tmp_path, job, climate=OF_THE_PAST, poll=POLL) as world:
        await world.until(lambda: len(world.running()) == 2)
        await world.cycle(minutes=60)
        now, ledger = world.clock.now(), world.app.ledger
        one = world.running()[0]
        async with ledger.transaction() as tx:
            for number in range(4):
                tx.open_lease(
                    replace(one, lease_id=f"task-{number}", state=LeaseState.ENDED, opened_at=now, ended_at=now)
                )
        backup.copy(world.config.ledger, tmp_path / "copy.sqlite")
        await world.app.close()
        restore.restore(tmp_path / "copy.sqlite", world.config.ledger, now, replaces=True)
        await world.open()
        await world.cycle(minutes=1)
        assert not world.app.ledger.is_uncounted("vast")
        assert await counted_again(world) == 0
