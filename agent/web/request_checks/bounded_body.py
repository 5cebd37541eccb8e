"""The body of a request, read within bounds. An unreadable body is the sender's mistake, never a defect of ours."""

import asyncio
from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import parse_qsl

import msgspec
from aiohttp import ClientError, web
from aiohttp.http_exceptions import HttpProcessingError

BODY_SECONDS = 10.0
MOST_FIELDS = 20
FORM = "application/x-www-form-urlencoded"
UTF_8 = frozenset({None, "utf-8", "utf8", "us-ascii"})

Read = TypeVar("Read")


async def body(request: web.Request) -> bytes:
    """Return the bytes of a body.

    Raises:
        HTTPException: the body is too large, comes too slowly, or has a wrong framing.
    """
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await request.read()
    except TimeoutError:
        raise web.HTTPRequestTimeout from None
    except (web.RequestPayloadError, HttpProcessingError, ClientError, ConnectionError):
        raise web.HTTPBadRequest(text="The body could not be read.\n") from None


async def form(request: web.Request) -> Mapping[str, str]:
    """Return the fields of a form as our own pages send it: URL-encoded, in UTF-8.

    Raises:
        HTTPException: the body is no such form.
    """
    if request.content_type != FORM or _charset(request) not in UTF_8:
        raise web.HTTPUnsupportedMediaType(text=f"Send the form as {FORM} in UTF-8.\n")
    raw = await body(request)
    try:
        fields = parse_qsl(raw.decode(errors="replace"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise web.HTTPBadRequest(text="The form has too many fields.\n") from None
    return dict(fields)


async def document(request: web.Request, kind: type[Read]) -> Read:
    """Return a JSON body as a value of `kind`.

    Raises:
        HTTPException: the body cannot be read.
        ValueError: the body is no such JSON.
    """
    raw = await body(request)
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None


def _charset(request: web.Request) -> str | None:
    charset = request.charset
    return None if charset is None else charset.lower()
