"""`gpubid doctor` on a guard's bucket: whether it answers, and whether its key opens more than one folder."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from agent import config
from agent.cli.setup import doctor_buckets
from agent.cli.setup.doctor_checks import Line, Verdict
from agent.ledger.file import sidecar
from tests.support import s3_server
from tests.support.configs import STRATEGIES, added
from tests.support.programs import gpubid

KEY = "AKIA1:s3cretOfTheBucket"
MISSING = "<Error><Code>NoSuchKey</Code></Error>"


@contextlib.asynccontextmanager
async def store(
    opens: str, written: Callable[[web.Request], Awaitable[web.Response]] | None = None
) -> AsyncIterator[str]:
    """Serve a store whose key opens the paths that begin so; writing is served by `written` alone."""

    async def answer(request: web.Request) -> web.Response:
        is_open = bool(opens) and request.path.startswith(opens)
        return web.Response(status=404, text=MISSING) if is_open else web.Response(status=403, text=KEY)

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    if written is not None:
        app.router.add_put("/{path:.*}", written)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def checked(folder: Path, url: str, bucket: str = "s3://runs/train") -> list[Line]:
    table = (f'bucket = "{bucket}"', f'endpoint = "{url}"', 'credential = "train_bucket"', 'paths = ["/w"]')
    (folder / "agent.toml").write_text(added('command = "a"', "[workloads.train.guard]", *table))
    lines = await doctor_buckets.buckets(config.load(folder / "agent.toml", strategies=STRATEGIES))
    assert not any(part in line.sentence + line.fix for line in lines for part in KEY.split(":"))
    return lines


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAIN_BUCKET", KEY)


@pytest.mark.parametrize(
    ("opens", "bucket", "verdict", "words"),
    [
        (
            "/runs/train/",
            "s3://runs/train",
            Verdict.WARN,
            "cannot list other folders; whether it can open them is not known",
        ),
        ("/runs/", "s3://runs/train", Verdict.FAIL, "opens more than this folder"),
        ("/runs/a/", "s3://runs/a/train", Verdict.FAIL, "s3://runs/a was tried"),
        ("/runs/train", "s3://runs/train", Verdict.FAIL, "s3://runs/train-gpubid-doctor-"),
        ("", "s3://runs/train", Verdict.FAIL, "refuses the key"),
        ("/", "s3://runs", Verdict.WARN, "cannot be checked"),
    ],
)
async def test_a_key_is_never_said_to_open_its_folder_alone(
    tmp_path: Path, opens: str, bucket: str, verdict: Verdict, words: str
) -> None:
    async with store(opens) as url:
        (line,) = await checked(tmp_path, url, bucket)
    assert (line.name, line.verdict) == ("bucket train", verdict)
    assert words in line.sentence
    assert bool(line.fix) is (verdict is not Verdict.OK)


@pytest.mark.parametrize(("refusal", "is_told"), [("<Error><Code>AccessDenied</Code></Error>", True), ("no", False)])
async def test_a_key_that_may_read_but_not_write_fails_by_the_stores_own_word(
    tmp_path: Path, refusal: str, *, is_told: bool
) -> None:
    async def refused(_: web.Request) -> web.Response:
        return web.Response(status=403, text=refusal)

    async with store("/runs/train/", refused) as url:
        lines = await checked(tmp_path, url)
    assert [line.verdict for line in lines] == [Verdict.WARN, Verdict.FAIL][: 1 + is_told]
    assert ("may be read, not written" in lines[-1].sentence) is is_told


async def test_a_store_that_is_away_and_a_key_that_is_none_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (away,) = await checked(tmp_path, "http://127.0.0.1:9")
    assert (away.verdict, "does not answer" in away.sentence) == (Verdict.FAIL, True)
    monkeypatch.setenv("TRAIN_BUCKET", "AKIA1-alone")
    (bad,) = await checked(tmp_path, "http://127.0.0.1:9")
    assert (bad.verdict, "is not KEY_ID:SECRET" in bad.sentence) == (Verdict.FAIL, True)


async def test_a_missing_credential_has_no_second_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAIN_BUCKET")
    assert await checked(tmp_path, "http://127.0.0.1:9") == []


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (None, ""),
        (b'{"version":1,"fleet":"f1ee7f1ee7f1","workload":"train"}', ""),
        (b'{"version":1,"fleet":"000000000000","workload":"train"}', "fleet 000000000000, workload train"),
        (b'{"version":1,"fleet":"f1ee7f1ee7f1","workload":"other"}', "fleet f1ee7f1ee7f1, workload other"),
        (b"[", "the claim cannot be read"),
        (b" " * 10_000, "the claim cannot be read"),
    ],
    ids=["none", "ours", "another fleet", "another workload", "unreadable", "oversized"],
)
async def test_a_folder_that_another_fleet_or_workload_has_claimed_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claim: bytes | None, said: str
) -> None:
    # The ledger of this configuration is named without its folder.
    monkeypatch.chdir(tmp_path)
    with s3_server.served() as server:
        if claim is not None:
            await asyncio.to_thread(server.put, "train/claim.json", claim)
        (before,) = await checked(tmp_path, server.url)
        ledger = config.load(tmp_path / "agent.toml", strategies=STRATEGIES).ledger
        sidecar.write_fleet_id(ledger, "f1ee7f1ee7f1")
        same, *found = await checked(tmp_path, server.url)
    assert (before.name, same) == ("bucket train", before)
    assert [line.verdict for line in found] == ([Verdict.FAIL] if said else [])
    assert all(said in line.sentence and "claim.json" in line.fix for line in found)


async def test_check_refuses_a_folder_that_another_fleet_has_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    claim = b'{"version":1,"fleet":"000000000000","workload":"train"}'
    with s3_server.served() as server:
        await asyncio.to_thread(server.put, "train/claim.json", claim)
        await checked(tmp_path, server.url)
        ledger = config.load(tmp_path / "agent.toml", strategies=STRATEGIES).ledger
        sidecar.write_fleet_id(ledger, "f1ee7f1ee7f1")
        ran = await gpubid(tmp_path, "check", TRAIN_BUCKET=KEY)
    assert ran.code == 1, ran
    assert "refused: folder train: s3://runs/train is claimed already" in " ".join(ran.out.split())
