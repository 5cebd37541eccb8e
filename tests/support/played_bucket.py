"""A bucket in the process: it answers a client of ours at once, as a real S3 server does over TCP.

For worlds whose time is told, which ask a bucket every minute of it. tests/buckets asks it the same as a real server.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import obstore
from obstore import exceptions
from obstore.store import S3Store

from agent.buckets import bucket_client
from tests.support.s3_server import S3Server

URL = "http://bucket.invalid"


@dataclass(frozen=True, slots=True)
class PlayedBucket(S3Server):
    """Stands where a test has a server."""

    url: str = URL
    objects: dict[str, bytes] = field(default_factory=dict)

    def put(self, path: str, content: bytes) -> None:
        """Write an object."""
        self.objects[path] = content

    def put_raw(self, path: str, content: bytes) -> None:
        """Write an object whose key need be no path."""
        self.objects[path] = content

    def get(self, path: str) -> bytes:
        """Return an object."""
        return self.objects[path]

    def names(self) -> list[str]:
        """Return the names of all objects."""
        return sorted(self.objects)


class _Got:
    def __init__(self, content: bytes) -> None:
        self.meta = {"size": len(content)}
        self._content = content

    async def bytes_async(self) -> bytes:
        return self._content


class _Store:
    """The side of obstore: one folder of the bucket."""

    def __init__(self, server: PlayedBucket, name: str, prefix: str | None) -> None:
        self._server = server
        self._name = name
        self._root = f"{prefix}/" if prefix else ""

    async def get_async(self, path: str) -> _Got:
        objects = await self._objects()
        if (content := objects.get(self._root + path)) is None:
            raise FileNotFoundError("<Error><Code>NoSuchKey</Code></Error>")
        return _Got(content)

    async def put_async(self, path: str, content: bytes, *, mode: str, **_: Any) -> None:
        objects = await self._objects()
        if mode == "create" and self._root + path in objects:
            raise exceptions.AlreadyExistsError(path)
        objects[self._root + path] = content

    async def list_with_delimiter_async(self, folder: str) -> dict[str, list[str]]:
        """Return the folders in a folder, as S3 does for the delimiter "/"."""
        root = self._root + folder
        inner = (name.removeprefix(root) for name in await self._objects() if name.startswith(root))
        found = {folder + name.partition("/")[0] for name in inner if "/" in name}
        return {"common_prefixes": sorted(found)}

    async def list(self, folder: str, chunk_size: int) -> AsyncIterator[list[dict[str, Any]]]:
        objects = await self._objects()
        names = sorted(name for name in objects if name.startswith(f"{self._root}{folder}/"))
        for begin in range(0, len(names), chunk_size):
            yield [self._row(name, objects[name]) for name in names[begin : begin + chunk_size]]

    def signed(self, path: str) -> str:
        return f"{self._server.url}/{self._name}/{self._root}{path}?X-Amz-Expires=604800"

    async def _objects(self) -> dict[str, bytes]:
        # No answer comes before somebody else had a turn.
        await asyncio.sleep(0)
        if self._name != self._server.bucket:
            raise FileNotFoundError("<Error><Code>NoSuchBucket</Code></Error>")
        return self._server.objects

    def _row(self, name: str, content: bytes) -> dict[str, Any]:
        if {"", ".", ".."} & set(name.split("/")):
            raise exceptions.GenericError(name)
        tag = hashlib.md5(content).hexdigest()  # noqa: S324 - the store's own
        return {"path": name.removeprefix(self._root), "size": len(content), "e_tag": f'"{tag}"'}


@contextlib.contextmanager
def played() -> Iterator[PlayedBucket]:
    """Let clients that are made while the block runs find an empty bucket; other addresses are as real as ever."""
    server, sign = PlayedBucket(), obstore.sign

    def store(name: str, *, prefix: str | None, endpoint: str, **more: Any) -> Any:
        if endpoint == server.url:
            return _Store(server, name, prefix)
        return S3Store(name, prefix=prefix, endpoint=endpoint, **more)

    def signed(store: Any, *how: Any) -> Any:
        return store.signed(how[1]) if isinstance(store, _Store) else sign(store, *how)

    with mock.patch.object(bucket_client, "S3Store", store), mock.patch.object(obstore, "sign", signed):
        yield server
