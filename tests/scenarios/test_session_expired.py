"""The session of a key ends: its orders are refused, none is in doubt, and work goes on once the key is good again."""

from pathlib import Path

from agent.domain.market.tenure import Tenure
from agent.domain.record.intent import IntentState
from agent.domain.work.decision import Reason, Release
from tests.support import builders
from tests.support.both import both
from tests.support.world import rehearsed


async def test_an_ended_session_refuses_orders_and_leaves_no_doubt_on_vast(tmp_path: Path) -> None:
    async with rehearsed(tmp_path) as world:
        await world.until_running()
        lease, contract = world.lease(), world.contract()
        weather = world.weather("session_expired", route="DELETE /instances")
        refused = await world.app.order([Release(lease, Reason("test", "a person's word"))], "tester")
        # A release that is refused falls back to a pause; the ended session refuses neither into doubt.
        assert {intent.state for intent in refused} <= {IntentState.REJECTED, IntentState.CONFIRMED}
        assert refused[0].outcome == "unauthorized"
        assert contract.ended is None
        world.simulator.weather.clear(weather)
        (done,) = await world.app.order([Release(world.lease(), Reason("test", "a person's word"))], "tester")
        assert done.state is IntentState.CONFIRMED
        assert contract.ended is not None


async def test_an_ended_session_refuses_a_rent_which_is_tried_again_on_runpod(tmp_path: Path) -> None:
    work = builders.workload(
        strategy="ondemand", requirements=builders.requirements(gpu_models=("RTX A5000",)), markets=("runpod",)
    )
    async with both(tmp_path, work, markets=("runpod",)) as world:
        world.weather("runpod", "session_expired", route="POST /v2/pods")
        await world.cycle(minutes=3)
        assert not world.live()
        assert not world.app.ledger.recollection(world.clock.now()).intents
        world.still()
        await world.until(lambda: len(world.running()) == 1)
        assert [lease.tenure for lease in world.running()] == [Tenure.ON_DEMAND]
