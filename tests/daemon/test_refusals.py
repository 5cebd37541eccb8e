"""Starts that are refused, and the key that turns out to be another's: exit code and sentence."""

import socket
from pathlib import Path

import pytest

from agent.act.market_accounts import OTHER_SECONDS
from tests.support import programs
from tests.support.programs import LIVE, gpubid, until


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a folder with a live configuration of a market that nobody asks."""
    (tmp_path / "agent.toml").write_text(LIVE.format(url="http://127.0.0.1:1"))
    return tmp_path


def configured(place: Path, old: str, new: str) -> None:
    text = (place / "agent.toml").read_text()
    assert old in text
    (place / "agent.toml").write_text(text.replace(old, new))


async def test_a_second_daemon_on_one_ledger(tmp_path: Path) -> None:
    async with programs.running(tmp_path, config=LIVE.replace("= 4", "= 0")) as (_, daemon):
        ran = await gpubid(tmp_path, "run")
        assert ran.code == 1
        assert ran.err == (
            f"gpubid: ledger.sqlite is in use by process {daemon.process.pid}: stop that daemon first, "
            "or use another [ledger] path\n"
        )
        assert (tmp_path / "ledger.sqlite.sock").exists(), "the refused one took the running one's socket"
        assert (await gpubid(tmp_path, "kill", "--lift")).code == 0


@pytest.mark.parametrize("verb", ["run", "plan", "explain", "kill"])
async def test_no_key(place: Path, verb: str) -> None:
    ran = await gpubid(place, verb, VAST_API_KEY=None)
    assert ran.code == 2
    assert ran.err.startswith("gpubid: there is no key named vast_api_key; set the variable VAST_API_KEY, ")
    assert not (place / "ledger.sqlite").exists()


async def test_a_key_file_that_holds_no_key(place: Path) -> None:
    configured(place, 'credential = "vast_api_key"', 'credential_file = "key"')
    assert "key: cannot be read (No such file or directory)" in (await gpubid(place, "run")).err
    (place / "key").write_text("hunter2 hunter2")
    ran = await gpubid(place, "run")
    assert ran.code == 2
    assert "more than one word" in ran.err
    assert "hunter2" not in ran.err


async def test_the_key_of_another_account(tmp_path: Path) -> None:
    async with programs.running(tmp_path, config=LIVE.replace("= 4", "= 0")) as (market, daemon):
        assert await daemon.stop() == 0
        await market.weather("wrong_account")
        for verb in ("run", "plan"):
            ran = await gpubid(tmp_path, verb)
            assert ran.code == 2, verb
            assert "belongs to account" in ran.err
        assert not await market.writes()


@pytest.mark.nightly
@pytest.mark.long(150)
async def test_the_key_becomes_another_accounts_while_it_runs(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, daemon):
        billing = await until(market.billing, "a rent")
        writes = await market.writes()
        await market.weather("wrong_account")
        # One answer of another account is not believed: the market must name it for two minutes.
        assert await daemon.ended(2 * OTHER_SECONDS) == 2
        assert "belongs to account" in daemon.err[-1]
        assert "1 lease(s) go on billing" in "\n".join(daemon.out)
        await market.still()
        assert await market.billing() == billing
        assert await market.writes() == writes


async def test_a_taken_port(place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        configured(place, "127.0.0.1:0", f"127.0.0.1:{port}")
        ran = await gpubid(place, "run")
    assert ran.code == 2
    assert f"cannot listen on 127.0.0.1:{port} (" in ran.err
    assert ran.err.rstrip().endswith("change listen in [web]")
    assert "stopped" not in ran.out, "a daemon that was not started stops nothing"


async def test_a_taken_port_and_a_lease_that_bills(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, daemon):
        await until(market.billing, "a rent")
        await daemon.stop()
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            configured(tmp_path, "127.0.0.1:0", f"127.0.0.1:{port}")
            ran = await gpubid(tmp_path, "run")
    assert (ran.code, "not started; 1 lease(s) go on billing" in ran.out) == (2, True), ran.out


async def test_a_ledger_whose_socket_would_have_too_long_a_name(place: Path) -> None:
    folder = place / ("f" * 60) / ("g" * 60)
    folder.mkdir(parents=True)
    configured(place, "ledger.sqlite", str(folder / "ledger.sqlite"))
    ran = await gpubid(place, "run")
    assert ran.code == 2
    assert "Traceback" not in ran.err
    assert ran.err.rstrip().endswith("give [ledger] a shorter path, where files can be made")


async def test_a_ledger_where_nothing_can_be_made(place: Path) -> None:
    configured(place, "ledger.sqlite", "none/ledger.sqlite")
    ran = await gpubid(place, "run")
    assert ran.code == 1
    assert "make the folder" in ran.err


async def test_a_damaged_ledger(place: Path) -> None:
    (place / "ledger.sqlite").write_bytes(b"no ledger at all" * 1000)
    ran = await gpubid(place, "run")
    assert ran.code == 3
    assert "restore the newest backup" in ran.err


@pytest.mark.parametrize(
    "arguments", [("--level", "LOUD"), ("--config", "none.toml"), ("-c", "."), ("--nope",), ("x",)]
)
async def test_wrong_arguments(place: Path, arguments: tuple[str, ...]) -> None:
    ran = await gpubid(place, "run", *arguments)
    assert ran.code == 2
    assert ran.err
    assert "Traceback" not in ran.err


async def test_a_market_that_is_down_at_the_start_stops_nobody(place: Path) -> None:
    async with programs.daemon(place) as daemon:
        await daemon.until_told("READY=1")
        assert daemon.logs("market.unavailable")
        assert await daemon.stop() == 0


async def test_a_key_that_goes_missing_is_a_market_that_cannot_be_read(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("simulated-key\n")
    config = LIVE.replace('credential = "vast_api_key"', 'credential_file = "key"').replace("= 4", "= 0")
    async with programs.running(tmp_path, config=config) as (_, daemon):
        key.unlink()
        (line,) = await daemon.until_logged("market.unavailable")
        assert "key: cannot be read" in line["reason"]
        key.write_text("simulated-key\n")
        await daemon.until_logged("market.available")
        assert not daemon.logs("cycle.failed")
