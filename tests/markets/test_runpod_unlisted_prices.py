"""A listing waits for no catalogue, and a stopped pod whose price nobody lists costs an unknown sum, never nothing."""

import json
from typing import Any

import pytest

from agent.clock import SteppedClock
from agent.decide.pricing import cooldowns
from agent.domain import money
from agent.domain.market.instance import InstanceState
from agent.domain.market.tenure import Tenure
from agent.markets import market_errors
from tests.markets import pods
from tests.markets.wire import Answers, Says, Seen

NONE = {"pods": [pods.pod(), pods.pod(id="n0tours", name="notebook", status="EXITED", cost=0)]}


def answers(catalogue: Says, listed: dict[str, Any] = NONE) -> Answers:
    def told(seen: Seen) -> Says:
        if seen.path == "/v2/pods":
            return Says(json.dumps(listed).encode())
        return catalogue if seen.path.startswith("/v2/catalog") else pods.account(seen)

    return told


@pytest.mark.parametrize(
    "catalogue", [Says(b"", 503), Says(b"", 429), Says(b'{"gpus": null}'), Says(b'{"gpus": []}')], ids=str
)
async def test_a_listing_waits_for_no_catalogue(clock: SteppedClock, catalogue: Says) -> None:
    """Whatever has to end is ended by the listing; one stopped pod of anybody made every listing fail."""
    async with pods.runpod_saying(answers(catalogue), clock) as (runpod, _):
        ours, stopped = await runpod.instances()
    assert (ours.instance_id, ours.state, ours.unread) == (pods.POD, InstanceState.RUNNING, frozenset())
    assert (stopped.state, stopped.unread) == (InstanceState.PAUSED, frozenset({"gpu_rate"}))


async def test_a_key_that_the_catalogue_refuses_is_reported(clock: SteppedClock) -> None:
    refused = Says(b'{"title": "Unauthorized", "status": 401, "detail": "Invalid API key"}', 401)
    async with pods.runpod_saying(answers(refused), clock) as (runpod, _):
        with pytest.raises(market_errors.Unauthorized):
            await runpod.instances()


@pytest.mark.parametrize("cloud", ["SERVERLESS", "secure", "", "\x1b[2J\u202e<b>", "x" * 100_000])
async def test_a_cloud_that_is_none_of_the_two_is_asked_for_nowhere_and_shown_nowhere(
    clock: SteppedClock, cloud: str
) -> None:
    row = pods.pod(status="EXITED", cost=0, cloud=cloud)
    async with pods.runpod_saying(answers(Says(pods.payload("catalogue")), {"pods": [row]}), clock) as (runpod, wire):
        (found,) = await runpod.instances()
    assert not [seen for seen in wire.seen if seen.path.startswith("/v2/catalog")]
    assert found.unread == {"gpu_rate", "gpus", "host_id"}
    assert found.host_id == pods.HOST


@pytest.mark.parametrize("changes", [{"gpu": None}, {"gpu": {"id": "NVIDIA GeForce RTX 4090", "count": -1}}])
async def test_a_stopped_pod_whose_gpus_cannot_be_read_has_no_price_either(
    clock: SteppedClock, changes: dict[str, Any]
) -> None:
    row = pods.pod(status="EXITED", cost=0, **changes)
    async with pods.runpod_saying(answers(Says(pods.payload("catalogue")), {"pods": [row]}), clock) as (runpod, _):
        (found,) = await runpod.instances()
    assert "gpu_rate" in found.unread


async def test_a_stopped_pod_at_a_bid_that_nobody_knows_is_not_started_at_a_bid_of_nothing(clock: SteppedClock) -> None:
    bid = {"id": pods.POD, "podType": "INTERRUPTABLE", "costPerHr": None, "desiredStatus": "EXITED"}
    listed = answers(Says(b'{"gpus": []}'), {"pods": [pods.pod(status="EXITED", cost=0)]})
    myself = Says({"data": {"myself": {"id": "user_1", "clientBalance": 12.5, "pods": [bid]}}})

    def told(seen: Seen) -> Says:
        return myself if seen.path == "/graphql" else listed(seen)

    async with pods.runpod_saying(told, clock) as (runpod, wire):
        (found,) = await runpod.instances()
        assert (found.tenure, found.unread) == (Tenure.INTERRUPTIBLE, frozenset({"gpu_rate"}))
        with pytest.raises(market_errors.Rejected, match="does not show the bid") as refused:
            await runpod.resume(pods.POD)
    assert cooldowns.is_unrepeated(refused.value.reason), "it would be refused, and written down, in each cycle"
    assert not [seen for seen in wire.seen if b"podBidResume" in seen.body]


async def test_a_model_that_comes_back_into_the_catalogue_has_its_price_again(clock: SteppedClock) -> None:
    """It was believed to cost nothing until the next search for it, and its resume passed every cap."""
    row = pods.pod(status="EXITED", cost=0)
    gone = answers(Says(b'{"gpus": []}'), {"pods": [row]})
    async with pods.runpod_saying(gone, clock) as (runpod, wire):
        for _ in range(5):
            (found,) = await runpod.instances()
            assert found.unread == {"gpu_rate"}
            await clock.sleep(60)
        assert len([seen for seen in wire.seen if seen.path.startswith("/v2/catalog")]) == 1
        wire.answers = answers(Says(pods.payload("catalogue")), {"pods": [row]})
        await clock.sleep(600)
        (found,) = await runpod.instances()
    assert (found.gpu_rate, found.unread) == (money.per_hour("1.32"), frozenset())
