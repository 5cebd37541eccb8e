"""Bad days, each told over real processes: a market, a daemon, and what people and machines do to them.

Each ends in a state that `gpubid fleet` explains; none pays twice, leaks, or releases a healthy lease.
"""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from agent.simulator.gate import DEFAULT_KEY
from tests.support import programs
from tests.support.programs import LIVE, Daemon, Market, gpubid

pytestmark = pytest.mark.nightly
"""Each waits for real processes in real time, for the better part of a minute: told by `make nightly`."""

TRIES = 120
PAUSE_SECONDS = 0.25


async def seen(ask: Any, what: str) -> Any:
    """Return the first true answer, asking for half a minute."""
    for _ in range(TRIES):
        answer = await ask()
        if answer:
            return answer
        await asyncio.sleep(PAUSE_SECONDS)
    raise AssertionError(f"never seen: {what}")


async def fleet(place: Path) -> dict[str, Any]:
    """Return what `gpubid fleet` shows: asked of the daemon's socket, as a member of its group would."""
    connector = aiohttp.UnixConnector(str(place / "ledger.sqlite.sock"))
    async with aiohttp.ClientSession(connector=connector) as link, link.get("http://gpubid/fleet") as reply:
        assert reply.status == 200, await reply.text()
        return dict(await reply.json())


async def running(place: Path) -> dict[str, Any]:
    """Return the lease, once it is known to run."""

    async def found() -> Any:
        return next((lease for lease in (await fleet(place))["leases"] if lease["state"] == "running"), None)

    return dict(await seen(found, "a running lease"))


async def live(market: Market) -> list[dict[str, Any]]:
    """Return the contracts that exist."""
    return [row for row in (await market.truth())["contracts"] if row["ended"] is None]


async def rents(market: Market) -> int:
    """Return how many creates arrived."""
    return sum("/asks/" in path for _, path in await market.writes())


async def in_console(market: Market, method: str, contract: int, body: dict[str, Any] | None = None) -> None:
    """Do what a person does in the vendor's console."""
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {DEFAULT_KEY}"}) as link:
        url = f"{market.url}/api/v0/instances/{contract}/"
        async with link.request(method, url, json=body or {}) as reply:
            assert reply.status == 200, await reply.text()


async def looks(daemon: Daemon, market: Market, times: int) -> None:
    """Wait until the daemon has listed its instances so many times more."""

    async def listed() -> int:
        calls = (await market.truth())["calls"]
        return sum(call["method"] == "GET" and "/instances" in call["path"] for call in calls)

    begun = await listed()

    async def enough() -> bool:
        assert daemon.process.returncode is None
        return await listed() >= begun + times

    await seen(enough, f"{times} more looks")


async def test_the_ledger_is_deleted(tmp_path: Path) -> None:
    """The fleet's name stands beside it: the instance is adopted, the month's spend counted again, nothing rented."""
    async with programs.market(tmp_path) as market:
        (tmp_path / "agent.toml").write_text(LIVE.format(url=market.url))
        async with programs.daemon(tmp_path) as daemon:
            await daemon.until_told("READY=1")
            held = await running(tmp_path)
            await daemon.stop()
        for name in ("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm"):
            (tmp_path / name).unlink(missing_ok=True)
        async with programs.daemon(tmp_path) as daemon:
            await daemon.until_told("READY=1")
            again = await running(tmp_path)
            await looks(daemon, market, 3)
            assert again["instance"] == held["instance"]
            assert await rents(market) == 1
            (contract,) = await live(market)
            assert (await fleet(tmp_path))["spent_month_dollars"] >= 0.98 * sum(contract["charged"].values()) - 0.002


async def test_yesterdays_backup_is_restored(tmp_path: Path) -> None:
    """What was rented since is found by its label and adopted; the word that stood yesterday stands again."""
    async with programs.market(tmp_path) as market:
        (tmp_path / "agent.toml").write_text(LIVE.format(url=market.url))
        assert (await gpubid(tmp_path, "drain", "train")).code == 0
        assert (await gpubid(tmp_path, "ledger", "backup", tmp_path / "old.sqlite")).code == 0
        assert (await gpubid(tmp_path, "resume", "train")).code == 0
        async with programs.daemon(tmp_path) as daemon:
            await daemon.until_told("READY=1")
            held = await running(tmp_path)
            await daemon.stop()
        for name in ("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm"):
            (tmp_path / name).unlink(missing_ok=True)
        shutil.copy(tmp_path / "old.sqlite", tmp_path / "ledger.sqlite")
        async with programs.daemon(tmp_path) as daemon:
            await daemon.until_told("READY=1")
            again = await running(tmp_path)
            await looks(daemon, market, 2)
            assert (again["instance"], again["is_held"]) == (held["instance"], False)
            assert [row["id"] for row in await live(market)] == [int(held["instance"])]
            assert await rents(market) == 1
            assert "drain:workload:train" in [rest["what"] for rest in (await fleet(tmp_path))["resting"]]


async def test_a_second_daemon_starts_on_another_box(tmp_path: Path) -> None:
    """Same key, same fleet id, a copy of the ledger: both fill no slot twice."""
    async with programs.market(tmp_path) as market:
        here, there = tmp_path / "here", tmp_path / "there"
        for place in (here, there):
            place.mkdir()
            (place / "agent.toml").write_text(LIVE.format(url=market.url))
        async with programs.daemon(here) as first:
            await first.until_told("READY=1")
            held = await running(here)
            await first.stop()
        for name in ("ledger.sqlite", "ledger.sqlite.fleet"):
            shutil.copy(here / name, there / name)
        async with programs.daemon(here) as first, programs.daemon(there) as second:
            await first.until_told("READY=1")
            await second.until_told("READY=1")
            await looks(first, market, 8)
            assert [row["id"] for row in await live(market)] == [int(held["instance"])]
            assert await rents(market) == 1


async def test_a_person_destroys_the_instance_in_the_console(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, daemon):
        held = await running(tmp_path)
        await in_console(market, "DELETE", int(held["instance"]))
        await looks(daemon, market, 6)
        shown = await fleet(tmp_path)
        assert len(await live(market)) <= 1
        assert await rents(market) <= 2
        assert shown["slots"][0]["state"] == "running" or shown["slots"][0]["why"]


async def test_a_person_stops_the_instance_in_the_console(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, daemon):
        held = await running(tmp_path)
        await in_console(market, "PUT", int(held["instance"]), {"state": "stopped"})
        await looks(daemon, market, 5)
        (slot,) = (await fleet(tmp_path))["slots"]
        assert [row["id"] for row in await live(market)] == [int(held["instance"])]
        assert slot["state"] == "running" or slot["why"], slot
        assert await rents(market) == 1


async def test_a_label_is_edited(tmp_path: Path) -> None:
    """The ledger knows the instance by its id: it stays ours, and its slot is not filled again."""
    async with programs.running(tmp_path) as (market, daemon):
        held = await running(tmp_path)
        await in_console(market, "PUT", int(held["instance"]), {"label": "my box"})
        await looks(daemon, market, 5)
        assert (await running(tmp_path))["lease"] == held["lease"]
        assert await rents(market) == 1
        assert (await gpubid(tmp_path, "release", "train/0")).code == 0
        assert int(held["instance"]) not in [row["id"] for row in await live(market)]


@pytest.mark.parametrize("fault", ["html_403", "wrong_account"], ids=["revoked", "swapped"])
async def test_the_key_is_revoked_or_swapped_for_a_while(tmp_path: Path, fault: str) -> None:
    """Nothing is believed gone and nothing is paid; with the right key all goes on as it was."""
    async with programs.market(tmp_path) as market:
        (tmp_path / "agent.toml").write_text(LIVE.format(url=market.url))
        async with programs.daemon(tmp_path) as daemon:
            await daemon.until_told("READY=1")
            held = await running(tmp_path)
            writes = await market.writes()
            await market.weather(fault, route="*")
            await asyncio.sleep(12)
            assert await market.writes() == writes
            if daemon.process.returncode is None:
                assert (await fleet(tmp_path))["leases"][0]["lease"] == held["lease"]
                await daemon.stop()
            else:
                assert daemon.process.returncode == 2
            await market.still()
        async with programs.daemon(tmp_path) as daemon:
            await daemon.until_told("READY=1")
            assert (await running(tmp_path))["lease"] == held["lease"]
            await looks(daemon, market, 2)
            assert await rents(market) == 1


async def test_the_workload_is_renamed(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, daemon):
        held = await running(tmp_path)
        renamed = LIVE.replace("workloads.train", "workloads.night").format(url=market.url)
        (tmp_path / "agent.toml").write_text(renamed)
        await daemon.reload()
        assert 'was = "train"' in daemon.logs("config.refused")[-1]["problem"]
        (tmp_path / "agent.toml").write_text(renamed.replace("slots = 1", 'slots = 1\nwas = "train"'))
        await daemon.reload()
        assert daemon.logs("config.reloaded")

        async def carried() -> bool:
            return [lease["slot"] for lease in (await fleet(tmp_path))["leases"]] == ["night/0"]

        await seen(carried, "the lease under its new name")
        await looks(daemon, market, 3)
        assert (await running(tmp_path))["instance"] == held["instance"]
        assert await rents(market) == 1


async def test_the_cap_is_lowered_under_the_burn(tmp_path: Path) -> None:
    """A reload is refused; a start obeys the cap: it pauses, says so, and pays for nothing."""
    async with programs.market(tmp_path) as market:
        (tmp_path / "agent.toml").write_text(LIVE.format(url=market.url))
        low = LIVE.replace("max_fleet_per_hour = 3.00", "max_fleet_per_hour = 0.01").format(url=market.url)
        async with programs.daemon(tmp_path) as daemon:
            await daemon.until_told("READY=1")
            held = await running(tmp_path)
            (tmp_path / "agent.toml").write_text(low)
            await daemon.reload()
            assert "max_fleet_per_hour" in daemon.logs("config.refused")[-1]["problem"]
            assert (await running(tmp_path))["lease"] == held["lease"]
            await daemon.stop()
        async with programs.daemon(tmp_path) as daemon:
            await daemon.until_told("READY=1")

            async def paused() -> bool:
                return [row["status"] for row in await live(market)] == ["stopped"]

            await seen(paused, "the pause")
            await looks(daemon, market, 3)
            (slot,) = (await fleet(tmp_path))["slots"]
            assert slot["state"] == "paused"
            assert "cap" in slot["why"]
            assert await rents(market) == 1


async def test_the_disk_is_full(tmp_path: Path) -> None:
    """Nothing is paid for until there is room again; what runs goes on."""
    disk = tmp_path / "disk"
    disk.mkdir()
    process = await asyncio.create_subprocess_exec("mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(disk))
    if await process.wait():
        pytest.skip("no right to mount a disk here")
    try:
        async with programs.running(disk) as (market, daemon):
            held = await running(disk)
            filler = await asyncio.create_subprocess_exec(
                "dd", "if=/dev/zero", f"of={disk / 'filler'}", "bs=4096", stderr=asyncio.subprocess.DEVNULL
            )
            await filler.wait()
            writes = await market.writes()
            await in_console(market, "PUT", int(held["instance"]), {"state": "stopped"})
            await looks(daemon, market, 5)
            paying = [write for write in await market.writes() if write not in writes and "/asks/" in write[1]]
            assert not paying
            os.truncate(disk / "filler", 0)
            await looks(daemon, market, 4)
            assert [row["id"] for row in await live(market)] == [int(held["instance"])]
            assert (await fleet(disk))["leases"]
    finally:
        await (await asyncio.create_subprocess_exec("umount", "--lazy", str(disk))).wait()


async def test_the_host_goes_offline_in_mid_release(tmp_path: Path) -> None:
    """A release that was sent goes on being sent until the market says gone; the slot is filled once."""
    async with programs.running(tmp_path) as (market, daemon):
        held = await running(tmp_path)
        await market.weather("server_error_before", route="DELETE /instances")
        await market.weather("host_offline", machine_id=int(held["host"]))
        await gpubid(tmp_path, "release", "train")
        await looks(daemon, market, 2)
        assert int(held["instance"]) in [row["id"] for row in await live(market)]
        assert next(row for row in (await fleet(tmp_path))["leases"] if row["lease"] == held["lease"])
        await market.still()

        async def gone() -> bool:
            return int(held["instance"]) not in [row["id"] for row in await live(market)]

        await seen(gone, "the release")
        await looks(daemon, market, 3)
        assert len(await live(market)) <= 1


async def test_credit_runs_out_and_returns(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, daemon):
        held = await running(tmp_path)
        await market.weather("no_credit")
        await looks(daemon, market, 4)
        paid = await rents(market)
        (slot,) = (await fleet(tmp_path))["slots"]
        assert slot["state"] == "running" or slot["why"]
        await market.still()
        await market.advance(30)
        again = await running(tmp_path)
        assert again["lease"] == held["lease"]
        assert await rents(market) == paid == 1
