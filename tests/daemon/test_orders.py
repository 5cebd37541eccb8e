"""A person's orders to a running daemon: kill, lift, release; and to nobody, when none runs."""

import functools
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support import programs
from tests.support.programs import LIVE, Daemon, Market, gpubid, until


async def looks(market: Market, daemon: Daemon, times: int = 3) -> None:
    """Wake the daemon and wait until it has looked at the market, so many times."""

    async def seen() -> int:
        calls = (await market.truth())["calls"]
        return sum(call["method"] == "GET" and call["path"].startswith("/api/v1/instances") for call in calls)

    for _ in range(times):
        before = await seen()
        await daemon.reload()
        await until(functools.partial(_more, seen, before), "a look")


async def _more(seen: Callable[[], Awaitable[int]], before: int) -> bool:
    return await seen() > before


def lose_ledger(place: Path) -> None:
    """Remove everything of the ledger but the file with the fleet id."""
    for file in place.glob("ledger.sqlite*"):
        if file.suffix != ".fleet":
            file.unlink()


def ledgers(place: Path) -> set[str]:
    return {file.name for file in place.glob("ledger.sqlite*") if file.suffix in {".sqlite", ".dry-run"}}


async def order(place: Path, body: bytes | str) -> tuple[int, Any]:
    """Send raw bytes to the socket."""
    connector = aiohttp.UnixConnector(str(place / "ledger.sqlite.sock"))
    async with aiohttp.ClientSession(connector=connector) as link, link.post("http://gpubid/say", data=body) as reply:
        return reply.status, await reply.json()


async def test_kill_stops_all_spending(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, daemon):
        await until(market.billing, "a rent")
        said = await gpubid(tmp_path, "kill", "--json")
        assert said.code == 0, said
        assert [row["state"] for row in said.json["done"]] == ["confirmed"]
        assert said.json["in_doubt"] == []
        assert await market.billing() == []
        await looks(market, daemon)
        truth = await market.truth()
        assert truth["billing_now"] == []
        assert len(truth["contracts"]) == 1


async def test_nothing_is_rented_under_a_kill_until_it_is_lifted(tmp_path: Path) -> None:
    config = LIVE.replace("max_instances = 4", "max_instances = 0")
    async with programs.running(tmp_path, config=config) as (market, daemon):
        assert (await gpubid(tmp_path, "kill")).code == 0
        (tmp_path / "agent.toml").write_text(LIVE.format(url=market.url))
        await looks(market, daemon)
        assert not await market.writes()
        assert "gpubid kill --lift" in (await gpubid(tmp_path, "plan")).out
        lifted = await gpubid(tmp_path, "kill", "--lift")
        assert (lifted.code, lifted.out) == (0, "the stop of all spending is lifted: the daemon may rent again\n")
        assert await until(market.billing, "a rent after the lift")


async def test_kill_that_keeps_disks(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, daemon):
        billing = await until(market.billing, "a rent")
        said = await gpubid(tmp_path, "kill", "--keep-disks")
        assert said.code == 0, said
        assert ": pause confirmed" in said.out
        await looks(market, daemon)
        assert await market.billing() == billing, "the disk was to be kept, and bills"
        (contract,) = (await market.truth())["contracts"]
        charged = contract["charged"]["gpu"]
        await market.advance(20)
        (contract,) = (await market.truth())["contracts"]
        assert contract["charged"]["gpu"] == charged


async def test_a_kill_that_the_market_refuses_says_so_and_goes_on_trying(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, _daemon):
        await until(market.billing, "a rent")
        await market.weather("throttle_text", route="DELETE /instances")
        said = await gpubid(tmp_path, "kill", "--no-wait")
        assert said.code == 1
        assert await market.billing()
        await market.still()
        await until(lambda: _nothing_bills(market), "the release")


async def _nothing_bills(market: Market) -> bool:
    return not await market.billing()


async def test_kill_without_a_daemon_stops_also_what_the_ledger_lost(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, daemon):
        await until(market.billing, "a rent")
        assert await daemon.stop() == 0
        lose_ledger(tmp_path)
        said = await gpubid(tmp_path, "kill")
        assert said.code == 0, said
        assert "this kill is not recorded: a daemon that starts rents again" in said.out
        assert await market.billing() == []


async def test_release(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, _daemon):
        (contract,) = await until(market.billing, "a rent")
        wrong = await gpubid(tmp_path, "release", "nothing-of-that-name")
        assert wrong.code == 2
        assert await market.billing() == [contract]
        said = await gpubid(tmp_path, "release", f"vast-{contract}", "--json")
        assert said.code == 0, said
        assert [(row["kind"], row["state"]) for row in said.json["done"]] == [("release", "confirmed")]
        assert contract not in await market.billing()


async def test_the_socket_is_its_users_own_and_takes_nothing_else(tmp_path: Path) -> None:
    config = LIVE.replace("max_instances = 4", "max_instances = 0")
    async with programs.running(tmp_path, config=config) as (market, daemon):
        path = tmp_path / "ledger.sqlite.sock"
        assert stat.S_IMODE(path.stat().st_mode) & 0o007 == 0
        for body in (
            b"",
            b"\xff",
            "[]",
            "1",
            '{"verb": "kill"}',
            '{"verb": "kill", "target": [[]], "keep_disks": false}',
            '{"verb": "kill", "target": 1, "keep_disks": false}',
            '{"verb": "kill", "target": "fleet:all", "keep_disks": 1}',
        ):
            assert (await order(tmp_path, body))[0] == 400, body
        for body in (
            '{"verb": "burn", "target": "fleet:all", "keep_disks": false}',
            '{"verb": "release", "target": "fleet:all"}',
        ):
            assert (await order(tmp_path, body))[0] == 422, body
        assert "operator.halted" not in (await gpubid(tmp_path, "ledger", "events")).out
        assert daemon.process.returncode is None
        assert await daemon.stop() == 0
        assert not path.exists()
        assert not await market.writes()


@pytest.mark.parametrize("how", ["spend = false", "--dry-run"])
async def test_who_may_not_spend_writes_nothing(tmp_path: Path, how: str) -> None:
    config = LIVE.replace("spend = true", how) if "=" in how else LIVE
    arguments = [how] if "=" not in how else []
    async with programs.running(tmp_path, *arguments, config=config) as (market, daemon):
        await looks(market, daemon)
        assert not await market.writes()
        assert not await market.billing()
        assert ledgers(tmp_path) == ({"ledger.sqlite.dry-run"} if arguments else {"ledger.sqlite"})
        assert await daemon.stop() == 0


async def test_a_dry_run_beside_the_daemon_that_spends(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, _daemon):
        billing = await until(market.billing, "a rent")
        before = await market.writes()
        async with programs.daemon(tmp_path, "--dry-run") as dry:
            await dry.until_told("READY=1")
            await looks(market, dry)
            assert await dry.stop() == 0
        assert await market.billing() == billing
        assert await market.writes() == before
