"""Another host would be cheaper, but no limit lets it be rented: the old lease keeps its place in the queue."""

from pathlib import Path

import pytest

from agent.decide.limits.limits import Limits
from agent.domain import money
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from tests.support.world import rehearsed


@pytest.mark.parametrize(
    ("limits", "name"),
    [(Limits(instances=1), "instances"), (Limits(per_instance_hour=money.per_hour("0.11")), "per_instance_hour")],
    ids=["instances", "price"],
)
async def test_forbidden_move_cancels_nothing(tmp_path: Path, limits: Limits, name: str) -> None:
    async with rehearsed(tmp_path, limits=limits) as world:
        held = await world.until_running()
        contract = world.contract()
        await world.cycle(minutes=30)
        rival = world.rival(contract.slice.machine_id)
        done = await world.cycle()
        struck = {decision.reason.limit for decision in done.plan.decisions}
        assert struck == {name}, "the story tells nothing: it would not move anyway"
        await world.cycle(minutes=20)
        assert [order.kind for order in world.orders] == [IntentKind.RENT]
        assert contract.wants_gpu, "its start was cancelled for a move that is not made"

        world.market.remove_rival(rival)
        await world.until_running(minutes=5)
        assert (world.lease().lease_id, world.lease().state) == (held.lease_id, LeaseState.RUNNING)


async def test_allowed_move_within_the_rate_of_one(tmp_path: Path) -> None:
    """A cap on the fleet's rate counts the cancelled lease with its disk only, so a move needs no room for two."""
    async with rehearsed(tmp_path, limits=Limits(per_hour=money.per_hour("0.30"))) as world:
        held = await world.until_running()
        await world.cycle(minutes=30)
        world.rival(int(held.host_id))
        await world.until(lambda: len(world.live()) == 2, minutes=30)
        await world.until(lambda: len(world.leases()) == 1, minutes=60)
        assert world.lease().host_id != held.host_id
