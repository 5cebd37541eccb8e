"""Requests through a real HAProxy to real processes, while the slot of a simulated market moves or is outbid.

The market is simulated and all connections are on this machine: nothing here measures a network.
"""

import asyncio
import contextlib
import dataclasses
import datetime as dt
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

from agent.config.front_settings import Front
from agent.decide.moves import front_drain
from agent.domain.record.lease import Lease
from agent.domain.work.decision import Hold, Reason, Release
from agent.domain.work.ready_sign import Readiness, ReadySign
from agent.domain.work.workload import OnChange, Workload
from tests.support import haproxy, programs, serving_program
from tests.support.haproxy import Proxy
from tests.support.market import STILL
from tests.support.world import POLL, Rehearsed, rehearsed, work

pytestmark = haproxy.installed

REAL = dataclasses.replace(STILL, processes=True)
DRAIN = dt.timedelta(seconds=60)
BETWEEN_SECONDS = 0.02
"""About fifty requests a second."""


@dataclasses.dataclass(slots=True)
class Traffic:
    """What a client saw: the answers, and the requests that failed."""

    answered: int = 0
    failed: list[str] = dataclasses.field(default_factory=list)


END = "end"
"""The file whose presence ends the streams of a test."""


def serving(folder: Path, **changes: Any) -> Workload:
    ready = Readiness(ReadySign.HTTP, dt.timedelta(minutes=10), port=8000, path="/health")
    return work(ready=ready, ports=(8000,), drain=DRAIN, command=serving_program.command(folder / END), **changes)


@contextlib.asynccontextmanager
async def served(folder: Path, asked: Workload) -> AsyncIterator[tuple[Rehearsed, Proxy]]:
    """Run a service behind a proxy until all its slots are reached through it."""
    async with haproxy.running(folder) as proxy:
        front = Front("chat", "train", 8000, haproxy=proxy.socket, backend=haproxy.BACKEND, drain=DRAIN)
        where: dict[str, Any] = {"climate": REAL, "disks": folder / "disks", "is_wired": True, "fronts": (front,)}
        (folder / "fleet").mkdir()
        async with rehearsed(folder / "fleet", workloads=(asked,), poll=POLL, **where) as world:
            await until(world, lambda: world.app.fronts.statuses["chat"].up == asked.slots)
            yield world, proxy


async def cycle(world: Rehearsed) -> None:
    """Run a cycle. The market's time runs ahead of ours, so every process that began gets ours until it listens."""
    await world.cycle()
    await world.app.fronts.settle()
    for contract in world.live():
        for port in contract.process.ports.values() if contract.process is not None else ():
            await programs.until(partial(listens, port), f"port {port}")


async def listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


async def until(world: Rehearsed, is_so: Callable[[], bool]) -> None:
    for _ in range(200):
        await cycle(world)
        if is_so():
            return
    raise AssertionError(f"{world.app.fronts.statuses} {world.leases()}")


@contextlib.asynccontextmanager
async def traffic(proxy: Proxy, method: str = "GET") -> AsyncIterator[Traffic]:
    """Send requests, one after another, while the block runs."""
    seen, is_over = Traffic(), asyncio.Event()

    async def send() -> None:
        async with aiohttp.ClientSession() as client:
            while not is_over.is_set():
                try:
                    async with client.request(method, proxy.url, data=b"ask" if method == "POST" else None) as answer:
                        body = await answer.read()
                    if answer.status == 200:
                        seen.answered += 1
                    else:
                        seen.failed.append(f"{answer.status} {body[:80]!r}")
                except aiohttp.ClientError as error:
                    seen.failed.append(repr(error))
                await asyncio.sleep(BETWEEN_SECONDS)

    sender = asyncio.create_task(send())
    try:
        yield seen
    finally:
        is_over.set()
        await sender


async def streaming(proxy: Proxy) -> asyncio.Task[bytes]:
    """Begin a stream, and return what reads it to its end once its first token came."""
    has_begun = asyncio.Event()

    async def read() -> bytes:
        async with aiohttp.ClientSession() as client, client.get(f"{proxy.url}/stream") as answer:
            found = await answer.content.readany()
            has_begun.set()
            return found + await answer.content.read()

    task = asyncio.create_task(read())
    await has_begun.wait()
    return task


async def is_idle(proxy: Proxy) -> bool:
    """Return whether no server that is drained has a session."""
    return not any(server.sessions for server in await proxy.servers() if server.is_drained)


def is_draining(world: Rehearsed) -> bool:
    assert world.app.seen is not None
    decisions = world.app.seen.plan.decisions
    return any(isinstance(each, Hold) and each.reason.code == front_drain.CODE for each in decisions)


def change_image(world: Rehearsed) -> None:
    """Let the operator's file name another image, for which the service moves."""
    (asked,) = world.config.workloads
    changed = dataclasses.replace(asked, image="ubuntu:24.04", on_change=OnChange.MOVE)
    world.app.reload(dataclasses.replace(world.config, workloads=(changed,)), world.scene.tuned)


def is_moved(world: Rehearsed, held: Lease) -> Callable[[], bool]:
    return lambda: held.lease_id not in {lease.lease_id for lease in world.leases()}


def why_released(world: Rehearsed, held: Lease) -> str:
    """Return the sentence of the first order that ended a lease."""
    orders = (each for plan in world.plans for each in plan.decisions if isinstance(each, Release))
    return next(order.reason.sentence for order in orders if order.lease.lease_id == held.lease_id)


async def test_a_planned_move_fails_no_request_and_cuts_no_stream(tmp_path: Path) -> None:
    async with (
        served(tmp_path, serving(tmp_path)) as (world, proxy),
        traffic(proxy) as gets,
        traffic(proxy, "POST") as posts,
    ):
        held = world.lease()
        stream = await streaming(proxy)
        change_image(world)
        await until(world, lambda: is_draining(world))
        assert not stream.done(), "it began on the old lease and is not over"
        assert sum(server.is_up for server in await proxy.servers()) == 1, "the new one"
        (tmp_path / END).touch()
        assert (await stream).endswith(serving_program.LAST)
        await programs.until(partial(is_idle, proxy), "the drained server without a session")
        await until(world, is_moved(world, held))
        assert "its proxy has drained it since" in why_released(world, held)
        sent = max(gets.answered, posts.answered, 10)
        await until(world, lambda: min(gets.answered, posts.answered) > sent)
    assert (gets.failed, posts.failed) == ([], [])


async def test_an_ending_waits_no_longer_than_its_time(tmp_path: Path) -> None:
    async with served(tmp_path, serving(tmp_path)) as (world, proxy):
        held = world.lease()
        stream = await streaming(proxy)
        change_image(world)
        await until(world, lambda: is_draining(world))
        began = world.clock.time()
        await until(world, is_moved(world, held))
        assert DRAIN.total_seconds() <= world.clock.time() - began <= DRAIN.total_seconds() + 2 * 15
        assert "1 request(s) were left after 1 min of draining" in why_released(world, held)
        with contextlib.suppress(aiohttp.ClientError):
            assert not (await stream).endswith(serving_program.LAST)


async def test_an_order_of_a_person_waits_for_no_request(tmp_path: Path) -> None:
    async with served(tmp_path, serving(tmp_path)) as (world, proxy):
        stream = await streaming(proxy)
        await until(world, lambda: any(report.sessions for report in world.app.fronts.reports.values()))
        began = world.clock.time()
        held = world.lease()
        await world.app.order([Release(held, Reason("ordered", "a person ends it"))], "me")
        await until(world, is_moved(world, held))
        assert world.clock.time() - began < DRAIN.total_seconds()
        with contextlib.suppress(aiohttp.ClientError):
            assert not (await stream).endswith(serving_program.LAST)


async def test_a_loss_fails_no_get_where_another_lease_lives(tmp_path: Path) -> None:
    two = serving(tmp_path, slots=2)
    async with served(tmp_path, two) as (world, proxy), traffic(proxy) as gets, traffic(proxy, "POST") as posts:
        world.rival(int(world.leases()[0].host_id), bid=30.0)
        await until(world, lambda: world.app.fronts.statuses["chat"].wanted == 1)
        sent = max(gets.answered, posts.answered)
        await programs.until(lambda: min(gets.answered, posts.answered) > sent + 20, "answers after the loss")
    assert gets.failed == []
    assert len(posts.failed) <= 1, "the one that the lost lease was answering"
