"""RunPod's clouds and data centres as requirements."""

from agent.clock import SteppedClock
from tests.markets import pods
from tests.markets.scene import asked


async def test_only_the_secure_cloud_is_in_data_centres(clock: SteppedClock) -> None:
    async with pods.runpod_saying(pods.account, clock) as (runpod, wire):
        anywhere = await runpod.offers(asked(verified_only=False, gpu_models=("RTX 4090",)))
        inside = await runpod.offers(asked(verified_only=False, datacenter_only=True, gpu_models=("RTX 4090",)))
    assert [seen.query["cloud"] for seen in wire.seen if seen.query] == ["SECURE", "COMMUNITY", "SECURE"]
    assert {offer.is_datacenter for offer in anywhere} == {True, False}
    assert {offer.is_datacenter for offer in inside} == {True}
