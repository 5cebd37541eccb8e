"""Raw bytes over real TCP and a real Unix socket, to a served world that runs on a separate loop.

The tracebacks in a server's log, and the tasks that ended by an exception, are kept.
"""

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tests.support.programs import PATIENCE_SECONDS
from tests.web.page import Served, served

ANSWER_SECONDS = PATIENCE_SECONDS
"""The longest wait for the answer to a whole request. A request cut short is given up after `CUT_SECONDS`."""
CUT_SECONDS = 0.05
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: its status, or 0 if the connection ended without one, and every byte."""

    status: int
    raw: bytes


@dataclass(slots=True)
class Surfaces:
    """The web server and the socket of a running daemon, and the exceptions in its log."""

    page: Served
    loop: asyncio.AbstractEventLoop
    complaints: list[str] = field(default_factory=list)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the servers' loop."""
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self.loop)
        return future.result(ANSWER_SECONDS)

    def over_tcp(self, raw: bytes, *, is_whole: bool = True) -> Answer:
        """Send bytes to the web server."""
        with socket.create_connection(self.page.place, ANSWER_SECONDS) as link:
            return _asked(link, raw, is_whole=is_whole)

    def over_socket(self, raw: bytes, *, is_whole: bool = True) -> Answer:
        """Send bytes to the operators' socket."""
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(ANSWER_SECONDS)
            link.connect(str(self.page.socket))
            return _asked(link, raw, is_whole=is_whole)


def _asked(link: socket.socket, raw: bytes, *, is_whole: bool) -> Answer:
    said = b""
    # A server that refuses may end the connection before it has read everything.
    with contextlib.suppress(ConnectionError):
        link.sendall(raw)
    link.settimeout(ANSWER_SECONDS if is_whole else CUT_SECONDS)
    with contextlib.suppress(ConnectionError):
        try:
            while chunk := link.recv(65_536):
                said = (said + chunk).removeprefix(CONTINUE)
                if _is_complete(said):
                    break
        except TimeoutError:
            assert not is_whole, f"no answer to {raw[:2000]!r}"
    return Answer(_status(said), said)


def _status(said: bytes) -> int:
    first = said.partition(b"\r\n")[0].split()
    return int(first[1]) if len(first) > 1 and first[1].isdigit() else 0


def _is_complete(said: bytes) -> bool:
    """Return whether an answer is complete: its head, and as much of a body as it announces. A stream has no end."""
    head, end, body = said.partition(b"\r\n\r\n")
    if not end:
        return False
    if b"\r\ncontent-type: text/event-stream" in head.lower():
        return True
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return bool(lengths) and len(body) >= int(lengths[0])


class _Heard(logging.Handler):
    """Keeps every log record with an exception, of any logger."""

    def __init__(self, complaints: list[str]) -> None:
        super().__init__()
        self._complaints = complaints

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info or record.levelno >= logging.ERROR:
            self._complaints.append(f"{record.name}: {record.getMessage()} {record.exc_info}")


@contextlib.contextmanager
def surfaces(directory: Path) -> Iterator[Surfaces]:
    """Serve a world with one running lease, on a thread with a separate loop."""
    ready: Future[Surfaces] = Future()
    stop = asyncio.Event()

    async def lived() -> None:
        async with served(directory) as page:
            made = Surfaces(page, asyncio.get_running_loop())
            handler = _Heard(made.complaints)
            for name in ("asyncio", "aiohttp"):
                logging.getLogger(name).addHandler(handler)
            try:
                ready.set_result(made)
                await stop.wait()
            finally:
                for name in ("asyncio", "aiohttp"):
                    logging.getLogger(name).removeHandler(handler)

    thread = threading.Thread(target=_told(lived, ready), name="served")
    thread.start()
    made = ready.result(ANSWER_SECONDS)
    try:
        yield made
    finally:
        made.loop.call_soon_threadsafe(stop.set)
        thread.join(ANSWER_SECONDS)


def _told(lived: Callable[[], Coroutine[Any, Any, None]], ready: "Future[Surfaces]") -> Callable[[], None]:
    def run() -> None:
        try:
            asyncio.run(lived())
        except BaseException as error:  # the waiting side raises the error
            if not ready.done():
                ready.set_exception(error)
            raise

    return run
