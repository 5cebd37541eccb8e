"""The bucket before a guard starts, over a real S3 server: the program in it, and whether it has a checkpoint."""

import asyncio
import json
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from agent.act.guarding import guard_launch
from agent.act.guarding.guard_launch import GuardLaunch
from agent.act.guarding.guard_launches import GuardLaunches, Program
from agent.domain.record.guard_run import GuardRun
from agent.domain.work.guard_terms import Bucket, GuardTerms
from agent.domain.work.workload import Workload
from agent.guard import guard_settings
from agent.markets import market_errors
from tests.support import builders, s3_server, store_proxy
from tests.support.s3_server import SECRET, S3Server
from tests.support.s3_servers import Store

PROGRAM = Program(b"the guard")
RUN = GuardRun(builders.TRAIN_0, 3, "train", "d1", builders.NOW)
RENT = builders.intent(1)
POINTER = "train/f1/train/0/3/latest.json"


@pytest.fixture
def server() -> Iterator[S3Server]:
    with s3_server.served() as running:
        yield running


def launches(secret: str = SECRET) -> GuardLaunches:
    return GuardLaunches("f1", lambda: PROGRAM.content, {"train_bucket": secret}.__getitem__)


async def launched(place: Bucket | None, *, is_first: bool, through: GuardLaunches | None = None) -> GuardLaunch:
    work = builders.workload(guard=GuardTerms(("/w",), bucket=place))
    made = await (through or launches()).launch(work, RENT, RUN, is_first=is_first)
    assert made is not None
    return made


async def test_the_program_is_uploaded_once_under_its_digest_and_signed_for(server: S3Server) -> None:
    through = launches()
    for _ in range(2):
        made = await launched(server.place(), is_first=True, through=through)
    expected = ["train/claim.json", "train/f1/train/0/3/run.json", f"train/guard/{PROGRAM.sha256}.pyz"]
    assert server.names() == expected
    assert f"/runs/train/guard/{PROGRAM.sha256}.pyz?X-Amz-Algorithm=" in made.url
    assert (made.lease, made.run, made.folder) == (RENT.intent_id, 3, "f1/train/0/3")
    assert (made.manifest_exists, made.sha256) == (False, PROGRAM.sha256)


async def test_a_program_that_was_removed_meanwhile_is_there_again_for_the_next_rent(server: S3Server) -> None:
    through = launches()
    await launched(server.place(), is_first=True, through=through)
    await asyncio.to_thread(server.put, f"train/{PROGRAM.path}", b"what a host with the key left of it")
    await launched(server.place(), is_first=False, through=through)
    assert await asyncio.to_thread(server.get, f"train/{PROGRAM.path}") == PROGRAM.content


async def test_another_file_under_the_programs_name_is_replaced(server: S3Server) -> None:
    await asyncio.to_thread(server.put, f"train/{PROGRAM.path}", b"forged")
    await launched(server.place(), is_first=True)
    assert await asyncio.to_thread(server.get, f"train/{PROGRAM.path}") == PROGRAM.content


@pytest.mark.parametrize("is_first", [True, False])
async def test_the_buckets_own_word_says_whether_there_is_a_checkpoint(server: S3Server, *, is_first: bool) -> None:
    assert not (await launched(server.place(), is_first=is_first)).manifest_exists
    await asyncio.to_thread(server.put, POINTER, b"{}")
    assert (await launched(server.place(), is_first=is_first)).manifest_exists


@pytest.mark.parametrize("is_first", [True, False])
async def test_a_bucket_that_is_away_has_what_the_run_may_have_made(*, is_first: bool) -> None:
    place = S3Server("http://127.0.0.1:9").place()
    with capture_logs() as logged:
        made = await launched(place, is_first=is_first)
    assert made.manifest_exists is not is_first
    assert PROGRAM.path in made.url
    assert [(each["event"], each["code"]) for each in logged] == [("guard.unprepared", "away")]
    assert not any(part in str(logged) for part in SECRET.split(":"))


async def test_a_bucket_that_was_away_at_the_rent_is_prepared_later(server: S3Server) -> None:
    """The container waits for the program for ten minutes."""
    through, begun = launches(), list[Coroutine[Any, Any, None]]()
    with store_proxy.before(Store("moto", server.url)) as proxy:
        work = builders.workload(guard=GuardTerms(("/w",), bucket=S3Server(proxy.url).place()))
        through.look((), (work,), begun.append, 0.0)
        assert begun == [], "nobody waits"
        proxy.fault = lambda _method, _path: 503
        for _ in range(2):
            through.look((builders.lease(),), (work,), begun.append, 0.0)
        (away,) = begun
        await away
        assert await asyncio.to_thread(server.names) == []
        proxy.fault = lambda _method, _path: None
        through.look((builders.lease(),), (work,), begun.append, 60.0)
        await begun[1]
        assert await asyncio.to_thread(server.names) == ["train/claim.json", f"train/{PROGRAM.path}"]
        through.look((builders.lease(),), (work,), begun.append, 61.0)
        assert begun[2:] == [], "it is prepared"


async def test_a_bucket_that_fails_rests_longer_each_time_and_is_told_once() -> None:
    through, begun, tried = launches("AKIA"), list[Coroutine[Any, Any, None]](), list[float]()
    work = builders.workload(guard=GuardTerms(("/w",), bucket=S3Server("http://127.0.0.1:9").place()))
    with capture_logs() as logged:
        for minute in range(60):
            through.look((builders.lease(),), (work,), begun.append, 60.0 * minute)
            if begun:
                tried.append(minute)
                await begun.pop()
    assert tried == [0, 1, 3, 7, 15, 30, 45]
    levels = [each["log_level"] for each in logged if each["event"] == "guard.unprepared"]
    assert levels == ["warning"] + ["debug"] * 6


def test_a_guard_that_has_spoken_needs_no_program() -> None:
    begun = list[Coroutine[Any, Any, None]]()
    held = builders.lease()
    work = builders.workload(guard=GuardTerms(("/w",), bucket=S3Server("http://127.0.0.1:9").place()))
    launches().look((held,), (work,), begun.append, 0.0, {held.intent_id})
    assert begun == []


async def test_without_a_usable_key_nothing_is_known_and_no_address_is_signed(server: S3Server) -> None:
    def missing(name: str) -> str:
        raise market_errors.Rejected("no_credential", name)

    for through in (launches("AKIA"), GuardLaunches("f1", lambda: b"", missing)):
        made = await launched(server.place(), is_first=False, through=through)
        assert (made.manifest_exists, made.url) == (True, "")
    assert server.names() == []


@pytest.mark.parametrize("is_first", [True, False])
async def test_a_store_of_rclone_gets_the_folder_of_the_run_and_may_have_a_checkpoint(*, is_first: bool) -> None:
    work = builders.workload(guard=GuardTerms(("/w",), rclone="nas:runs"))
    made = await launches().launch(work, RENT, RUN, is_first=is_first)
    assert made is not None
    settings = json.loads(dict(guard_launch.environment(made, work, 300, None))[guard_launch.GUARD])
    read = guard_settings.read({guard_launch.GUARD: json.dumps(settings)})
    assert (read.rclone, read.bucket, read.run) == ("nas:runs/f1/train/0/3", None, 3)
    assert read.manifest_exists is not is_first


async def test_without_a_bucket_only_the_digest_is_told_and_without_a_guard_nothing() -> None:
    made = await launched(None, is_first=True)
    assert (made.run, made.folder, made.url, made.manifest_exists) == (1, "", "", False)
    work = builders.workload()
    assert await launches().launch(work, replace(RENT, guard_run=None), None, is_first=False) is None


@pytest.mark.parametrize("content", [b"{}", b"{" + b" " * 70_000 + b"}"], ids=["small", "large"])
@pytest.mark.parametrize("name", ["end.json", "latest.json"])
async def test_a_run_that_has_an_end_never_starts_without_the_guard(
    server: S3Server, name: str, content: bytes
) -> None:
    assert not (await launched(server.place(), is_first=True)).manifest_exists
    await asyncio.to_thread(server.put, f"train/f1/train/0/3/{name}", content)
    assert (await launched(server.place(), is_first=True)).manifest_exists


async def test_the_first_rent_claims_the_folder_and_leaves_the_claim_of_another(server: S3Server) -> None:
    place = server.place()
    work = builders.workload(guard=GuardTerms(("/w",), bucket=place))

    async def claimed(by: Workload, fleet_id: str = "f1") -> tuple[dict[str, object], list[str]]:
        through = GuardLaunches(fleet_id, lambda: PROGRAM.content, {"train_bucket": SECRET}.__getitem__)
        with capture_logs() as logged:
            assert await through.launch(by, RENT, RUN, is_first=True) is not None
        content = await asyncio.to_thread(server.get, "train/claim.json")
        return json.loads(content), [each["event"] for each in logged]

    mine = {"version": 1, "fleet": "f1", "workload": "train"}
    assert await claimed(work) == (mine, [])
    assert await claimed(work) == (mine, [])
    assert await claimed(work, "f2") == (mine, ["guard.folder_claimed"])
    assert await claimed(replace(work, name="other")) == (mine, ["guard.folder_claimed"])
    assert await claimed(replace(work, name="fit", was="train")) == ({**mine, "workload": "fit"}, [])
    await asyncio.to_thread(server.put, "train/claim.json", b"{}".ljust(10_000))
    assert await claimed(work) == ({}, ["guard.folder_claimed"])
    await asyncio.to_thread(server.put, "train/claim.json", b"[")
    with pytest.raises(json.JSONDecodeError):
        await claimed(work)


@pytest.mark.parametrize("code", ["AccessDenied", "Weather"])
async def test_a_key_that_may_list_but_not_write_alerts_by_the_stores_own_word_until_it_may(
    server: S3Server, code: str
) -> None:
    through = launches()
    with store_proxy.before(Store("moto", server.url)) as proxy:
        place = S3Server(proxy.url).place()
        proxy.code, proxy.fault = code, lambda method, _path: 403 if method == "PUT" else None
        made = await launched(place, is_first=True, through=through)
        assert (made.unlisted, made.manifest_exists) == ("", False)
        told = [(alert.kind, alert.key) for alert in through.alerts()]
        assert told == [("alert.bucket_refused", "train")] * (code == "AccessDenied")
        proxy.fault = lambda _method, _path: None
        await launched(place, is_first=True, through=through)
        assert through.alerts() == ()
