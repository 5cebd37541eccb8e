"""A bucket over real HTTP: its answers, missing answers, and that its key appears nowhere.

The bucket that stands in its place where time is told answers the same.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import aiohttp
import pytest

from agent.buckets import bucket_client
from agent.buckets.bucket_client import BucketClient
from agent.buckets.bucket_errors import BucketAway, BucketTaken, BucketTooLarge
from tests.support import played_bucket, s3_server
from tests.support.s3_server import SECRET, S3Server


@pytest.fixture(params=[s3_server.served, played_bucket.played], ids=["served", "played"])
def server(request: pytest.FixtureRequest) -> Iterator[S3Server]:
    with request.param() as running:
        yield running


@pytest.fixture
def served() -> Iterator[S3Server]:
    with s3_server.served() as running:
        yield running


@contextlib.asynccontextmanager
async def answering(answer: bytes, delay: float = 0.0) -> AsyncIterator[str]:
    """Serve the same bytes to whoever connects."""
    serving: set[asyncio.Task[None] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.current_task())
        with contextlib.suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(delay)
            writer.write(answer)
            writer.close()
            await writer.wait_closed()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        await asyncio.gather(*(task for task in serving if task is not None))


async def test_what_is_written_is_read_below_the_folder_and_a_missing_object_is_none(server: S3Server) -> None:
    client = BucketClient(server.place("deep/train"), SECRET)
    assert await client.read("a/beat.json", 100) is None
    await client.write("a/beat.json", b"{}")
    await client.write("a/beat.json", b"{1}")
    assert await client.read("a/beat.json", 3) == b"{1}"
    assert server.names() == ["deep/train/a/beat.json"]


async def test_a_new_object_replaces_none_and_a_large_one_is_not_read(server: S3Server) -> None:
    client = BucketClient(server.place(""), SECRET)
    await client.write("once", b"first", is_new=True)
    with pytest.raises(BucketTaken, match="once is in s3://runs already"):
        await client.write("once", b"second", is_new=True)
    assert await client.read("once", 5) == b"first"
    with pytest.raises(BucketTooLarge, match="larger than 4 bytes"):
        await client.read("once", 4)


async def test_a_presigned_address_needs_no_key_and_holds_no_secret(served: S3Server) -> None:
    client = BucketClient(served.place(), SECRET)
    await client.write("guard/ab.pyz", b"program")
    address = client.presigned("guard/ab.pyz")
    assert "s3cret" not in address
    assert "X-Amz-Expires=604800" in address
    async with aiohttp.ClientSession() as session, session.get(address) as answer:
        assert await answer.read() == b"program"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 27\r\n\r\n<Error>s3cretOfTheBucket</E", "refused"),
        (b"HTTP/1.1 503 Slow Down\r\nContent-Length: 17\r\n\r\ns3cretOfTheBucket", "away"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort", "away"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 18\r\n\r\n404 page not found", "away"),
        (b"s3cretOfTheBucket", "away"),
        (b"", "away"),
    ],
    ids=["forbidden", "busy", "torn", "a proxy", "no HTTP", "nothing"],
)
async def test_what_does_not_answer_properly_is_away_and_repeats_no_secret(answer: bytes, code: str) -> None:
    async with answering(answer) as url:
        client = BucketClient(S3Server(url).place(), SECRET)
        with pytest.raises(BucketAway) as caught:
            await client.read("beat.json", 100)
        with pytest.raises(BucketAway):
            await client.write("order.json", b"{}")
    assert caught.value.code == code
    assert caught.value.__cause__ is None
    assert not any(part in str(caught.value) for part in SECRET.split(":"))


async def test_a_bucket_that_nobody_serves_or_that_hangs_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_client, "DEADLINE_SECONDS", 0.2)
    with pytest.raises(BucketAway, match="does not answer"):
        await BucketClient(S3Server("http://127.0.0.1:9").place(), SECRET).read("a", 1)
    async with answering(b"late", delay=1.0) as url:
        with pytest.raises(BucketAway, match="does not answer"):
            await BucketClient(S3Server(url).place(), SECRET).read("a", 1)


async def test_a_missing_bucket_is_away_and_no_missing_object(server: S3Server) -> None:
    client = BucketClient(replace(server.place(), name="nobodys"), SECRET)
    with pytest.raises(BucketAway):
        await client.write("a", b"")
    with pytest.raises(BucketAway):
        await client.read("a", 1)


@pytest.mark.parametrize("text", ["", "AKIA", ":secret", "AKIA:"])
def test_a_credential_that_is_no_key_is_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match="KEY_ID:SECRET") as caught:
        bucket_client.key_of(text)
    assert not text or text.strip(":") not in str(caught.value).replace("KEY_ID:SECRET", "")


async def test_a_folder_is_listed_with_sizes_and_the_store_s_own_checksums(server: S3Server) -> None:
    client = BucketClient(server.place("deep/train"), SECRET)
    for name in ("run/ckpt/a/1", "run/ckpt/a b&c", "run/ckpt-2", "run/other"):
        await client.write(name, b"{}")
    tag = hashlib.md5(b"{}").hexdigest()  # noqa: S324 - the store's own
    found = [(row.name, row.size_bytes, row.tag) async for row in client.listed("run/ckpt", 10)]
    assert sorted(found) == [("run/ckpt/a b&c", 2, tag), ("run/ckpt/a/1", 2, tag)]
    assert [row async for row in client.listed("nothing", 10)] == []


async def test_the_folders_of_a_folder_are_named_without_the_objects_beside_them(server: S3Server) -> None:
    client = BucketClient(server.place(), SECRET)
    assert await client.folders("a") == ()
    for path in ("a/1/beat.json", "a/1/ckpt/state", "a/12/beat.json", "a/claim.json", "a/3", "ab/4/beat.json"):
        await client.write(path, b"{}")
    assert sorted(await client.folders("a")) == ["1", "12"]


async def test_more_objects_than_are_wanted_are_not_listed(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_client, "PAGE", 2)
    client = BucketClient(server.place(), SECRET)
    for number in range(5):
        await client.write(f"run/{number}", b"")
    assert len([row async for row in client.listed("run", 5)]) == 5
    with pytest.raises(BucketTooLarge, match="more than 4 objects"):
        [row async for row in client.listed("run", 4)]


@pytest.mark.parametrize("name", ["run/../../x", "run//x", "run/."])
async def test_a_key_that_is_no_path_makes_a_folder_unknown(server: S3Server, name: str) -> None:
    client = BucketClient(server.place(), SECRET)
    await client.write("run/a", b"")
    server.put_raw(f"train/{name}", b"x")
    with pytest.raises(BucketAway):
        [row async for row in client.listed("run", 10)]


async def test_a_folder_of_a_bucket_that_does_not_answer_is_unknown() -> None:
    busy = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 17\r\n\r\ns3cretOfTheBucket"
    async with answering(busy) as url:
        with pytest.raises(BucketAway) as caught:
            [row async for row in BucketClient(S3Server(url).place(), SECRET).listed("run", 10)]
    assert not any(part in str(caught.value) for part in SECRET.split(":"))
