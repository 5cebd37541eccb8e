"""The host falls silent: nothing is charged meanwhile, and the strategy chooses between waiting and moving."""

from pathlib import Path

import pytest

from agent.domain.market.interruption import Cause
from agent.domain.record.lease import Bills, LeaseState
from agent.domain.work.order import Order
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from agent.simulator.vast.http import inbox
from agent.simulator.vast.model import NoticeKind
from tests.support.world import rehearsed, work

KEPT_ON_DISK = Checkpoint(place=CheckpointPlace.DISK)


async def test_host_offline_then_back(tmp_path: Path) -> None:
    """The only checkpoint is on that disk, so the lease is kept, and runs again when the host speaks."""
    async with rehearsed(tmp_path, workloads=(work(checkpoint=KEPT_ON_DISK),)) as world:
        held = await world.until_running()
        await world.cycle(minutes=20)
        world.weather("host_offline", machine_id=world.contract().slice.machine_id, seconds=1500)
        await world.cycle(minutes=2)

        lease = world.lease()
        assert (lease.state, lease.bills, lease.interrupted_by) == (
            LeaseState.OFFLINE,
            Bills.NOTHING,
            Cause.HOST_OFFLINE,
        )
        await world.until_running(minutes=40)
        assert world.lease().lease_id == held.lease_id
        assert len(world.contracts()) == 1
        lost, back = (await world.events("lease.interrupted", "lease.resumed"))[-2:]
        assert (lost.cause, lost.rule, back.lease_id) == (Cause.HOST_OFFLINE, "host_state", held.lease_id)


async def test_announced_maintenance_names_its_loss_and_keeps_new_rents_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The account shows such notices in its inbox, without a date; the lease works on until its host is silent."""
    monkeypatch.setattr(inbox, "SHOWN", inbox.SHOWN | {NoticeKind.MAINTENANCE})
    async with rehearsed(tmp_path, workloads=(work(checkpoint=KEPT_ON_DISK),)) as world:
        held = await world.until_running()
        world.market.advance_to(world.clock.time())
        world.market.landlord.plan_maintenance(world.contract().slice.machine_id, 3600, 1500)
        await world.cycle(minutes=20)
        assert (world.lease().lease_id, world.lease().state) == (held.lease_id, LeaseState.RUNNING)
        known = world.app.ledger.recollection(world.clock.now()).cooldowns
        grounds = {rest.key: rest.ground for rest in known}
        assert "announcement of maintenance" in grounds[f"vast/{held.host_id}"]
        await world.cycle(minutes=45)
        assert world.lease().state is LeaseState.OFFLINE
        (lost,) = await world.events("lease.interrupted")
        assert (lost.cause, lost.rule) == (Cause.HOST_OFFLINE, "maintenance")
        assert "it announced maintenance, read at" in lost.evidence
        assert len(await world.events("lease.maintenance")) == 1


async def test_host_offline_then_move(tmp_path: Path) -> None:
    """The checkpoint is elsewhere: an offline host is left for another, and released although it does not answer."""
    async with rehearsed(tmp_path) as world:
        held = await world.until_running()
        old = world.contract()
        await world.cycle(minutes=20)
        world.weather("host_offline", machine_id=old.slice.machine_id)
        await world.until(lambda: old.ended is not None, minutes=120)
        await world.cycle(minutes=1)
        lease = world.lease()
        assert (lease.state, lease.slot) == (LeaseState.RUNNING, held.slot)
        assert lease.host_id != held.host_id


async def test_host_offline_in_mid_release(tmp_path: Path) -> None:
    """A silent host bills nothing, which is no confirmation: the release is asked for until the market says gone."""
    async with rehearsed(tmp_path) as world:
        held = await world.until_running()
        old = world.contract()
        world.weather("host_offline", machine_id=old.slice.machine_id)
        world.weather("server_error_before", route="DELETE /instances")
        await world.app.say(Order("release", held.lease_id), "a test")
        await world.cycle(minutes=10)
        assert [lease.state for lease in world.leases() if lease.lease_id == held.lease_id] == [LeaseState.RELEASING]
        assert len(world.contracts()) == 1
        # At the pace of the poll, not of a confirmed write.
        sent = len(world.calls("DELETE", "/instances"))
        assert 2 <= sent <= 10 * 60 / world.config.poll.total_seconds() + 2
        world.still()
        await world.until(lambda: old.ended is not None, minutes=5)
