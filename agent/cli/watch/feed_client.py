"""The client of the feed: reads a daemon's messages from its socket, gives orders, and waits during a restart."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.cli.shared import daemon_socket
from agent.cli.shared.daemon_socket import Refused
from agent.domain.work.order import Order

if TYPE_CHECKING:
    import aiohttp

    from agent.config.daemon_paths import DaemonPaths
    from agent.config.settings import Config

SILENCE_SECONDS = 25.0
"""A stream sends something every ten seconds. After this silence the daemon counts as gone."""
RETRY_SECONDS = 2.0
STANDS_BY = 503
"""The status of a standby's answers, among others."""
GONE = "the daemon does not answer: `gpubid run` starts it"


class _StandsBy(Exception):
    """The daemon stands by: it has no feed. The text says who leads."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message: event `fleet` with a document, `beat` with its instants, or `gone` with the sentence why.

    `gone`: no daemon answers, or one that stands by.
    """

    event: str
    body: Mapping[str, Any] = field(default_factory=dict)


class FeedClient:
    """Reads the feed of the daemon at one socket."""

    def __init__(self, socket: Path) -> None:
        """Connect to `socket` at the first request."""
        self._socket = socket

    async def messages(self) -> AsyncGenerator[Message, None]:
        """Yield the fleet now and after each change, without end. Yield `gone` each time that the daemon ends.

        Yield it again when its sentence changes: a standby says how old the leader's beat is.

        Raises:
            Refused: the socket may not be opened, or the daemon ended the stream for another one.
        """
        import aiohttp

        told = ""
        while True:
            why = GONE
            try:
                async for message in self._stream():
                    told = ""
                    if message.event == "refused":
                        raise Refused(str(message.body["sentence"]))
                    yield message
            except (OSError, TimeoutError, ValueError, aiohttp.ClientError) as error:
                # Refused, ended or silent: the daemon is gone until it answers again.
                self._must_be_allowed(error)
            except _StandsBy as error:
                why = str(error)
            if why != told:
                told = why
                yield Message("gone", {"sentence": why})
            await asyncio.sleep(RETRY_SECONDS)

    async def preview(self, order: Order) -> Mapping[str, Any]:
        """Return the leases that an order would concern, with dollars an hour now and after it.

        Raises:
            Refused: the order matches nothing, or no daemon answers.
        """
        return await self._asked("GET", "/preview", params=daemon_socket.query(order))

    async def give(self, order: Order) -> Mapping[str, Any]:
        """Give an order and return its result.

        Raises:
            Refused: the order matches nothing or may not be given. Or no daemon answers: it may have taken the order.
        """
        return await self._asked("POST", "/say", json=daemon_socket.body(order))

    async def _stream(self) -> AsyncGenerator[Message, None]:
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=None, sock_read=SILENCE_SECONDS)
        async with (
            self._link(timeout) as link,
            link.get("http://gpubid/api/v1/events") as answer,
        ):
            if answer.status == STANDS_BY:
                said = await answer.json()
                if said.get("error") == "standby":
                    raise _StandsBy(str(said["sentence"]))
            answer.raise_for_status()
            event, rest = "", b""
            async for chunk in answer.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    name, _, said = line.partition(b": ")
                    if name == b"event":
                        event = said.decode()
                    elif name == b"data":
                        yield Message(event, json.loads(said))

    async def _asked(self, method: str, route: str, **more: Any) -> Mapping[str, Any]:  # noqa: ANN401 - aiohttp's own
        said: Mapping[str, Any] | None = await daemon_socket.asked(self._socket, method, route, **more)
        if said is None:
            raise Refused(GONE)
        return said

    def _must_be_allowed(self, error: Exception) -> None:
        if isinstance(getattr(error, "os_error", error), PermissionError):
            raise Refused(daemon_socket.forbidden(self._socket)) from None

    def _link(self, timeout: "aiohttp.ClientTimeout") -> "aiohttp.ClientSession":
        import aiohttp

        return aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(self._socket)), timeout=timeout)


def of(place: "Config | DaemonPaths") -> FeedClient:
    """Return the client for the daemon of a configuration."""
    from agent.web import operator_socket

    return FeedClient(operator_socket.path_of(place.ledger, place.runtime))
