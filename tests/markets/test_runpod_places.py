"""RunPod's clouds and data centres as requirements."""

from agent.clock import SteppedClock
from agent.decide.pricing import requirement_check
from tests.markets import pods
from tests.markets.scene import asked
from tests.support import builders


async def test_a_sample_of_a_small_disk_says_nothing_of_larger_ones(clock: SteppedClock) -> None:
    work = builders.workload(disk_gb=400.0, requirements=builders.requirements(gpu_models=("RTX 4090",)))
    async with pods.runpod_saying(pods.account, clock) as (runpod, _):
        sampled = await runpod.offers(asked(disk_gb=1.0, gpu_models=("RTX 4090",)))
    refused = [requirement_check.refusal(row, work, clock.now(), requirement_check.Unavailable()) for row in sampled]
    assert refused == [None, None]


async def test_only_the_secure_cloud_is_in_data_centres(clock: SteppedClock) -> None:
    async with pods.runpod_saying(pods.account, clock) as (runpod, wire):
        anywhere = await runpod.offers(asked(verified_only=False, gpu_models=("RTX 4090",)))
        inside = await runpod.offers(asked(verified_only=False, datacenter_only=True, gpu_models=("RTX 4090",)))
    assert [seen.query["cloud"] for seen in wire.seen if seen.query] == ["SECURE", "COMMUNITY", "SECURE"]
    assert {offer.is_datacenter for offer in anywhere} == {True, False}
    assert {offer.is_datacenter for offer in inside} == {True}
