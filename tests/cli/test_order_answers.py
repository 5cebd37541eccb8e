"""A verb's reaction to a daemon's answer to an order: doubts, refusals, leases that changed, and no answer at all."""

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from typer.testing import CliRunner

from agent.cli import main
from agent.cli.ordering import confirmation
from agent.cli.shared import daemon_socket
from agent.domain.work.order import Order
from agent.web import operator_socket
from tests.support import programs

IN_DOUBT = {
    "intent": "i7", "kind": "rent", "lease": "", "slot": "train/1", "market": "vast", "host": "h9",
    "state": "in_doubt", "outcome": "no answer",
}  # fmt: skip
RELEASED = IN_DOUBT | {"kind": "release", "lease": "vast-1", "slot": "train/0", "state": "rejected", "outcome": "busy"}


@pytest.mark.parametrize(
    ("target", "code"),
    [("train", 1), ("train/1", 1), ("market:vast", 1), ("host:h9", 1), ("serve", 0), ("train/0", 0), ("host:h8", 0)],
)
async def test_an_end_that_leaves_its_target_in_doubt_says_so_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, code: int
) -> None:
    async with daemon_that_says(tmp_path, monkeypatch, {"said": "released", "done": [], "in_doubt": [IN_DOUBT]}):
        ran = await asyncio.to_thread(CliRunner().invoke, main.app, ["release", target])
    assert ran.exit_code == code, ran.output
    assert ("train/1: rent i7 is in doubt and may bill: `gpubid fleet` shows it" in ran.stdout) is bool(code)


async def test_a_daemon_tries_again_what_is_not_confirmed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with daemon_that_says(tmp_path, monkeypatch, {"said": "released", "done": [RELEASED], "in_doubt": []}):
        ran = await asyncio.to_thread(CliRunner().invoke, main.app, ["release", "vast-1"])
    assert ran.exit_code == 1, ran.output
    assert "the daemon's next cycle tries again" in ran.stdout


@pytest.mark.parametrize(
    ("verb", "target", "way"),
    [
        ("pause", "train/0", "paused disks still bill; `gpubid resume train/0` ends the pause"),
        ("drain", "market:vast", "`gpubid resume market:vast` ends the drain"),
        ("lock", "host:vast/7", "`gpubid unlock host:vast/7` ends the lock"),
        ("release", "vast-1", "the daemon fills a released slot again once it may and is wanted; `gpubid drain NAME`"),
    ],
)
async def test_an_order_says_how_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, target: str, way: str
) -> None:
    async with daemon_that_says(tmp_path, monkeypatch, {"said": "ordered", "done": [], "in_doubt": []}):
        ran = await asyncio.to_thread(CliRunner().invoke, main.app, [verb, target])
        assert ran.exit_code == 0, ran.output
        assert ran.stdout.splitlines()[1].startswith(way)


LEASE = {
    "lease": "vast-1", "slot": "train/0", "state": "running", "market": "vast", "host": "h1", "gpu": "RTX 4090",
    "gpus": 1, "action": "release", "dollars_per_hour": 0.25, "after_dollars_per_hour": 0.0,
}  # fmt: skip
SHOWN = {"sentence": "release workload:train", "leases": [LEASE], "in_doubt": 0}
CHANGED = {"error": "leases_changed", "sentence": "the leases changed since they were shown: train/0 has vast-2 now"}
DONE = {"said": "release workload:train", "done": [], "in_doubt": []}


@pytest.mark.parametrize(("answers", "code"), [("y\ny\n", 0), ("y\nn\n", 1)])
async def test_what_changed_since_it_was_shown_is_shown_and_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: str, code: int
) -> None:
    monkeypatch.setattr(confirmation, "is_person", lambda: True)
    monkeypatch.setattr(confirmation, "PATIENCE_SECONDS", 60.0)
    later = {**SHOWN, "leases": [{**LEASE, "lease": "vast-2"}]}
    async with daemon_that_says(tmp_path, monkeypatch, CHANGED, DONE, previews=(SHOWN, later)) as taken:
        ran = await asyncio.to_thread(CliRunner().invoke, main.app, ["release", "train"], answers)
    assert ran.exit_code == code, ran.output
    assert CHANGED["sentence"] in ran.stderr
    assert "the daemon fills a released slot again" in ran.stderr
    assert ran.stderr.index(CHANGED["sentence"]) < ran.stderr.index("train/0 vast-2 running")
    assert [body["leases"] for body in taken] == [["vast-1"], ["vast-2"]][: len(taken)]
    assert len(taken) == (2 if code == 0 else 1)


async def test_a_daemon_that_lists_nothing_in_time_still_gets_the_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confirmation, "is_person", lambda: True)
    monkeypatch.setattr(confirmation, "PATIENCE_SECONDS", 0.2)
    async with daemon_that_says(tmp_path, monkeypatch, DONE, previews=(SHOWN,), shows_after_seconds=60.0) as taken:
        ran = await asyncio.to_thread(CliRunner().invoke, main.app, ["kill", "train", "--no-wait"], "y\n")
    assert ran.exit_code == 0, ran.output
    assert "kill train: its leases cannot be listed" in ran.stderr
    assert "an hour after it" not in ran.stderr
    assert [body["leases"] for body in taken] == [None]


ASKED = """
import sys
from agent.cli.ordering import confirmation
from agent.cli.shared import daemon_socket
from agent.domain.work.order import Order
before = "aiohttp" in sys.modules
async def get(*_):
    print(before, "aiohttp" in sys.modules)
    return {}
daemon_socket.get = get
confirmation._found(Order("kill", "train"), (None, {}))
"""


@pytest.mark.nightly
async def test_the_time_to_list_leases_begins_after_the_client_is_imported() -> None:
    words = (sys.executable, "-c", ASKED)
    ran = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "True"]


async def test_a_script_names_no_leases_and_is_never_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with daemon_that_says(tmp_path, monkeypatch, DONE) as taken:
        ran = await asyncio.to_thread(CliRunner().invoke, main.app, ["release", "train"])
    assert ran.exit_code == 0, ran.output
    assert [body["leases"] for body in taken] == [None]


@pytest.mark.parametrize("verb", [["release", "train"], ["kill"], ["kill", "--lift"]])
async def test_an_order_without_an_answer_may_have_been_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: list[str]
) -> None:
    monkeypatch.setattr(daemon_socket, "ANSWER_SECONDS", 0.2)
    async with daemon_that_says(tmp_path, monkeypatch, DONE, after_seconds=60.0):
        ran = await asyncio.to_thread(CliRunner().invoke, main.app, verb)
    assert ran.exit_code == 1, ran.output
    assert "it may have taken the order: `gpubid ledger events --since 10m` shows whether it did" in ran.stderr


@contextlib.asynccontextmanager
async def daemon_that_says(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    *said: dict[str, Any],
    previews: tuple[dict[str, Any], ...] = (),
    after_seconds: float = 0.0,
    shows_after_seconds: float = 0.0,
) -> AsyncIterator[list[dict[str, Any]]]:
    """Answer the orders and the questions before them in `place` with the given answers, one by one.

    Yield the orders.
    """
    (place / "agent.toml").write_text(programs.LIVE.format(url="http://127.0.0.1:1"))
    monkeypatch.setenv("VAST_API_KEY", "some-key")
    monkeypatch.chdir(place)
    taken: list[dict[str, Any]] = []
    answers, shown = iter(said), iter(previews)

    async def take(request: web.Request) -> web.Response:
        taken.append(await request.json())
        await asyncio.sleep(after_seconds)
        answer = next(answers)
        return web.json_response(answer, status=422 if "error" in answer else 200)

    async def show(_: web.Request) -> web.Response:
        await asyncio.sleep(shows_after_seconds)
        return web.json_response(next(shown))

    app = web.Application()
    app.router.add_post("/say", take)
    app.router.add_get("/preview", show)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.UnixSite(runner, place / "ledger.sqlite.sock").start()
    try:
        yield taken
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    "given",
    [
        Order("release", "train/0", is_gone=True),
        Order("adopt", "7", into="train/1"),
        Order("kill", "fleet:all", keep_disks=True, leases=("vast-1",)),
        Order("progress", "train", hours=12.5),
        Order("demand", "train", timedelta(hours=1), slots=3),
    ],
    ids=lambda given: given.verb,
)
def test_an_order_arrives_whole_at_the_socket(given: Order) -> None:
    said = msgspec.convert(json.loads(json.dumps(daemon_socket.body(given))), operator_socket._Said)
    assert said.order() == given
