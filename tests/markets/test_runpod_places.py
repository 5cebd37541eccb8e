"""RunPod's clouds and data centres as requirements."""

import json
from dataclasses import replace

import pytest

from agent.clock import SteppedClock
from agent.decide.pricing import offer_refusal
from agent.domain import money
from agent.domain.market.tenure import Tenure
from agent.markets import market_errors
from agent.markets.runpod import orders
from tests.markets import pods
from tests.markets.scene import asked
from tests.markets.wire import Answers, Says, Seen
from tests.support import builders


async def test_a_sample_of_a_small_disk_says_nothing_of_larger_ones(clock: SteppedClock) -> None:
    work = builders.workload(disk_gb=400.0, requirements=builders.requirements(gpu_models=("RTX 4090",)))
    async with pods.runpod_saying(pods.account, clock) as (runpod, _):
        sampled = await runpod.offers(asked(disk_gb=1.0, gpu_models=("RTX 4090",)))
    refused = [offer_refusal.refusal(row, work, clock.now(), offer_refusal.Unavailable()) for row in sampled]
    assert refused == [None, None]


async def test_only_the_secure_cloud_is_in_data_centres(clock: SteppedClock) -> None:
    async with pods.runpod_saying(pods.account, clock) as (runpod, wire):
        anywhere = await runpod.offers(asked(verified_only=False, gpu_models=("RTX 4090",)))
        inside = await runpod.offers(asked(verified_only=False, datacenter_only=True, gpu_models=("RTX 4090",)))
    assert [seen.query["cloud"] for seen in wire.seen if seen.query] == ["SECURE", "COMMUNITY", "SECURE"]
    assert {offer.is_datacenter for offer in anywhere} == {True, False}
    assert {offer.is_datacenter for offer in inside} == {True}


def with_volumes(*places: tuple[str, str]) -> Answers:
    """Answer as the usual account that also has network volumes: (id, data centre)."""
    rows = [{"id": name, "name": "data", "size": 50, "dataCenter": place, "type": "STANDARD"} for name, place in places]
    listed = Says({"networkVolumes": rows})
    return lambda seen: listed if seen.path == "/v2/network-volumes" else pods.account(seen)


async def test_a_network_volume_requires_its_data_centre(clock: SteppedClock) -> None:
    answers = with_volumes(("nv1", "US-KS-2"), ("nv2", "EU-RO-1"), ("nv3", "US-KS-2"))
    async with pods.runpod_saying(answers, clock) as (runpod, wire):
        anywhere = await runpod.offers(asked(gpu_models=("RTX 4090",)))
        assert "/v2/network-volumes" not in [seen.path for seen in wire.seen]
        there = await runpod.offers(asked(network_volume="nv1", verified_only=False, gpu_models=("RTX 4090",)))
        later = await runpod.offers(asked(gpu_models=("RTX 4090",)))
        unknown = await runpod.offers(asked(network_volume="nv9", gpu_models=("RTX 4090",)))
    assert [offer.network_volumes for offer in anywhere] == [(), ()]
    assert [(offer.region, offer.network_volumes) for offer in there] == [("US-KS-2, US", ("nv1", "nv3"))]
    assert [offer.network_volumes for offer in later] == [("nv2",), ("nv1", "nv3")]
    assert unknown == []
    assert [seen.path for seen in wire.seen].count("/v2/network-volumes") == 1


async def test_a_key_that_may_not_see_volumes_still_finds_what_needs_none(clock: SteppedClock) -> None:
    refused = pods.problem(403, "The key's scope does not include network volumes.")

    def answers(seen: Seen) -> Says:
        return refused if seen.path == "/v2/network-volumes" else pods.account(seen)

    async with pods.runpod_saying(answers, clock) as (runpod, _):
        with pytest.raises(market_errors.Unavailable, match="does not show the network volumes to this key"):
            await runpod.offers(asked(network_volume="nv1", gpu_models=("RTX 4090",)))
        assert len(await runpod.offers(asked(gpu_models=("RTX 4090",)))) == 2


async def test_a_rent_with_a_network_volume_mounts_it_in_place_of_the_hosts_own(clock: SteppedClock) -> None:
    terms = replace(pods.ASK, network_volume="nv1", environment=(("GPUBID_GUARD", "{}"),))
    async with pods.runpod_saying(pods.account, clock) as (runpod, wire):
        await runpod.rent(pods.OFFERED, terms, "gpubid:f1:train:0:i1")
        await runpod.rent(
            pods.OFFERED, replace(terms, tenure=Tenure.INTERRUPTIBLE, bid=money.per_hour("0.4")), "gpubid:f1:train:0:i2"
        )
    on_demand, at_a_bid = wire.seen[0].json, wire.seen[1].json["variables"]["input"]
    assert on_demand["mounts"] == {"network": [{"volumeId": "nv1", "path": "/workspace"}]}
    # The facts of a guard are of one lease, and the volume is mounted by others too.
    assert on_demand["env"]["GPUBID_GUARD_HOME"] == f"{orders.MOUNT}/.gpubid-guard/gpubid-f1-train-0-i1"
    assert (at_a_bid["networkVolumeId"], "volumeInGb" in at_a_bid) == ("nv1", False)


async def test_an_instance_on_a_network_volume_pays_its_container_disk_alone(clock: SteppedClock) -> None:
    mounts = {"network": [{"volumeId": "nv1", "path": "/workspace"}]}
    for status, rate in (("RUNNING", "0.005556"), ("EXITED", "0")):
        async with pods.runpod_saying(pods.listing(pods.pod(mounts=mounts, status=status)), clock) as (runpod, _):
            (ours,) = await runpod.instances()
        assert ours.disk_rate == money.per_hour(rate), status


@pytest.mark.parametrize("memory", ["Infinity", "1e300", "-24", "NaN"])
async def test_an_absurd_memory_of_the_catalogue_ends_no_search(clock: SteppedClock, memory: str) -> None:
    """It ended the daemon: no number of megabytes, or one that no ledger takes."""
    rows = [row | {"memory": 0.125} for row in pods.payload("catalogue")["gpus"]]
    body = json.dumps({"gpus": rows}).replace("0.125", memory).encode()
    say = lambda seen: Says(body) if seen.path.startswith("/v2/catalog") else pods.account(seen)  # noqa: E731
    async with pods.runpod_saying(say, clock) as (runpod, _):
        assert {offer.vram_mb for offer in await runpod.offers(asked())} <= {0}
