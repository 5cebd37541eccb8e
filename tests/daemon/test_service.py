"""The daemon and its service manager: ready, fed, reloading, stopping, and the leases that go on billing."""

import asyncio
import signal
import socket
from pathlib import Path

from tests.support import programs
from tests.support.programs import until


async def test_a_life(tmp_path: Path) -> None:
    async with programs.market(tmp_path) as market:
        (tmp_path / "agent.toml").write_text(programs.LIVE.format(url=market.url))
        async with programs.daemon(tmp_path, WATCHDOG_USEC="3000000") as daemon:
            await daemon.until_told("READY=1")
            await daemon.until_told("WATCHDOG=1", times=2)
            assert await daemon.page("/readyz") == '{"ok": true, "late": []}'
            await daemon.reload()
            told = daemon.messages()
            reloading = next(i for i, message in enumerate(told) if "RELOADING=1" in message)
            assert any(line.startswith("MONOTONIC_USEC=") for line in told[reloading].split("\n"))
            assert any("READY=1" in message for message in told[reloading + 1 :])
            (contract,) = await until(market.billing, "a rent")
            writes = await market.writes()

            assert await daemon.stop() == 0
            assert sum("STOPPING=1" in message for message in daemon.messages()) == 1
            (ends,) = [line for line in daemon.out if "1 lease(s) go on billing $" in line]
            bills_less = any(" starting: $" in line for line in daemon.out)
            assert ends.endswith(" once all of them run:") is bills_less, daemon.out
            assert any(f"train/0 vast-{contract} " in line and "/h" in line for line in daemon.out)
            assert await market.billing() == [contract], "stopping released it"
            assert await market.writes() == writes


async def test_a_stop_with_nothing_held(tmp_path: Path) -> None:
    config = programs.LIVE.replace("max_instances = 4", "max_instances = 0")
    async with programs.running(tmp_path, config=config) as (_, daemon):
        assert await daemon.stop() == 0
        assert daemon.out[-1] == "gpubid: stopped; no lease is open"
        assert not (tmp_path / "ledger.sqlite.sock").exists()


async def test_a_stop_does_not_wait_for_a_market_that_hangs(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, daemon):
        billing = await until(market.billing, "a rent")
        await market.weather("slow", route="GET", delay=300)
        # A reload wakes a cycle before anything else can happen: the stop finds it waiting for its listing.
        await daemon.reload()
        assert await daemon.stop() == 0
        assert daemon.logs("cycle.interrupted")
        assert "1 lease(s) go on billing $" in "\n".join(daemon.out)
        assert await market.billing() == billing
    assert (await programs.gpubid(tmp_path, "ledger", "verify")).code == 0


async def test_a_stop_waits_for_the_answer_to_what_was_sent(tmp_path: Path) -> None:
    config = programs.LIVE.replace("max_instances = 4", "max_instances = 0")
    async with programs.running(tmp_path, config=config) as (market, daemon):
        await market.weather("slow", route="PUT /asks", delay=8)
        (tmp_path / "agent.toml").write_text(programs.LIVE.format(url=market.url))
        await daemon.reload()
        await until(lambda: _has_sent(tmp_path), "an intent that was sent")
        assert await daemon.stop() == 0
        (contract,) = await market.billing()
        assert any(f"vast-{contract} " in line for line in daemon.out), "rented, and nobody wrote it down"
        shown = (await programs.gpubid(tmp_path, "fleet", "--json")).json
        assert [lease["instance"] for lease in shown["leases"]] == [str(contract)]
        assert shown["in_doubt"] == []


async def _has_sent(place: Path) -> bool:
    shown = (await programs.gpubid(place, "fleet", "--json")).json
    return [row["state"] for row in shown["in_doubt"]] == ["sent"]


async def test_a_reload_during_the_start_does_not_end_it(tmp_path: Path) -> None:
    heard = asyncio.Queue[asyncio.StreamWriter]()

    async def hang(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await heard.put(writer)

    async with await asyncio.start_server(hang, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        (tmp_path / "agent.toml").write_text(programs.LIVE.format(url=f"http://127.0.0.1:{port}"))
        async with programs.daemon(tmp_path) as daemon:
            first = await heard.get()
            daemon.process.send_signal(signal.SIGHUP)
            first.close()
            again = await until(lambda: not heard.empty() or daemon.process.returncode, "it tries again")
            assert again is True, "the signal ended it"
            (await heard.get()).close()
            assert daemon.process.returncode is None
            assert await daemon.stop() == 0
            assert daemon.out == ["gpubid: stopped before it was ready; nothing was sent"]
    assert (await programs.gpubid(tmp_path, "ledger", "verify")).code == 0


async def test_a_market_that_is_silent_delays_no_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        (tmp_path / "agent.toml").write_text(programs.LIVE.format(url=f"http://127.0.0.1:{port}"))
        async with programs.daemon(tmp_path) as daemon:
            await daemon.until_told("READY=1")
            assert daemon.logs("account.unread")[0]["code"] == "silent"
            assert (await programs.gpubid(tmp_path, "fleet")).code == 0
            assert await daemon.stop() == 0
