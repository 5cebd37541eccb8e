"""A bare HTTP/1.1 server over TCP that gives the set answers and remembers every request."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

PAYLOADS = Path(__file__).parent / "payloads" / "vast"


def payload(name: str) -> Any:
    return json.loads((PAYLOADS / f"{name}.json").read_text())


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(self.target).query).items()}

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Says:
    """An answer, or what happens in its place.

    `drop` closes the connection, `cut` sends only that many bytes of the body, `hang` says nothing at all.
    """

    body: Any = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False
    cut: int | None = None
    hang: bool = False

    def wire(self) -> bytes:
        content = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        lines = [f"HTTP/1.1 {self.status} X", f"Content-Length: {len(content)}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return "\r\n".join([*lines, "", ""]).encode() + content[: self.cut]


Answers = Callable[[Seen], Says]


class Wire:
    """The server: its requests and its answers."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.seen: list[Seen] = []
        self.url = ""
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while await self._one(reader, writer):
                    pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()
            self._tasks.discard(task)

    async def end(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        method, target, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        request = Seen(method, target, headers, body)
        self.seen.append(request)
        says = self.answers(request)
        if says.drop:
            return False
        if says.hang:
            await asyncio.Event().wait()
        writer.write(says.wire())
        await writer.drain()
        return says.cut is None


@contextlib.asynccontextmanager
async def serving(answers: Answers | Says) -> AsyncIterator[Wire]:
    wire = Wire((lambda _: answers) if isinstance(answers, Says) else answers)
    server = await asyncio.start_server(wire.serve, "127.0.0.1", 0)
    wire.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield wire
    finally:
        server.close()
        await wire.end()


def in_turn(*answers: Says) -> Answers:
    """Answer so, one after the other; the last one stays."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]
