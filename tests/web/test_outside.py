"""Requests of others to the daemon: service discovery, and the market's signed deliveries, over real HTTP."""

import asyncio
import contextlib
import dataclasses
import datetime as dt
import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import yarl

from agent.act import endpoints
from agent.cli.setup import webhook
from agent.clock import SteppedClock, SystemClock
from agent.domain.market.interruption import MarketEvent, MarketEventKind
from agent.domain.record.lease import Lease, LeaseState
from agent.markets import registered_markets
from agent.markets.market_record import Delivery, Webhooks
from agent.markets.vast import events
from agent.systemd import CredentialError
from agent.telemetry import metric_families
from agent.telemetry.health import Health
from agent.web import discovery, webhook_deliveries
from agent.web.request_checks.refusal_log import Refusals
from agent.web.web_server import MOST_CONNECTIONS, Server
from agent.web.webhook_deliveries import Deliveries
from tests.support import builders
from tests.support.programs import PATIENCE_SECONDS
from tests.support.scene import work
from tests.support.world import POLL, rehearsed

NOW = dt.datetime(2026, 11, 20, 12, 0, tzinfo=dt.UTC)
SECRET = "a secret of the test"
OUTBID = {
    "event_id": "e1",
    "user_id": 7,
    "notif_type": "client:outbid",
    "subject": "outbid",
    "message": "Your interruptible instance 42 on machine 7 has been outbid and will be stopped. Your bid was $0.20/hr "
    "and the current minimum bid is $0.36/hr.",
    "timestamp": NOW.timestamp(),
}


class Woken:
    """A receiver over real HTTP, and how often it woke somebody."""

    def __init__(self, clock: SteppedClock | None = None) -> None:
        self.clock = clock or SteppedClock(NOW)
        self.times = 0
        self.url = ""

    def wake(self) -> None:
        self.times += 1

    async def post(self, raw: bytes, headers: dict[str, str]) -> int:
        async with aiohttp.ClientSession() as client, client.post(self.url, data=raw, headers=headers) as answer:
            return answer.status


def serving(clock: SteppedClock, taker: Deliveries) -> Server:
    health, refusals = Health(clock.monotonic), Refusals(clock.monotonic)
    return Server("127.0.0.1", 0, metric_families.registry(), health, taker.routes(), refusals=refusals)


@pytest.fixture
async def woken() -> AsyncIterator[Woken]:
    made = Woken()
    taker = Deliveries(lambda: SECRET, made.clock, made.wake)
    server = serving(made.clock, taker)
    host, port = await server.start()
    made.url = f"http://{host}:{port}/webhooks/vast"
    yield made
    await server.close()


async def test_a_signed_delivery_wakes_once_however_often_it_comes(woken: Woken) -> None:
    raw = json.dumps(OUTBID).encode()
    answers = [await woken.post(raw, events.signed(raw, NOW, SECRET)) for _ in range(3)]
    assert answers == [204, 204, 204]
    assert woken.times == 1


async def test_what_is_forged_changed_or_old_wakes_nobody(woken: Woken) -> None:
    raw = json.dumps(OUTBID).encode()
    good = events.signed(raw, NOW, SECRET)
    answers = [
        await woken.post(raw, {}),
        await woken.post(raw, events.signed(raw, NOW, "another secret")),
        await woken.post(raw + b" ", good),
        await woken.post(raw, good | {"X-Vast-Timestamp": "1"}),
    ]
    woken.clock.advance(3600)
    answers.append(await woken.post(raw, good))
    assert answers == [401] * 5
    assert woken.times == 0


async def test_a_secret_that_went_missing_asks_the_sender_to_come_again() -> None:
    def missing() -> str:
        raise CredentialError("vast_webhook", "is gone")

    clock = SteppedClock(NOW)
    taker = Deliveries(missing, clock, lambda: None)
    server = serving(clock, taker)
    host, port = await server.start()
    raw = json.dumps(OUTBID).encode()
    async with aiohttp.ClientSession() as client:
        address = f"http://{host}:{port}/webhooks/vast"
        async with client.post(address, data=raw, headers=events.signed(raw, NOW, SECRET)) as answer:
            assert answer.status == 503
    await server.close()


async def test_a_delivery_as_large_as_a_flood_is_refused(woken: Woken) -> None:
    raw = b"x" * 100_000
    assert await woken.post(raw, events.signed(raw, NOW, SECRET)) == 413


async def test_connections_that_never_ask_give_way_to_those_that_do(woken: Woken) -> None:
    place = yarl.URL(woken.url)
    idle = [await asyncio.open_connection(place.host, place.port) for _ in range(2 * MOST_CONNECTIONS)]
    for _, writer in idle:
        writer.write(b"POST /webhooks/vast HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    raw = json.dumps(OUTBID).encode()
    assert await woken.post(raw, events.signed(raw, NOW, SECRET)) == 204
    ended = [await asyncio.wait_for(reader.read(), PATIENCE_SECONDS) for reader, _ in idle[:MOST_CONNECTIONS]]
    assert ended == [b""] * MOST_CONNECTIONS, "the oldest are not cut"
    assert not idle[-1][0].at_eof()
    for _, writer in idle:
        writer.close()


def test_useful_leases_are_discovered_with_their_ports_and_labels() -> None:
    lease = builders.lease(state=LeaseState.RUNNING, ports="8000/tcp=1.2.3.4:41234 22/tcp=1.2.3.4:41235")
    loading = builders.lease(2, state=LeaseState.STARTING, ports="8000/tcp=1.2.3.4:50000")
    held = builders.lease(3, state=LeaseState.RUNNING, is_held=True, ports="8000/tcp=1.2.3.4:50001")
    served = [builders.workload(ports=(8000,))]
    found = discovery.services([lease, loading, held], served)
    assert [each["targets"] for each in found] == [["1.2.3.4:41234"]]
    assert found[0]["labels"]["__meta_gpubid_port"] == "8000"
    assert found[0]["labels"]["__meta_gpubid_workload"] == lease.slot.workload
    assert discovery.services([lease], served, "another") == []
    assert discovery.services([lease], [builders.workload()]) == []


def test_endpoints_that_appear_move_or_go_are_changes() -> None:
    first, second = builders.slot(), builders.slot(index=1)
    before, after = {first: "8000/tcp=1.2.3.4:1"}, {second: "8000/tcp=1.2.3.4:2"}
    assert endpoints.changes(before, after) == [first, second]
    assert endpoints.changes(after, after) == []


async def test_a_service_that_moves_says_where_it_is_reached(tmp_path: Path) -> None:
    async with contextlib.AsyncExitStack() as stack:
        world = await stack.enter_async_context(rehearsed(tmp_path, workloads=(work(ports=(8000,)),), poll=POLL))
        lease = await world.until_running()
        await world.cycle(minutes=2)
        told = await world.events(endpoints.CHANGED)
    assert told[-1].reason.startswith("8000/tcp=")
    assert told[-1].workload == lease.slot.workload
    assert isinstance(lease, Lease)


async def test_the_verb_sends_a_delivery_that_counts_and_one_that_does_not() -> None:
    made = Woken(SteppedClock(SystemClock().now()))
    server = serving(made.clock, Deliveries(lambda: SECRET, made.clock, made.wake))
    host, port = await server.start()
    ((_, webhooks),) = webhook_deliveries.senders()
    assert await webhook._deliver(f"http://{host}:{port}/webhooks/vast", SECRET, webhooks) == ("HTTP 204", "HTTP 401")
    assert made.times == 1
    await server.close()


async def test_each_market_that_sends_webhooks_has_a_path_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    vast = registered_markets.record("vast")
    event = MarketEvent("e1", "toybox", MarketEventKind.OUTBID, "toy-1", NOW)

    async def register(*_: object) -> str:
        return SECRET

    toybox = dataclasses.replace(
        vast,
        name="toybox",
        webhooks=Webhooks(
            register,
            lambda delivery, secret, _: event if delivery.headers.get("X-Toy") == secret.decode() else None,
            lambda secret, _: Delivery(b"", {"X-Toy": secret}),
        ),
    )
    monkeypatch.setattr(registered_markets, "installed", lambda: {"toybox": toybox, "vast": vast})
    made = Woken()
    server = serving(made.clock, Deliveries(lambda: SECRET, made.clock, made.wake))
    host, port = await server.start()
    made.url = f"http://{host}:{port}/webhooks/toybox"
    assert [await made.post(b"", {"X-Toy": word}) for word in ("wrong", SECRET, SECRET)] == [401, 204, 204]
    assert made.times == 1, "an event that comes again wakes nobody"
    await server.close()
