"""Hosts are distinguished by market, over real HTTP with both: orders, cooldowns and records name it."""

from pathlib import Path

import pytest

from agent.act.orders.order_error import OrderError
from agent.domain.record.lease import LeaseState
from agent.domain.work.order import Order
from tests.support import builders
from tests.support.both import both
from tests.support.scene import POLL


async def test_a_locked_host_is_locked_on_its_own_market_alone(tmp_path: Path) -> None:
    works = [builders.workload(name, strategy="ondemand", markets=(name,)) for name in ("vast", "runpod")]
    async with both(tmp_path, *works, poll=POLL) as world:
        await world.until(lambda: len(world.running()) == 2)
        held = {lease.market: lease for lease in world.leases()}
        host = held["vast"].host_id
        # The same id on RunPod is another host: its lock is in nobody's way on Vast.
        await world.app.say(Order("lock", f"host:runpod/{host}"), "a person")
        with pytest.raises(OrderError) as caught:
            await world.app.say(Order("lock", f"host:{host}"), "a person")
        assert caught.value.code == "ambiguous_place"
        assert f"host:runpod/{host} or host:vast/{host}" in caught.value.sentence
        await world.app.say(Order("unlock", f"host:runpod/{host}"), "a person")
        await world.app.say(Order("lock", f"host:{host}"), "a person")
        await world.app.say(Order("release", "vast"), "a person")
        await world.app.say(Order("release", "runpod"), "a person")
        await world.until(lambda: {lease.market for lease in world.running()} == {"vast", "runpod"})
        again = {lease.market: lease for lease in world.leases() if lease.state is LeaseState.RUNNING}
        assert again["vast"].host != held["vast"].host
        assert again["runpod"].host == held["runpod"].host
        locked = [
            rest.place[1]
            for rest in world.app.ledger.recollection(world.clock.now()).expiring
            if rest.place[0] == "lock"
        ]
        assert locked == [f"host:vast/{host}"]
