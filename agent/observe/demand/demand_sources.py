"""One question to whoever has the queue: a page, a program, or Prometheus. Answers are bounded and not trusted."""

import asyncio
import contextlib
import math
import os
import signal
from collections.abc import Mapping
from typing import Any

import aiohttp
import msgspec

from agent.domain.slot_demand import Demand, DemandFrom

DEADLINE_SECONDS = 10.0
MOST_BYTES = 1 << 16
_OK = 200
_KEPT = ("PATH", "LANG", "LC_ALL", "TZ")
"""The variables of our environment that a program gets. None of them is a credential."""


class DemandUnknownError(Exception):
    """The question has no usable answer; how many tasks there are is not known."""


async def tasks(terms: Demand) -> int:
    """Return the number of tasks that a demand answers.

    Raises:
        DemandUnknownError: with a sentence.
    """
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            if terms.source is DemandFrom.COMMAND:
                return number(await _printed(terms.command))
            if terms.source is DemandFrom.PROMETHEUS:
                return number(_sample(await _page(f"{terms.place.rstrip('/')}/api/v1/query", {"query": terms.query})))
            return number(_named(await _page(terms.place, {})))
    except TimeoutError as error:
        raise DemandUnknownError(f"no answer within {DEADLINE_SECONDS:.0f} seconds") from error
    except (OSError, aiohttp.ClientError) as error:
        raise DemandUnknownError(f"it cannot be asked ({type(error).__name__})") from error


def number(answer: object) -> int:
    """Return an answer as a number of tasks.

    Raises:
        DemandUnknownError: it is none.
    """
    is_told = isinstance(answer, str | int | float) and not isinstance(answer, bool)
    try:
        found = float(str(answer).strip()[:64]) if is_told else math.nan
    except ValueError:
        found = math.nan
    if not math.isfinite(found) or found < 0:
        raise DemandUnknownError(f"the answer is no number of tasks: {answer!r:.60}")
    return math.ceil(found)


async def _page(url: str, query: Mapping[str, str]) -> bytes:
    async with aiohttp.ClientSession() as client, client.get(url, params=query, allow_redirects=False) as answer:
        if answer.status != _OK:
            raise DemandUnknownError(f"it answers {answer.status}")
        return await _bounded(answer.content)


async def _bounded(stream: aiohttp.StreamReader | asyncio.StreamReader) -> bytes:
    parts = bytearray()
    while part := await stream.read(1 << 14):
        parts += part
        if len(parts) > MOST_BYTES:
            raise DemandUnknownError(f"it answers more than {MOST_BYTES >> 10} kB")
    return bytes(parts)


def _named(body: bytes) -> object:
    """Return the number of a page: the page itself, or `tasks` of its JSON."""
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return body.decode("utf-8", "replace")
    return said.get("tasks") if isinstance(said, dict) else said


def _sample(body: bytes) -> object:
    """Return the value of a scalar, or of the one sample of a vector."""
    try:
        data: Any = msgspec.json.decode(body)["data"]
        rows = [{"value": data["result"]}] if data["resultType"] == "scalar" else data["result"]
        values = [row["value"][1] for row in rows]
    except (msgspec.DecodeError, RecursionError, KeyError, TypeError, IndexError) as error:
        raise DemandUnknownError("the answer is none of Prometheus's") from error
    if len(values) != 1:
        raise DemandUnknownError(f"the query gives {len(values)} samples, and must give one")
    return values[0]


async def _printed(command: tuple[str, ...]) -> str:
    """Return what a program prints. It is ended with all that it has begun.

    The pipe is our own, so that it can be dropped: something that left the program's group may hold it open for ever.
    """
    ours, theirs = os.pipe()
    reader = asyncio.StreamReader()
    with open(ours, "rb", buffering=0) as pipe:  # noqa: PTH123, ASYNC230 - a pipe has no path
        try:
            program = await _began(command, theirs)
        finally:
            os.close(theirs)
        told, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        try:
            printed = await _bounded(reader)
            code = await program.wait()
        finally:
            told.close()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            await program.wait()
    if code != 0:
        raise DemandUnknownError(f"it ended with {code}")
    return printed.decode("utf-8", "replace")


async def _began(command: tuple[str, ...], output: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output,
        stderr=asyncio.subprocess.DEVNULL,
        env={name: os.environ[name] for name in _KEPT if name in os.environ},
        start_new_session=True,
    )
