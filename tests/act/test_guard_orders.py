"""Orders to guards over a real S3 server behind a proxy: when one leaves, and that nothing else delays one."""

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from agent.act.guarding import guard_orders
from agent.act.guarding.guard_orders import Folder, GuardOrders
from agent.clock import SteppedClock
from agent.decide.limits import limits
from agent.decide.moves.last_checkpoint import Asked
from agent.decide.plan import Plan
from agent.domain.work.decision import Reason, Release
from tests.support import builders, s3_server, store_proxy
from tests.support.s3_server import SECRET, S3Server
from tests.support.s3_servers import Store
from tests.support.store_proxy import StoreProxy

FOLDER = "f1/train/0/1"
ORDER = "00aa-1"
GIVEN = Reason("moved", "it moved")


@pytest.fixture
def server() -> Iterator[S3Server]:
    with s3_server.served() as running:
        yield running


@pytest.fixture
def proxy(server: S3Server) -> Iterator[StoreProxy]:
    with store_proxy.before(Store("moto", server.url)) as running:
        yield running


class Desk:
    """Orders whose time is stepped, by a store that a proxy steers."""

    def __init__(self, server: S3Server, proxy: StoreProxy) -> None:
        self.clock = SteppedClock(builders.NOW)
        self.orders = GuardOrders(self.clock, asyncio.create_task, lambda _: SECRET)
        self._server = server
        self._folder = Folder(server.place(endpoint=proxy.url), FOLDER)

    def see(self, order: str | None = None) -> None:
        self.orders.see({} if order is None else {"00aa": order}, {"00aa": self._folder})

    async def settled(self) -> None:
        """Wait for the requests under way."""
        while self.orders._running and not all(task.done() for task in self.orders._running.values()):
            await asyncio.wait(self.orders._running.values())

    async def stands(self) -> dict[str, Any]:
        return dict(json.loads(await asyncio.to_thread(self._server.get, f"train/{FOLDER}/order.json")))


async def test_a_wanted_order_waits_for_no_reading(server: S3Server, proxy: StoreProxy) -> None:
    desk, gate = Desk(server, proxy), threading.Event()

    def fault(method: str, _: str) -> None:
        if method == "GET":
            gate.wait(60.0)

    proxy.fault = fault
    try:
        desk.see()
        await asyncio.to_thread(_until_asked, proxy, "GET")
        desk.see(ORDER)
        await desk.settled()
        assert (await desk.stands())["checkpoint"] == ORDER
        assert desk.orders.written == {ORDER: desk.clock.now()}
    finally:
        gate.set()
        await desk.orders.close()


async def test_an_order_follows_a_reading_that_failed_a_moment_ago_at_once(server: S3Server, proxy: StoreProxy) -> None:
    desk = Desk(server, proxy)
    proxy.once(503, "GET")
    desk.see()
    await desk.settled()
    desk.see(ORDER)
    await desk.settled()
    assert (await desk.stands())["checkpoint"] == ORDER


async def test_a_folder_that_no_lease_has_any_more_is_forgotten(server: S3Server, proxy: StoreProxy) -> None:
    """Every folder that was ever read was kept, for as long as the daemon ran."""
    desk = Desk(server, proxy)
    proxy.once(503, "GET")
    desk.see()
    await desk.settled()
    assert len(desk.orders._reading) == len(desk.orders._tried) == 1
    desk.orders.see({}, {})
    assert not desk.orders._reading
    assert not desk.orders._tried


async def test_an_order_is_tried_again_at_once_and_dated_by_the_try_that_the_bucket_took(
    server: S3Server, proxy: StoreProxy
) -> None:
    desk = Desk(server, proxy)
    proxy.once(503, "PUT", times=2)
    desk.see(ORDER)
    before = desk.clock.now()
    await desk.settled()
    assert (await desk.stands())["checkpoint"] == ORDER
    assert (desk.orders.written[ORDER] - before).total_seconds() == 4.0
    desk.see()
    await desk.settled()
    assert (await desk.stands())["checkpoint"] is None
    assert desk.orders.written == {}


async def test_a_store_that_refuses_is_asked_three_times_and_then_left_alone_for_seconds(
    server: S3Server, proxy: StoreProxy
) -> None:
    desk = Desk(server, proxy)
    proxy.once(403, "PUT", times=100)
    desk.see(ORDER)
    await desk.settled()
    assert (proxy.count("PUT"), desk.orders.written) == (3, {})
    desk.see(ORDER)
    await desk.settled()
    assert proxy.count("PUT") == 3
    desk.clock.advance(5.0)
    desk.see(ORDER)
    await desk.settled()
    assert proxy.count("PUT") == 6


async def test_of_two_leases_of_a_slot_the_order_is_written_whose_ending_waits(
    server: S3Server, proxy: StoreProxy
) -> None:
    desk, place = Desk(server, proxy), Folder(server.place(endpoint=proxy.url), FOLDER)
    asked = {"guard_run": 1, "checkpoint_asked_at": builders.ago(seconds=90)}
    refused = builders.lease(1, **asked)
    waits = builders.lease(2, **{**asked, "checkpoint_asked_at": builders.ago(seconds=5)})
    since = waits.checkpoint_asked_at
    assert since is not None
    leaves, ends = Release(refused, GIVEN), Release(waits, GIVEN)
    for decisions, wait in (((leaves,), (Asked(ends, since),)), ((leaves, ends), ())):
        planned = Plan(builders.NOW, decisions, limits.committed_by_fleet(builders.fleet()), {}, wait)
        for leases in ((refused, waits), (waits, refused)):
            ids = guard_orders.wanted(planned, leases, [builders.guarded()])
            assert set(ids) == {refused.intent_id, waits.intent_id}
            desk.orders.see(ids, {held.intent_id: place for held in leases})
            await desk.settled()
            assert (await desk.stands())["lease"] == waits.intent_id
            desk.orders.see({}, {held.intent_id: place for held in leases})
            await desk.settled()
    await desk.orders.close()


def _until_asked(proxy: StoreProxy, method: str) -> None:
    for _ in range(6_000):
        if proxy.count(method):
            return
        threading.Event().wait(0.01)
    raise AssertionError(f"no {method} came")
