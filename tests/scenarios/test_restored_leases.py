"""After `gpubid ledger restore`, or with a new ledger, running leases keep their terms and are rented once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease, LeaseState
from agent.ledger.file import backup, restore
from tests.support import builders, engines
from tests.support.both import OF_THE_PAST, both
from tests.support.world import Rehearsed, rehearsed, work

pytestmark = pytest.mark.only_sqlite


def terms(leases: Sequence[Lease]) -> list[tuple[Any, ...]]:
    """Return what leases were rented for."""
    return sorted(
        (held.lease_id, held.slot, held.tenure, held.host_id, held.gpu_rate, held.agreed, held.disk_rate, held.disk_gb)
        for held in leases
    )


async def lose(world: Rehearsed, copy: Path | None) -> None:
    """Put a backup in the ledger's place, or nothing, while no daemon runs."""
    world.is_checked = False  # earlier charges are in the month's seed, not under a lease
    await world.close()
    if copy is not None:
        restore.restore(copy, world.config.ledger, world.clock.now(), replaces=True)
    else:
        engines.lose(world.config.ledger)
    world.clock.advance(300)
    await world.open()


@pytest.mark.parametrize("is_restored", [True, False])
@pytest.mark.parametrize("strategy", ["patient", "ondemand"])
async def test_what_was_rented_since_the_backup_is_adopted_on_its_terms(
    tmp_path: Path, strategy: str, *, is_restored: bool
) -> None:
    async with rehearsed(tmp_path, workloads=(work(strategy=strategy, slots=2),)) as world:
        backup.copy(world.config.ledger, tmp_path / "copy.sqlite")
        await world.until_running()
        await world.cycle(minutes=30)
        rented = terms(world.leases())
        assert len(rented) == 2
        await lose(world, tmp_path / "copy.sqlite" if is_restored else None)
        await world.cycle(minutes=20)
        assert terms(world.leases()) == rented
        assert {lease.state for lease in world.leases()} == {LeaseState.RUNNING}
        assert len(world.contracts()) == 2
        assert not await world.intents(IntentKind.RENT)


@pytest.mark.parametrize("is_account_shown", [True, False])
@pytest.mark.parametrize("strategy", ["patient", "ondemand"])
async def test_what_took_the_place_of_a_lease_of_the_backup_is_adopted_and_none_is_rented_beside_it(
    tmp_path: Path, strategy: str, *, is_account_shown: bool
) -> None:
    """It was held for a person, and billed while another was rented for its slot.

    For the first minutes the key may not be proven: the market throttles the account.
    """
    async with rehearsed(tmp_path, workloads=(work(strategy=strategy),)) as world:
        first = await world.until_running()
        backup.copy(world.config.ledger, tmp_path / "copy.sqlite")
        world.market.set_host_gone(world.contract().slice.machine_id)
        await world.until(lambda: [each.lease_id for each in world.leases()] not in ([first.lease_id], []), minutes=60)
        second = await world.until_running()
        assert second.lease_id != first.lease_id
        rented, contracts = terms(world.leases()), len(world.contracts())
        await lose(world, tmp_path / "copy.sqlite")
        if not is_account_shown:
            world.weather("throttle_text", route="GET /users/current")
        await world.cycle(minutes=3)
        waiting = [lease.instance_id for lease in world.leases() if lease.is_held]
        assert waiting == ([] if is_account_shown else [second.instance_id]), "it bills, so it is counted"
        world.still()
        await world.cycle(minutes=20)
        assert terms(world.leases()) == rented
        assert world.lease().state is LeaseState.RUNNING
        assert len(world.contracts()) == contracts


async def test_so_it_is_on_both_markets(tmp_path: Path) -> None:
    jobs = [builders.workload(market, markets=(market,)) for market in ("vast", "runpod")]
    async with both(tmp_path, *jobs, climate=OF_THE_PAST) as world:
        backup.copy(world.config.ledger, tmp_path / "copy.sqlite")
        await world.until(lambda: len(world.running()) == 2)
        rented = terms(world.leases())
        await world.app.close()
        restore.restore(tmp_path / "copy.sqlite", world.config.ledger, world.clock.now(), replaces=True)
        await world.open()
        await world.cycle(minutes=20)
        assert terms(world.running()) == rented
        assert [len(world.contracts(market)) for market in ("vast", "runpod")] == [1, 1]
