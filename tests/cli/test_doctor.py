"""`gpubid doctor` finds faults and prints their fixes; `gpubid bug-report` collects them without a secret."""

# ruff: noqa: ASYNC240 - a test may wait for its own files

import contextlib
import json
import sqlite3
import tarfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agent import clock as clocks
from agent.cli.setup import doctor_checks
from agent.config.settings import MarketSettings
from agent.ledger.file import migrate
from agent.markets.runpod import scope as runpod
from agent.markets.vast import scope as vast
from agent.outside import Outside
from agent.simulator.vast.http.call_gate import DEFAULT_KEY
from tests.support import ports, programs
from tests.support.launch import COLD
from tests.support.programs import LIVE, Ran, gpubid, until

MARKED = "hunter2-hunter2"
PIN = "q47x"
"""A short secret, which no figure contains."""
SECRETS = f"""
[workloads.train.env]
TOKEN = "{MARKED}-variable"
PIN = "{PIN}"
[workloads.train.env_from]
HF_TOKEN = "hf_token"
"""


def lines(ran: Ran) -> dict[str, dict[str, str]]:
    return {line["name"]: line for line in ran.json["lines"]}


async def test_all_is_well_and_then_it_is_not(tmp_path: Path) -> None:
    port = ports.free()
    config = LIVE.replace("127.0.0.1:0", f"127.0.0.1:{port}")
    async with programs.running(tmp_path, config=config) as (market, daemon):
        await until(market.billing, "a rent")
        assert (await gpubid(tmp_path, "ledger", "backup", tmp_path / "copy.sqlite")).code == 0
        # However long the two took to start, from here on the market's clock is right.
        await market.advance(max(0.0, clocks.SystemClock().now().timestamp() - (await market.truth())["now"]))
        writes = await market.writes()
        well = await gpubid(tmp_path, "doctor", "--json")
        assert (well.code, well.json["is_good"]) == (0, True), well
        assert await market.writes() == writes, "looking changed something"
        named = lines(well)
        assert {"versions", "configuration", "key vast", "credit vast", "market vast", "disk", "ledger"} <= named.keys()
        assert "search rows" in named["quota vast"]["sentence"]
        assert not named["quota vast"]["sentence"].startswith("0 of")
        assert {line["verdict"] for line in named.values()} == {"ok"}, well.out
        assert not [line for line in named.values() if line["fix"]]

        # A key that the market does not know, a reload that was refused, a clock that is off.
        (tmp_path / "agent.toml").write_text("nonsense")
        await daemon.reload()
        (tmp_path / "agent.toml").write_text(config.format(url=market.url))
        await market.advance(90)
        ill = lines(await gpubid(tmp_path, "doctor", "--json"))
        assert (ill["reload"]["verdict"], ill["clock"]["verdict"]) == ("fail", "fail")
        wrong = await gpubid(tmp_path, "doctor", "--json", VAST_API_KEY="some-other-key")
        assert (wrong.code, lines(wrong)["key vast"]["verdict"]) == (1, "fail")
        assert "some-other-key" not in wrong.out + wrong.err
        await daemon.stop()
    with sqlite3.connect(tmp_path / "ledger.sqlite") as link:
        link.execute("UPDATE leases SET instance_id = ''")
    link.close()
    down = await gpubid(tmp_path, "doctor", "--json")
    assert down.code == 1
    found = lines(down)
    assert {name for name, line in found.items() if line["verdict"] == "fail"} >= {"market vast", "ledger", "daemon"}
    assert found["daemon"]["sentence"].endswith(": no program listens there")
    assert all(line["fix"] for line in found.values() if line["verdict"] != "ok")
    told = await gpubid(tmp_path, "doctor")
    assert (told.code, "FAIL  ledger: lease without an instance" in told.out) == (1, True), told


async def test_another_program_on_the_port_of_the_page_is_told_without_its_pages(tmp_path: Path) -> None:
    runner = web.AppRunner(web.Application())
    await runner.setup()
    port = ports.free()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    config = LIVE.replace("127.0.0.1:0", f"127.0.0.1:{port}").format(url="http://127.0.0.1:1")
    (tmp_path / "agent.toml").write_text(config)
    line = lines(await gpubid(tmp_path, "doctor", "--json"))["daemon"]
    await runner.cleanup()
    assert line["sentence"] == f"another program than gpubid answers at http://127.0.0.1:{port}"
    assert "listen in [web]" in line["fix"]


async def test_a_credential_that_is_named_and_missing_is_said(tmp_path: Path) -> None:
    config = LIVE.format(url="http://127.0.0.1:1").replace("[web]", '[web]\nwebhook_credential = "of_webhooks"')
    (tmp_path / "agent.toml").write_text(config)
    missing = lines(await gpubid(tmp_path, "doctor", "--json"))["credential of_webhooks"]
    assert (missing["verdict"], MARKED in missing["sentence"]) == ("fail", False)
    there = lines(await gpubid(tmp_path, "doctor", "--json", OF_WEBHOOKS=MARKED))
    assert there["credentials"]["sentence"] == "all 1 named ones can be read"


async def test_a_configuration_that_is_wrong_is_said_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text("[limits]\nmax_instances = 'many'\n")
    said = await gpubid(tmp_path, "doctor", "--json")
    assert said.code == 1
    assert set(lines(said)) == {"versions", "configuration"}


@contextlib.asynccontextmanager
async def _answering(path: str, status: int) -> AsyncIterator[str]:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response([], status=status)

    app = web.Application()
    app.router.add_get(path, answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(("status", "expected"), [(200, True), (401, False), (403, False), (404, None)])
@pytest.mark.parametrize(("scope", "path"), [(vast, "/api/v0/machines/"), (runpod, "/v2/serverless")])
async def test_a_key_is_wide_that_sees_what_we_never_ask_for(
    scope: Any, path: str, status: int, expected: bool | None
) -> None:
    async with _answering(path, status) as url:
        assert await scope.is_wide(url, lambda: "key", clocks.SystemClock(), lambda: 0.0) is expected


async def test_a_wide_key_of_runpod_is_told_with_what_it_needs() -> None:
    outside = Outside(clocks.SystemClock(), lambda _: "key", {})
    async with _answering("/v2/serverless", 200) as url:
        settings = MarketSettings("runpod", url, "", "runpod_api_key", None, spend=True)
        (line,) = await doctor_checks.scope(settings, outside)
    assert (line.name, line.verdict) == ("scope runpod", doctor_checks.Verdict.WARN)
    assert line.fix == "make a key with only pods, billing, the catalogue and GraphQL"


def parts(bundle: Path) -> dict[str, str]:
    with tarfile.open(bundle) as found:
        read = {member.name.partition("/")[2]: found.extractfile(member) for member in found.getmembers()}
        return {name: part.read().decode() for name, part in read.items() if part is not None}


@pytest.mark.nightly
async def test_a_report_holds_what_was_seen_and_no_secret(tmp_path: Path) -> None:
    port = ports.free()
    config = LIVE.replace("127.0.0.1:0", f"127.0.0.1:{port}") + SECRETS
    bundle = tmp_path / "bundle.tar.gz"
    planted: dict[str, Any] = {"HF_TOKEN": f"{MARKED}-credential"}
    async with programs.market(tmp_path) as market:
        (tmp_path / "agent.toml").write_text(config.format(url=market.url))
        # The arguments of a forked program are not to be seen.
        async with programs.daemon(tmp_path, "--level", "DEBUG", **planted, **COLD) as daemon:
            await daemon.until_told("READY=1")
            await until(market.billing, "a rent")
            said = await gpubid(tmp_path, "bug-report", bundle, **planted)
            arguments = Path(f"/proc/{daemon.process.pid}/cmdline").read_text()
            page = await daemon.page()
            await daemon.stop()
    assert said.code == 0, said
    assert bundle.stat().st_mode & 0o777 == 0o600
    found = parts(bundle)
    assert set(found) == {"doctor.json", "agent.toml", "metrics.txt", "events.json", "log.txt"}
    assert "gpubid_leases" in found["metrics.txt"]
    assert [event for event in json.loads(found["events.json"]) if event["kind"] == "lease.opened"]
    assert "max_fleet_per_hour = 3.00" in found["agent.toml"]
    assert "TOKEN = [redacted]" in found["agent.toml"]
    files = [file for file in tmp_path.iterdir() if file.is_file() and file.suffix != ".toml"]
    told = {
        **found,
        **{file.name: file.read_bytes().decode("latin-1") for file in files},
        "said": said.out + said.err,
        "arguments": arguments,
        "page": page,
        "log": "\n".join([*daemon.err, *daemon.out]),
    }
    for secret in (MARKED, DEFAULT_KEY, PIN):
        assert [name for name, text in told.items() if secret in text and name != "bundle.tar.gz"] == [], secret
    again = await gpubid(tmp_path, "report", bundle)
    assert (again.code, "exists" in again.err) == (2, True)


def _damaged(folder: Path) -> str:
    """Damage the table of events of a new ledger, and return its [ledger] table."""
    path = folder / "ledger.sqlite"
    migrate.prepare(path)
    with contextlib.closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        roots = raw.execute("SELECT rootpage FROM sqlite_schema WHERE tbl_name = 'events'").fetchall()
        size = raw.execute("PRAGMA page_size").fetchone()[0]
    with path.open("r+b") as file:
        for (root,) in roots:
            file.seek((root - 1) * size)
            file.write(b"\xff" * size)
    return ""


def _locked_out(_: Path) -> str:
    return '\nurl = "postgresql://u@127.0.0.1:1/db"\ncredential = "no_such_word"'


@pytest.mark.parametrize(
    ("broken", "why"), [(_damaged, "is damaged or no ledger"), (_locked_out, "there is no key named no_such_word")]
)
async def test_a_report_on_a_ledger_that_cannot_be_read_says_why(
    tmp_path: Path, broken: Callable[[Path], str], why: str
) -> None:
    if broken is _locked_out:
        pytest.importorskip("psycopg")
    config = LIVE.format(url="http://127.0.0.1:9")
    place = 'path = "ledger.sqlite"'
    assert place in config
    (tmp_path / "agent.toml").write_text(config.replace(place, place + broken(tmp_path)))
    said = await gpubid(tmp_path, "bug-report", "bundle.tar.gz")
    assert said.code == 0, said
    found = parts(tmp_path / "bundle.tar.gz")
    assert why in found["events.json"]
    assert why in found["doctor.json"]


async def test_a_file_that_would_leave_a_lease_alone_names_no_order_that_ends_it(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, _):
        await until(market.billing, "a rent")
        file, beside = tmp_path / "agent.toml", tmp_path / "ledger.sqlite.fleet"
        file.write_text(file.read_text().replace("[workloads.train", "[workloads.other"))
        start = lines(await gpubid(tmp_path, "doctor", "--json"))["start"]
        assert (start["verdict"], "workloads.train: is gone, but" in start["sentence"]) == ("fail", True), start
        assert "gpubid release" not in start["sentence"] + start["fix"]
        mine = beside.read_text().strip()
        beside.write_text("0123456789ab\n")
        start = lines(await gpubid(tmp_path, "doctor", "--json"))["start"]
        assert f"the ledger is of fleet {mine}" in start["sentence"], (
            "the wrong ledger is named, not the wrong workload"
        )
        beside.write_text(f"{mine}\n")
