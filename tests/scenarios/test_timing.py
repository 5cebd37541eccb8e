"""One outbid in simulated time, pacing free: how soon it is confirmed and answered."""

from pathlib import Path

from tests.support.scene import heavy
from tests.support.world import rehearsed


async def test_outbid_is_confirmed_and_answered_within_two_seconds(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(heavy(),)) as world:
        held = await world.until_running()
        await world.cycle(minutes=30)
        world.rival(int(held.host_id), bid=held.gpu_rate.dollars * 1.2)
        lost_at = world.clock.time()

        await world.cycle()

        calls = [call for call in world.truth()["calls"] if call["time"] >= lost_at]
        reads = [call["time"] for call in calls if (call["method"], call["path"]) == ("GET", "/api/v1/instances/")]
        rebids = [call["time"] for call in calls if call["path"].startswith("/api/v0/instances/bid_price/")]
        assert len(reads) >= 2
        assert len(rebids) == 1
        print(f"confirming read after {reads[1] - reads[0]:.3f} s, bid change {rebids[0] - reads[1]:.3f} s after it")
        assert 0 < reads[1] - reads[0] <= 1.5
        assert 0 <= rebids[0] - reads[1] <= 2.0
