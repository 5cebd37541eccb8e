"""Rule 21, for the other terms of a lease: a wrong disk price, end or traffic of ten minutes changes nothing.

Under caps, each of these figures would pause or release what works, or move it to another host.
"""

from typing import Any

import pytest

from agent.decide.limits.limits import Limits
from agent.domain import money
from agent.domain.record.lease import LeaseState
from agent.domain.work.order import Order
from tests.support.world import Rehearsed, play, work

CENT = 0.01
CAPS = Limits(per_hour=money.per_hour(3), per_day=money.usd(25))
WORKS = (work("spot"), work("stable", strategy="ondemand"))
PAST = {"field": "end_date", "how": "set", "value": 1.0}
STORAGE = {"field": "storage_total_cost", "how": "times"}
LIES: dict[str, dict[str, Any]] = {
    "storage a thousand times": STORAGE | {"value": 1000.0},
    "storage a million times": STORAGE | {"value": 1e6},
    "downloads a thousand times": {"field": "inet_down_billed", "how": "times", "value": 1000.0},
    "uploads of petabytes": {"field": "inet_up_billed", "how": "set", "value": 1e11},
    "an end in the past": PAST,
    "an end in half an hour": {"field": "end_date", "how": "set", "value": None},
}


async def charged(world: Rehearsed) -> float:
    """Return the market's real charges."""
    world.market.advance_to(world.clock.time())
    world.market.charged_total()
    return sum(sum(contract.charged.values()) for contract in world.contracts())


@pytest.mark.parametrize("name", LIES)
@pytest.mark.parametrize("minutes", [0.0, 10.0])
def test_a_wrong_figure_ends_and_moves_nothing(name: str, minutes: float) -> None:
    async def story(world: Rehearsed) -> None:
        world.is_checked = False
        await world.until_running(minutes=360)
        await world.cycle(minutes=10)
        held, orders = world.leases(), len(world.orders)
        lie = dict(LIES[name])
        if "value" in lie and lie["value"] is None:
            lie["value"] = world.clock.now().timestamp() + 1800
        world.weather("field_lie", route="GET", **lie)
        if lie["field"] == STORAGE["field"]:
            # Two other figures would contradict one false price of a disk.
            world.weather("field_lie", route="GET", **lie | {"field": "search.diskHour"})
        await world.cycle(minutes=minutes)
        assert await world.events("alert.rate_doubted")
        world.still()
        await world.cycle(minutes=10)
        assert world.orders[orders:] == []
        after = {lease.lease_id: lease for lease in world.leases()}
        assert after.keys() == {lease.lease_id for lease in held}
        assert {(lease.state, lease.runs) for lease in after.values()} == {(LeaseState.RUNNING, 1)}
        assert [after[lease.lease_id].ends_at for lease in held] == [lease.ends_at for lease in held]
        assert -CENT <= await world.spend() - await charged(world) <= 2 * CENT

    play(story, seed=3, workloads=WORKS, limits=CAPS)


def test_a_wrong_end_releases_no_paused_disk() -> None:
    """A person paused the workload. The end of its contract would release the disk."""

    async def story(world: Rehearsed) -> None:
        held = await world.until_running()
        await world.app.say(Order("pause", "train"), "a test")
        await world.until(lambda: world.lease().state is LeaseState.PAUSED, minutes=10)
        orders = len(world.orders)
        world.weather("field_lie", route="GET", **PAST)
        await world.cycle(minutes=10)
        world.still()
        await world.cycle(minutes=5)
        assert (world.lease().lease_id, world.orders[orders:]) == (held.lease_id, [])

    play(story)
