"""Outbid far above what staying is worth: the old start is cancelled, another host rented, the old one released."""

from pathlib import Path

from agent.domain.interruption import Cause
from agent.domain.lease import LeaseState
from tests.support.world import rehearsed


async def test_outbid_then_move(tmp_path: Path) -> None:
    async with rehearsed(tmp_path) as world:
        held = await world.until_running()
        old = world.contract()
        await world.cycle(minutes=30)
        lost_at = world.clock.time()
        world.rival(old.slice.machine_id, bid=held.gpu_rate.dollars * 3)

        await world.until(lambda: len(world.live()) == 2, minutes=1)
        stopped = world.calls("PUT", f"/instances/{old.contract_id}", since=lost_at)
        rented = world.calls("PUT", "/asks", since=lost_at)
        assert len(stopped) == len(rented) == 1
        assert stopped[0][0] <= rented[0][0], "the old lease could still start by itself when the new one was rented"
        assert old.wants_gpu is False

        await world.until(lambda: len(world.leases()) == 1, minutes=60)
        lease = world.lease()
        assert (lease.slot, lease.state) == (held.slot, LeaseState.RUNNING)
        assert lease.host_id != held.host_id
        assert old.ended is not None
        new = world.contract()
        assert new.first_started is not None
        assert new.first_started <= old.ended, "the old one was released before the new one ran"
        lost = (await world.events("lease.interrupted"))[-1]
        assert lost.cause is Cause.OUTBID
        released = (await world.events("lease.released_by_us"))[-1]
        assert (released.lease_id, released.reason_code) == (held.lease_id, "moved")
        assert len(world.calls("PUT", "/asks")) == 2
