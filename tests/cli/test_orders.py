"""The verbs of a person, over real processes: through the daemon's socket, and without a daemon."""

import asyncio
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from typer.testing import CliRunner

from agent.cli import main
from agent.cli.shared import session
from tests.support import programs
from tests.support.programs import gpubid, until


async def lease_of(place: Path) -> dict[str, Any]:
    """Return the lease that runs, as `gpubid fleet` shows it."""

    async def running() -> dict[str, Any] | None:
        shown = (await gpubid(place, "fleet", "--json")).json
        return next((lease for lease in shown["leases"] if lease["state"] in {"running", "starting"}), None)

    return await until(running, "a lease")


@pytest.mark.nightly
async def test_words_are_taken_by_the_daemon_and_shown(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, _):
        held = await lease_of(tmp_path)
        paused = await gpubid(tmp_path, "pause", "train/0", "--json")
        assert paused.code == 0, paused.err
        assert [row["kind"] for row in paused.json["done"]] == ["pause"]
        shown = (await gpubid(tmp_path, "fleet", "--json")).json
        assert f"paused by uid {os.getuid()}" in shown["slots"][0]["why"]
        assert "gpubid resume train/0" in shown["slots"][0]["why"]
        assert shown["slots"][0]["why"] in (await gpubid(tmp_path, "fleet")).out
        resumed = await gpubid(tmp_path, "resume", "train")
        assert resumed.code == 0, resumed.err
        for verb in (["drain", "train"], ["lock", "host:77", "--for", "2h"], ["release", held["lease"]]):
            assert (await gpubid(tmp_path, *verb)).code == 0
        await until(lambda: _is_empty(market), "the release")
        events = (await gpubid(tmp_path, "ledger", "events", "--kind", "operator.ordered", "--json")).json
        assert {event["reason_code"] for event in events} >= {"pause", "resume", "drain", "lock", "release"}
        assert all(f"uid {os.getuid()}" in event["reason"] for event in events)
        assert "None" not in (await gpubid(tmp_path, "ledger", "events")).out, "a word on a whole workload has no slot"
        resting = {row["what"] for row in (await gpubid(tmp_path, "fleet", "--json")).json["holds_and_cooldowns"]}
        assert resting >= {"drain:workload:train", "lock:host:vast/77"}
        assert (await gpubid(tmp_path, "unlock", "host:77")).code == 0


async def test_a_kill_of_one_target_leaves_the_others_alone(tmp_path: Path) -> None:
    config = programs.LIVE.replace("slots = 1", "slots = 2")
    async with programs.running(tmp_path, config=config) as (market, _):

        async def two() -> bool:
            return len(await market.billing()) == 2

        await until(two, "two leases")
        killed = await gpubid(tmp_path, "kill", "train/0")
        assert killed.code == 0, killed.err
        assert "kill slot:train/0" in killed.out
        assert len(await market.billing()) == 1
        shown = (await gpubid(tmp_path, "fleet", "--json")).json
        assert "killed by uid" in shown["slots"][0]["why"]
        assert "gpubid resume train/0" in shown["slots"][0]["why"]
        kept = await gpubid(tmp_path, "kill", "market:vast", "--keep-disks")
        assert "pause market:vast" in kept.out
        assert [row["status"] for row in (await market.truth())["contracts"] if not row["ended"]] == ["stopped"]
        assert (await gpubid(tmp_path, "kill", "--lift", "train/0")).code == 0
        resting = {row["what"] for row in (await gpubid(tmp_path, "fleet", "--json")).json["holds_and_cooldowns"]}
        assert "pause:market:vast" in resting
        named = f"pause of market vast, by uid {os.getuid()}; `gpubid resume market:vast` ends it"
        assert f"hold until it is lifted: {named}" in (await gpubid(tmp_path, "fleet")).out
        assert "kill:slot:train/0" not in resting


async def _is_empty(market: programs.Market) -> bool:
    return not await market.billing()


@pytest.mark.parametrize(
    ("verb", "says"),
    [
        (("drain", "nothing"), "workloads: train"),
        (("kill", "nothing"), "workloads: train"),
        (("kill", "train", "--fleet", "0123456789ab"), "leave the target out"),
        (("kill", "train", "--lift"), "nothing holds 'train'"),
        (("release", "train/5"), "workload 'train' has no slot 'train/5'; write train/0"),
        (("release", "trian"), "no workload, slot or lease is named 'trian'; workloads: train; open leases: "),
        (("release", "trian"), "did you mean train?"),
        (("lock", "host:vast"), "vast is a market: write host:vast/ID for one host, or market:vast for all of it"),
        (("progress", "train", "5"), "'train' has no deadline; workloads with one: none"),
        (("done", "train"), "train is a service, which is never done: `gpubid drain train` stops its rents"),
        (("resume", "train"), "nothing holds 'train'"),
        (("unlock", "host:9"), "is not locked"),
        (("adopt", "train"), "held are: none"),
        (("lock", "train", "--for", "soon"), "is not a duration"),
        (("absent", "--until", "soon"), "is not a duration"),
        (("absent",), "write either --until TIME, for example --until 12h, or --end"),
        (("absent", "--until", "2h", "--end"), "write either --until TIME"),
        (("demand", "train", "3"), "write NAME N --for SPAN, for example workers 5 --for 1h, or NAME --end"),
        (("demand", "train", "3", "--for", "1h"), "train is no workload with a demand; no workload has one"),
    ],
)
async def test_an_order_that_fits_nothing_ends_with_2(tmp_path: Path, verb: tuple[str, ...], says: str) -> None:
    async with programs.market(tmp_path) as market:
        (tmp_path / "agent.toml").write_text(programs.LIVE.format(url=market.url))
        ran = await gpubid(tmp_path, *verb)
        assert ran.code == 2, ran
        assert says in ran.err


@pytest.mark.parametrize("has_daemon", [True, False])
async def test_of_several_targets_none_is_ended_where_one_is_wrong(tmp_path: Path, *, has_daemon: bool) -> None:
    async with programs.market(tmp_path) as market:
        (tmp_path / "agent.toml").write_text(programs.LIVE.format(url=market.url))
        async with programs.daemon(tmp_path) as daemon:
            await daemon.until_told("READY=1")
            await until(market.billing, "a rent")
            if has_daemon:
                refused, is_kept, given = await _released(tmp_path, market)
        if not has_daemon:
            refused, is_kept, given = await _released(tmp_path, market)
    assert (refused.code, refused.out) == (2, "")
    assert "no workload, slot or lease is named 'nope'" in refused.err
    assert is_kept
    assert given.code == 0, given
    assert given.out.count("release workload:train") == 1


async def _released(place: Path, market: programs.Market) -> tuple[programs.Ran, bool, programs.Ran]:
    """Give both orders, and return their answers and whether the lease billed on after the first."""
    refused = await gpubid(place, "release", "train", "train", "nope")
    is_kept = bool(await market.billing())
    return refused, is_kept, await gpubid(place, "release", "train", "train")


async def test_without_a_daemon_it_is_written_down_and_applied_at_the_start(tmp_path: Path) -> None:
    async with programs.market(tmp_path) as market:
        (tmp_path / "agent.toml").write_text(programs.LIVE.format(url=market.url))
        drained = await gpubid(tmp_path, "drain", "train")
        assert drained.code == 0, drained.err
        async with programs.daemon(tmp_path) as daemon:
            await daemon.until_told("READY=1")
            assert not await market.billing()
            shown = (await gpubid(tmp_path, "fleet", "--json")).json
            assert f"drained by uid {os.getuid()}" in shown["slots"][0]["why"]
            assert (await gpubid(tmp_path, "resume", "train")).code == 0
            assert await until(market.billing, "a rent")


async def test_a_market_that_cannot_be_reached_leaves_the_order_to_the_next_cycle(tmp_path: Path) -> None:
    async with programs.market(tmp_path) as market:
        (tmp_path / "agent.toml").write_text(programs.LIVE.format(url=market.url))
        async with programs.daemon(tmp_path) as daemon:
            await daemon.until_told("READY=1")
            await lease_of(tmp_path)
            await daemon.stop()
        await market.weather("server_error_before", route="*")
        with (tmp_path / "agent.toml").open("a") as file:
            file.write('env_from = { HF_TOKEN = "no_such_credential" }\n')
        ran = await gpubid(tmp_path, "pause", "train")
        assert ran.code == 1, ran
        nobody = "no daemon runs, so nobody tries again: give `gpubid pause train` again, or start `gpubid run`"
        assert nobody in ran.out
        (tmp_path / "agent.toml").write_text(programs.LIVE.format(url=market.url))
        await market.still()
        (contract,) = await market.billing()
        async with programs.daemon(tmp_path) as second:
            await second.until_told("READY=1")

            async def is_stopped() -> bool:
                rows = (await market.truth())["contracts"]
                return next(row["status"] for row in rows if row["id"] == contract) not in {"running", "loading"}

            await until(is_stopped, "the pause")


def let_others_in(place: Path) -> None:
    """Open the folders of a test to another user, as deep as they lie: each worker of a parallel run has one more."""
    for folder in (place, *place.parents):
        if folder == Path(tempfile.gettempdir()):
            return
        folder.chmod(0o755)


async def test_a_member_of_the_group_reads_and_may_not_order(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root to become somebody else")
    async with programs.running(tmp_path) as (_, _daemon):
        let_others_in(tmp_path)
        sock = tmp_path / "ledger.sqlite.sock"

        async def asked(gid: int, *request: str) -> str:
            return await asyncio.to_thread(programs.asked_as, 65_534, gid, sock, *request)

        for route in (
            "/fleet",
            "/plan",
            "/explain?workload=train",
            "/events?limit=3&since=2026-01-01",
            "/prices?gpu=rtx_4090",
            "/spend?by=cause&since=2026-01-01",
            "/savings?baseline=runpod",
        ):
            assert " 200 OK" in await asked(0, "GET", route), route
        for route, says in (("/spend?since=now", "days such as"), ("/savings?by=colour", "grouped by"),
                            ("/savings?baseline=x", "no price of x")):  # fmt: skip
            refused = await asked(0, "GET", route)
            assert " 422 " in refused
            assert says in refused
        for body in ('{"verb": "drain", "target": "train"}', '{"verb": "kill", "target": "fleet:all"}'):
            answer = await asked(0, "POST", "/say", body)
            assert " 403 " in answer
            assert "uid 65534 may read but not give orders" in answer
        assert await asked(65_534, "GET", "/fleet") == "PermissionError"


async def test_a_named_uid_may_order(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root to become somebody else")
    config = programs.LIVE.replace("[web]", "[operators]\nuids = [65534]\n[web]")
    async with programs.running(tmp_path, config=config) as (market, daemon):
        let_others_in(tmp_path)
        sock, body = tmp_path / "ledger.sqlite.sock", '{"verb": "drain", "target": "train"}'
        answer = await asyncio.to_thread(programs.asked_as, 65_534, 0, sock, "POST", "/say", body)
        assert " 200 OK" in answer, answer
        assert (await gpubid(tmp_path, "fleet", "--json")).json["holds_and_cooldowns"][0]["after"] == "uid 65534"
        unread = await asyncio.to_thread(programs.asked_as, 65_534, 0, sock, "POST", "/say", '{"verb": "drain"}')
        assert " 400 " in unread
        assert "the daemon cannot read this order" in unread
        (tmp_path / "agent.toml").write_text(programs.LIVE.format(url=market.url))
        await daemon.reload()
        await daemon.until_logged("config.reloaded")
        answer = await asyncio.to_thread(programs.asked_as, 65_534, 0, sock, "POST", "/say", body)
        assert " 403 " in answer, answer


async def test_reading_verbs_ask_the_daemon_where_the_ledger_is_not_ours_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may read every file: that this one is not readable has to be played."""
    async with programs.running(tmp_path):
        monkeypatch.setattr(session, "may_read", lambda _: False)
        monkeypatch.chdir(tmp_path)
        for verb in (
            ["fleet"],
            ["plan"],
            ["explain", "train"],
            ["explain", "train/0"],
            ["ledger", "events"],
            ["ledger", "prices", "--since", "2026-01-01"],
            ["check", "--against-running"],
        ):
            ran = await asyncio.to_thread(CliRunner().invoke, main.app, [*verb, "--json"])
            assert ran.exit_code == 0, ran.output
            assert json.loads(ran.stdout)
            told = await asyncio.to_thread(CliRunner().invoke, main.app, verb)
            assert told.exit_code == 0, told.output
            assert "RTX" in told.stdout if "prices" in verb else "train" in told.stdout
            assert not told.stdout.startswith(("{", "[")), "asked for sentences, not for JSON"


@pytest.mark.nightly
async def test_reports_are_the_same_from_the_daemon_and_from_its_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with programs.running(tmp_path):
        await lease_of(tmp_path)

        async def spent() -> list[Any]:
            return list((await gpubid(tmp_path, "spend", "--json")).json["rows"])

        await until(spent, "a cycle that counted")
        monkeypatch.chdir(tmp_path)
        for verb in (["spend", "--by", "lease"], ["savings", "--by", "gpu"], ["savings", "--baseline", "runpod"]):
            told = []
            for is_ours in (True, False):
                monkeypatch.setattr(session, "may_read", lambda _, answer=is_ours: answer)
                ran = await asyncio.to_thread(CliRunner().invoke, main.app, [*verb, "--json"])
                assert ran.exit_code == 0, ran.output
                told.append(json.loads(ran.stdout))
            # The clock goes on between the two, and so does what came since the last metering.
            moving = {"rows", "total", "as_of", "unmetered_dollars"}
            assert told[0].keys() == told[1].keys()
            assert [told[0][key] for key in told[0] if key not in moving] == [
                told[1][key] for key in told[1] if key not in moving
            ]
            assert abs(told[0].get("unmetered_dollars", 0.0) - told[1].get("unmetered_dollars", 0.0)) < 0.01
            assert [row["key"] for row in told[0]["rows"]] == [row["key"] for row in told[1]["rows"]] != []
            assert told[0]["total"].keys() == told[1]["total"].keys()


async def test_verbs_reach_the_daemon_over_a_broken_file(tmp_path: Path) -> None:
    """The daemon runs on its last good file: reading and stopping need no fix."""
    async with programs.running(tmp_path) as (_, daemon):
        await lease_of(tmp_path)
        file = tmp_path / "agent.toml"
        file.write_text(file.read_text().replace("slots = 1", "slots = -1") + "[oops\n")
        for verb in (
            "fleet", "plan", "explain", "spend", "savings", "ledger events", "ledger prices", "strategy learned",
            "shadow", "drain train", "lock host:1", "pause train", "kill", "kill --lift",
        ):  # fmt: skip
            ran = await gpubid(tmp_path, *verb.split(), "--json")
            assert ran.code == 0, (verb, ran)
            assert isinstance(ran.json, (dict, list)), verb
            said, *progress = ran.err.splitlines()
            assert said == "gpubid: agent.toml is broken; the daemon answers from its last good file"
            assert not progress or verb == "kill", "only a kill tells how far it is"
        assert (await gpubid(tmp_path, "ledger", "backup", "copy.sqlite")).code == 0
        assert (await gpubid(tmp_path, "ledger", "verify")).code == 0
        assert (await gpubid(tmp_path, "check")).code == 2
        looked = await gpubid(tmp_path, "doctor", "--json")
        assert looked.code == 1
        named = {line["name"]: line["verdict"] for line in looked.json["lines"]}
        assert (named["configuration"], named["ledger"], named["daemon"]) == ("fail", "ok", "ok"), looked
        await daemon.stop()
    for verb in ("fleet", "drain train", "kill", "spend"):
        assert (await gpubid(tmp_path, *verb.split())).code == 2, verb


@pytest.mark.parametrize(("more", "code"), [("", 2), ("[oops\n", 1)], ids=["whole", "broken"])
async def test_what_a_daemon_that_ended_did_not_take_is_not_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, code: int
) -> None:
    (tmp_path / "agent.toml").write_text(programs.LIVE.format(url="http://127.0.0.1:1") + more)
    monkeypatch.setenv("VAST_API_KEY", "some-key")
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "ledger.sqlite.sock"

    async def preview(_: web.Request) -> web.Response:
        return web.json_response({"sentence": "release it", "leases": [], "in_doubt": 0})

    async def last(_: web.Request) -> web.Response:
        place.unlink()
        return web.json_response({"said": "vast-1 is released", "done": [], "in_doubt": []})

    app = web.Application()
    app.router.add_post("/say", last)
    app.router.add_get("/preview", preview)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.UnixSite(runner, place).start()
    ran = await asyncio.to_thread(CliRunner().invoke, main.app, ["release", "vast-1", "vast-2"])
    await runner.cleanup()
    assert ran.exit_code == code, ran.output
    assert "vast-2" in ran.stderr
    assert "vast-1 is released" in ran.stdout


async def test_without_a_daemon_somebody_elses_ledger_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ledger that we may not write says nothing about its disk or its soundness."""
    (tmp_path / "agent.toml").write_text(programs.LIVE.format(url="http://127.0.0.1:1"))
    (tmp_path / "ledger.sqlite").touch()
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, *how: "ledger" not in str(path) and may(path, *how))
    monkeypatch.setenv("VAST_API_KEY", "some-key")
    monkeypatch.chdir(tmp_path)
    for verb, says in (
        (["drain", "train"], "you may not write ledger.sqlite"),
        (["fleet"], "not yours to read"),
        (["plan"], "not yours to read"),
        (["ledger", "verify"], "not yours to read"),
    ):
        ran = await asyncio.to_thread(CliRunner().invoke, main.app, verb)
        assert ran.exit_code == 1, ran.output
        assert says in ran.stderr
