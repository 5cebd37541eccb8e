"""What ended and came back while nobody looked is read from the market's record: losses, times and money are right."""

from pathlib import Path

import pytest

from agent.domain.market.interruption import Cause
from agent.domain.record.lease import LeaseState
from agent.domain.work import only_copy
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from agent.ledger.tables.spend_rows import SpendKey
from tests.support import engines
from tests.support.world import Rehearsed, rehearsed, work


async def outbid_and_back(world: Rehearsed, *, is_dark: bool) -> tuple[str, str, float]:
    """Let one lease be outbid for ten minutes and a second one displaced; return both and when the first was lost."""
    await world.until_running()
    await world.cycle(minutes=40)
    first, second = sorted(world.live(), key=lambda contract: contract.contract_id)
    one, two = (f"vast-{contract.contract_id}" for contract in (first, second))
    if is_dark:
        world.weather("server_error_before", seconds=20 * 60)
        await world.cycle(minutes=5)
    else:
        await world.close()
        world.clock.advance(300)
    lost_at = world.clock.time()
    rival = world.rival(first.slice.machine_id, bid=(first.bid or 0.0) * 1.5)
    world.rival(second.slice.machine_id)
    await pass_time(world, 600, is_dark=is_dark)
    world.market.remove_rival(rival)
    await pass_time(world, 300, is_dark=is_dark)
    if is_dark:
        await world.cycle(minutes=3)
    else:
        await world.open()
        await world.cycle(minutes=1)
    return one, two, lost_at


async def pass_time(world: Rehearsed, seconds: float, *, is_dark: bool) -> None:
    if is_dark:
        await world.cycle(minutes=seconds / 60)
    else:
        world.clock.advance(seconds)
    world.market.advance_to(world.clock.time())


@pytest.mark.parametrize("is_dark", [False, True], ids=["stopped", "dark"])
async def test_what_ended_and_came_back_is_a_loss_of_its_time(tmp_path: Path, *, is_dark: bool) -> None:
    async with rehearsed(tmp_path, workloads=(work(slots=2),)) as world:
        one, two, lost_at = await outbid_and_back(world, is_dark=is_dark)
        held = next(lease for lease in world.leases() if lease.lease_id == one)
        assert held.state is LeaseState.RUNNING
        lost = {event.lease_id: event for event in await world.events("lease.interrupted")}
        assert (lost[one].cause, lost[one].rule) == (Cause.OUTBID, "inbox")
        assert abs(lost[one].at.timestamp() - lost_at) < 30
        assert lost[two].cause is Cause.DISPLACED
        assert abs(lost[two].at.timestamp() - lost_at) < 30
        back = next(event for event in await world.events("lease.resumed") if event.lease_id == one)
        assert 590 < (back.at - lost[one].at).total_seconds() < 660
        hosts = world.app.ledger.recollection(world.clock.now()).hosts_on("vast")
        assert hosts[held.host_id].interruptions > 0
        reader = await world.app.ledger.reader()
        line = next(line for line in await reader.spend_by(SpendKey.LEASE) if line.key == one)
        assert line.useful_seconds <= line.running_seconds
        assert engines.place(world.config.ledger).verify().is_sound
        charged = world.market.charged_total()
        assert -0.01 <= await world.spend() - charged <= 0.02


async def test_what_first_ran_while_the_daemon_was_stopped_may_have_the_only_checkpoint_on_its_disk(
    tmp_path: Path,
) -> None:
    """It stops itself by its own key, which the market's record does not show: only its start is there (rule 11)."""
    kept = work(checkpoint=Checkpoint(place=CheckpointPlace.DISK))
    async with rehearsed(tmp_path, workloads=(kept,)) as world:
        await world.until(lambda: any(lease.state is LeaseState.STARTING for lease in world.leases()), 30)
        await world.close()
        await pass_time(world, 3600, is_dark=False)
        (contract,) = world.live()
        world.market.stop(contract.contract_id)
        await pass_time(world, 600, is_dark=False)
        await world.open()
        await world.cycle(minutes=1)
        lease = next(each for each in world.leases() if each.instance_id == str(contract.contract_id))
        assert lease.state is LeaseState.PAUSED
        assert (lease.has_run, only_copy.may_leave(lease, kept)) == (True, False)
        assert [event.lease_id for event in await world.events("lease.running")] == [lease.lease_id]
        assert [event.lease_id for event in await world.events("lease.interrupted")] == [lease.lease_id]
        assert engines.place(world.config.ledger).verify().is_sound
