"""A real HAProxy in front of a simulated service: its servers follow the leases, and our endings wait for requests."""

import contextlib
import datetime as dt
from pathlib import Path
from typing import Any

import aiohttp

from agent.config.front_settings import Format, Front
from agent.domain.record.lease import LeaseState
from agent.domain.work.decision import Reason, Release
from agent.domain.work.ready_sign import Liveness, Readiness, ReadySign
from agent.domain.work.run_times.running_limit import AtLimit, LimitOf, RunningLimit
from agent.domain.work.workload import Workload
from agent.ledger.ledger_errors import LedgerError
from tests.support import full_disk, haproxy
from tests.support.haproxy import Proxy
from tests.support.world import Rehearsed, rehearsed, work
from tests.web.page import served

pytestmark = haproxy.installed

ENDED = Reason("ordered", "a person ends it")
DRAIN = dt.timedelta(seconds=60)


def serving(**changes: Any) -> Workload:
    ready = Readiness(ReadySign.HTTP, dt.timedelta(minutes=10), port=8000, path="/health", live=Liveness())
    return work(ready=ready, ports=(8000,), drain=DRAIN, **changes)


def front(proxy: Proxy) -> Front:
    return Front("chat", "train", 8000, haproxy=proxy.socket, backend=haproxy.BACKEND, drain=DRAIN)


async def cycle(world: Rehearsed, minutes: float = 0.0) -> None:
    await world.cycle(minutes)
    await world.app.fronts.settle()


async def until(world: Rehearsed, is_so: Any, cycles: int = 100) -> None:
    for _ in range(cycles):
        if is_so():
            return
        await cycle(world)
    raise AssertionError(f"not within {cycles} cycles: {world.app.fronts.statuses} {world.leases()}")


async def status_of(url: str) -> int:
    async with aiohttp.ClientSession() as client, client.get(url) as answer:
        return answer.status


async def test_the_servers_follow_the_leases(tmp_path: Path) -> None:
    async with (
        haproxy.running(tmp_path, places=2) as proxy,
        rehearsed(tmp_path, workloads=(serving(slots=3),), fronts=(front(proxy),)) as world,
    ):
        await until(world, lambda: sum(lease.ready_since is not None for lease in world.leases()) == 3)
        told = world.app.fronts.statuses["chat"]
        assert (told.wanted, told.up) == (3, 2)
        assert "has no server left for 1 of 3 leases; raise the number in its server-template" in told.trouble
        shown = {server.place for server in await proxy.servers()}
        reached = {tuple(lease.ports.split()[-1].rpartition("=")[2].split(":")) for lease in world.leases()}
        assert len(shown) == 2
        assert {(address, str(port)) for address, port in shown} < reached
        assert await status_of(proxy.url) == 200
        await world.app.order([Release(lease, world.plans[-1].decisions[0].reason) for lease in world.leases()], "me")
        await cycle(world)
        assert await proxy.servers() == ()
        assert await status_of(proxy.url) == 503


async def test_a_proxy_that_is_away_touches_no_lease(tmp_path: Path) -> None:
    nobody = Front("chat", "train", 8000, haproxy=tmp_path / "none.sock", backend="b", drain=DRAIN)
    async with rehearsed(tmp_path, workloads=(serving(),), fronts=(nobody,)) as world:
        await until(world, lambda: any(lease.ready_since for lease in world.leases()))
        held = world.lease()
        await cycle(world, 30)
        assert (world.lease().lease_id, world.lease().state) == (held.lease_id, LeaseState.RUNNING)
        assert "none.sock cannot be used" in world.app.fronts.statuses["chat"].trouble
        assert world.app.fronts.reports == {}


async def test_lists_are_served_over_http_too(tmp_path: Path) -> None:
    beside = Front("chat", "train", 8000, file=tmp_path / "chat.yml", format=Format.CADDY)
    async with served(tmp_path, workloads=(serving(),), fronts=(beside,)) as page:
        world = page.world
        await until(world, lambda: any(lease.ready_since for lease in world.leases()))
        place = world.lease().ports.rpartition("=")[2]
        status, text = await page.get("/front/chat.traefik.json")
        assert (status, f'"url": "http://{place}"' in text) == (200, True)
        assert (await page.get("/front/chat.caddy.json"))[1] == (tmp_path / "chat.yml").read_text()
        for unknown in ("/front/other.caddy.json", "/front/chat.nginx.json"):
            assert (await page.get(unknown))[0] == 404, unknown


async def test_while_the_ledger_cannot_be_written_no_ending_waits_for_a_proxy_that_nobody_asks(tmp_path: Path) -> None:
    """It waited for minutes until the proxy's report was old, and cut the requests then."""
    limited = serving(max_running=(RunningLimit(dt.timedelta(minutes=30), LimitOf.LEASE, AtLimit.RELEASE),))
    async with (
        haproxy.running(tmp_path) as proxy,
        rehearsed(tmp_path, workloads=(limited,), fronts=(front(proxy),)) as world,
    ):
        world.is_checked = False
        await until(world, lambda: any(lease.ready_since is not None for lease in world.leases()))
        held = world.lease()
        since = held.ready_since or held.began
        while world.clock.now() - since < dt.timedelta(minutes=29):
            await cycle(world)
        assert held.lease_id in world.app.fronts.reports
        await full_disk.let_write(world, may=False)
        while world.clock.now() - since < dt.timedelta(minutes=31):
            with contextlib.suppress(LedgerError):
                await cycle(world)
        assert held.instance_id not in {str(each.contract_id) for each in world.live()}, "soon after its time"


async def test_trouble_is_told_at_once_and_alerts_when_it_lasts(tmp_path: Path) -> None:
    nobody = Front("chat", "train", 8000, haproxy=tmp_path / "none.sock", backend="b", drain=DRAIN)
    async with rehearsed(tmp_path, workloads=(serving(),), fronts=(nobody,)) as world:
        await cycle(world)
        (notice,) = (each for each in world.app.notices() if each.code == "front")
        assert notice.about == "front chat"
        assert "none.sock cannot be used (No such file or directory); no lease is touched for it" in notice.sentence
        assert await world.events("alert.front") == []
        await cycle(world, 4)
        (event,) = await world.events("alert.front")
        assert event.reason == notice.sentence
