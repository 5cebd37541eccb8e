"""A request and its answer as values, and how they travel over a connection."""

import dataclasses
import enum
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import msgspec
from aiohttp import web


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """One request; path and query are decoded."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""
    peer: str = ""
    base_url: str = ""

    @property
    def key(self) -> str | None:
        """The key that it shows, as a bearer or in its query; None if it shows none."""
        header = self.headers.get("Authorization", "")
        shown = header[7:].strip() if header.startswith("Bearer ") else self.query.get("api_key")
        return shown or None


class Cut(enum.Enum):
    """How much of an answer arrives."""

    NOTHING = "nothing"  # the connection is dropped
    HALF = "half"
    WHOLE = "whole"


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """One answer. `more` follows the body, as a stream does."""

    status: int = 0
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    body: bytes = b""
    cut: Cut = Cut.WHOLE
    more: AsyncGenerator[bytes, None] | None = None


DROPPED = Answer(cut=Cut.NOTHING)


def decoded(body: bytes) -> tuple[Any, bool]:
    """Return the JSON of a body, None for an empty one, and whether the body is no JSON."""
    if not body:
        return None, False
    try:
        return msgspec.json.decode(body), False
    except msgspec.DecodeError:
        return None, True


async def read(request: web.BaseRequest) -> Asked:
    """Return a request that came over a connection as a value."""
    body = await request.read() if request.body_exists else b""
    query: Mapping[str, str] = request.query if request.query_string else {}
    base = f"http://{request.host}"
    return Asked(request.method, request.path, query, request.headers, body, request.remote or "", base)


async def send(request: web.BaseRequest, answer: Answer) -> web.StreamResponse:
    """Send an answer over the connection of its request."""
    if answer.cut is Cut.NOTHING:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()
    if answer.more is not None:
        return await _stream(request, answer, answer.more)
    if answer.cut is Cut.HALF:
        return await _half(request, answer)
    return web.Response(body=answer.body, status=answer.status, headers=answer.headers)


async def _half(request: web.BaseRequest, answer: Answer) -> web.StreamResponse:
    headers = {**answer.headers, "Content-Length": str(len(answer.body))}
    response = web.StreamResponse(status=answer.status, headers=headers)
    await response.prepare(request)
    await response.write(answer.body[: len(answer.body) // 2])
    if request.transport is not None:
        request.transport.close()
    return response


async def _stream(request: web.BaseRequest, answer: Answer, more: AsyncGenerator[bytes, None]) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, headers=answer.headers)
    await response.prepare(request)
    try:
        if answer.body:
            await response.write(answer.body)
        async for piece in more:
            await response.write(piece)
    except ConnectionResetError:
        pass
    return response
