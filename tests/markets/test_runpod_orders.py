"""Orders to RunPod: what leaves, what its answers prove, and that each leaves once."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from agent.clock import SteppedClock
from agent.domain import money
from agent.domain.market.tenure import Tenure
from agent.domain.work.workload import Runtype
from agent.markets import market_errors
from agent.markets.port import Login
from agent.markets.runpod import orders
from agent.markets.runpod.market import RunPodMarket
from tests.markets import pods
from tests.markets.scene import LABEL
from tests.markets.wire import Says, in_turn

FULL = "There are no longer any instances available with the requested specifications. Please refresh and try again."
HOST_FULL = "There are not enough free GPUs on the host machine to start this pod."
Order = Callable[[RunPodMarket], Awaitable[Any]]
ORDERS: dict[str, Order] = {
    "rent": lambda runpod: runpod.rent(pods.OFFERED, pods.ASK, LABEL),
    "resume": lambda runpod: runpod.resume(pods.POD),
    "pause": lambda runpod: runpod.pause(pods.POD),
    "release": lambda runpod: runpod.release(pods.POD),
}


async def test_an_order_says_everything_it_means(clock: SteppedClock) -> None:
    terms = replace(pods.ASK, disk_gb=39.2, command="python 'my train.py'", environment=(("A", "1"),), ports=(8000,))
    async with pods.runpod_saying(pods.account, clock) as (runpod, wire):
        assert await runpod.rent(pods.OFFERED, terms, LABEL) == pods.POD
    sent = wire.seen[0]
    assert (sent.method, sent.path) == ("POST", "/v2/pods")
    assert sent.json == {
        "name": LABEL,
        "image": "ubuntu:22.04",
        "gpu": {"id": "NVIDIA GeForce RTX 4090", "count": 1},
        "cloud": "SECURE",
        "dataCenterIds": ["EU-RO-1"],
        "disk": 40,
        "mounts": {"persistent": {"size": 40, "path": "/workspace"}},
        "env": {"A": "1"},
        "ports": ["8000/tcp"],
        "args": "python 'my train.py'",
        "startSsh": False,
        "startJupyter": False,
    }


async def test_a_shell_runs_the_script_and_lets_keys_in(clock: SteppedClock) -> None:
    terms = replace(pods.ASK, onstart="echo 'hi'", runtype=Runtype.SSH, ssh_keys=("ssh-ed25519 AAAA me",), disk_gb=4.0)
    async with pods.runpod_saying(pods.account, clock) as (runpod, wire):
        await runpod.rent(pods.OFFERED, terms, LABEL)
    sent = wire.seen[0].json
    assert sent["args"] == "bash -c 'echo '\"'\"'hi'\"'\"'\nsleep infinity'"
    assert (sent["startSsh"], sent["ports"], sent["env"]) == (True, ["22/tcp"], {"PUBLIC_KEY": "ssh-ed25519 AAAA me"})
    # The volume has a floor of its own.
    assert (sent["disk"], sent["mounts"]["persistent"]["size"]) == (4, 10)


@pytest.mark.parametrize(
    "terms",
    [
        replace(pods.ASK, tenure=Tenure.INTERRUPTIBLE),
        replace(pods.ASK, login=Login("ghcr.io", "me", "secret")),
        replace(pods.ASK, command="python 'unclosed"),
    ],
    ids=["bid", "login", "command"],
)
async def test_what_cannot_be_carried_out_as_meant_never_leaves(clock: SteppedClock, terms: Any) -> None:
    async with pods.runpod_saying(pods.account, clock) as (runpod, wire):
        with pytest.raises(market_errors.Rejected):
            await runpod.rent(pods.OFFERED, terms, LABEL)
        with pytest.raises(market_errors.Rejected):
            await runpod.rebid(pods.POD, money.per_hour("1"))
    assert wire.seen == []


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        (pods.problem(400, FULL), "no_capacity"),
        (pods.problem(400, "globalNetworking needs another data centre"), "refused"),
        (pods.problem(403, "access denied"), "forbidden"),
        (pods.problem(404, "template not found"), "not_found"),
        (pods.problem(422, "Request validation failed."), "invalid_args"),
        (pods.problem(410, "gone"), "route_gone"),
        (pods.problem(402, "insufficient balance"), "out_of_funds"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_refused_rent_is_proven_by_its_document(clock: SteppedClock, says: Says, reason: str) -> None:
    async with pods.runpod_saying(says, clock) as (runpod, wire):
        with pytest.raises(market_errors.Rejected) as caught:
            await runpod.rent(pods.OFFERED, pods.ASK, LABEL)
    assert (caught.value.reason, len(wire.seen)) == (reason, 1)


async def test_a_full_host_refuses_a_start_by_name(clock: SteppedClock) -> None:
    async with pods.runpod_saying(pods.problem(400, HOST_FULL), clock) as (runpod, _):
        with pytest.raises(market_errors.Rejected) as caught:
            await runpod.resume(pods.POD)
    assert caught.value.reason == "host_full"


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize(
    "says",
    [
        Says(b"<html>bad gateway</html>", 502),
        pods.problem(500, FULL),
        Says(b"<html>denied</html>", 403),
        Says({"title": "", "status": 400, "detail": FULL}, 400),
        Says({"title": "Bad Request", "status": 200, "detail": FULL}, 400),
        Says(drop=True),
        Says(pods.pod(), cut=9),
    ],
    ids=["502", "500", "page", "untitled", "other status", "dropped", "cut"],
)
async def test_an_answer_that_proves_nothing_is_doubt_and_the_order_left_once(
    clock: SteppedClock, says: Says, name: str
) -> None:
    async with pods.runpod_saying(says, clock) as (runpod, wire):
        with pytest.raises(market_errors.Ambiguous):
            await ORDERS[name](runpod)
    assert len(wire.seen) == 1


async def test_a_rent_that_names_no_pod_is_doubt(clock: SteppedClock) -> None:
    async with pods.runpod_saying(Says({"id": ""}, 201), clock) as (runpod, _):
        with pytest.raises(market_errors.Ambiguous):
            await runpod.rent(pods.OFFERED, pods.ASK, LABEL)


@pytest.mark.parametrize("name", ORDERS)
async def test_called_too_often_says_until_when_and_closes_the_lane(clock: SteppedClock, name: str) -> None:
    says = pods.problem(429, "rate limit exceeded", RateLimit='"minute";r=0;t=12, "hour";r=2800;t=1812')
    async with pods.runpod_saying(says, clock) as (runpod, wire):
        with pytest.raises(market_errors.Throttled) as caught:
            await ORDERS[name](runpod)
        assert caught.value.until == clock.now() + timedelta(seconds=12)
        with pytest.raises(market_errors.Throttled):
            await runpod.instances()
        assert len(wire.seen) == 1
        wire.answers = lambda _: pods.problem(
            429, "too fast", **{"Retry-After": "40", "RateLimit": '"minute";r=0;t=12'}
        )
        clock.advance(13.0)
        with pytest.raises(market_errors.Throttled) as caught:
            await ORDERS[name](runpod)
        assert caught.value.until == clock.now() + timedelta(seconds=40)


async def test_orders_on_a_pod_that_is_gone(clock: SteppedClock) -> None:
    async with pods.runpod_saying(pods.problem(404, "pod not found"), clock) as (runpod, _):
        await runpod.release(pods.POD)
        for name in ("resume", "pause"):
            with pytest.raises(market_errors.NotFound):
                await ORDERS[name](runpod)


async def test_a_pause_of_what_is_stopped_is_done_and_of_what_is_not_is_refused(clock: SteppedClock) -> None:
    conflict = pods.problem(409, "stop is not valid for the current status")
    for status in ("EXITED", "STARTING"):
        async with pods.runpod_saying(in_turn(conflict, Says(pods.pod(status=status))), clock) as (runpod, _):
            if status == "EXITED":
                await runpod.pause(pods.POD)
            else:
                with pytest.raises(market_errors.Rejected):
                    await runpod.pause(pods.POD)


async def test_actions_by_their_names(clock: SteppedClock) -> None:
    async with pods.runpod_saying(pods.account, clock) as (runpod, wire):
        assert await runpod.resume(pods.POD) is True
        await runpod.pause(pods.POD)
        await runpod.release(pods.POD)
    assert [seen.json for seen in wire.seen] == [{"action": name} for name in ("start", "stop", "terminate")]


@pytest.mark.parametrize(
    "says",
    [pods.problem(401, "invalid token"), Says(b"", 401), Says(b"Unauthorized", 401), Says(b"<html>log in</html>", 401)],
    ids=["problem", "empty", "text", "page"],
)
async def test_an_unknown_key_is_told_apart(clock: SteppedClock, says: Says) -> None:
    async with pods.runpod_saying(says, clock) as (runpod, _):
        for order in ORDERS.values():
            with pytest.raises(market_errors.Unauthorized):
                await order(runpod)
        with pytest.raises(market_errors.Unauthorized):
            await runpod.instances()


async def test_a_guard_keeps_its_facts_on_the_volume(clock: SteppedClock) -> None:
    terms = replace(pods.ASK, environment=(("GPUBID_GUARD", "{}"),))
    async with pods.runpod_saying(pods.account, clock) as (runpod, wire):
        await runpod.rent(pods.OFFERED, terms, LABEL)
    assert wire.seen[0].json["env"] == {"GPUBID_GUARD": "{}", "GPUBID_GUARD_HOME": f"{orders.MOUNT}/.gpubid-guard"}


@pytest.mark.parametrize(
    "second",
    [
        pods.problem(404, "Route DELETE:/v2/pods/x not found"),
        pods.problem(404, "pod not found"),
        pods.problem(403, "forbidden"),
        Says({}, 405),
        Says(b"<html>", 502),
        Says(drop=True),
    ],
    ids=["no such route", "no such pod", "forbidden", "not allowed", "page", "lost"],
)
async def test_the_other_route_of_a_release_takes_no_proof_back(clock: SteppedClock, second: Says) -> None:
    """A 404 of a market without that route passed for a release that is done, and the pod went on billing."""
    answers = in_turn(pods.problem(422, "no such action"), second)
    async with pods.runpod_saying(answers, clock) as (runpod, wire):
        with pytest.raises(market_errors.Rejected) as raised:
            await runpod.release(pods.POD)
    assert raised.value.reason == "invalid_args"
    assert [seen.method for seen in wire.seen] == ["POST", "DELETE"]


async def test_the_other_route_ends_a_pod_and_may_be_throttled(clock: SteppedClock) -> None:
    refused = pods.problem(422, "no such action")
    async with pods.runpod_saying(in_turn(refused, Says(b"", 204)), clock) as (runpod, _):
        await runpod.release(pods.POD)
    async with pods.runpod_saying(in_turn(refused, pods.problem(429, "slow down")), clock) as (runpod, _):
        with pytest.raises(market_errors.Throttled):
            await runpod.release(pods.POD)
