"""Asks the market to stop or to end this instance, by the key that the market gave to the container.

The daemon's settings have the market's own requests.

No message contains the key, nor any text of the market or of a library: either might repeat it.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading
from typing import Sequence
from urllib.parse import SplitResult, urlsplit

from agent.guard.guard_settings import DeadmanSettings, StopRequest

TIMEOUT_SECONDS, MOST_SECONDS = 30.0, 60.0
"""How long each step of the connection may take, and all of them."""
MOST_BYTES = 64 * 1024
_SUCCESSES = range(200, 300)


class MarketFailed(Exception):
    """The market did not take the request. The message is one sentence."""


def send(settings: DeadmanSettings, *, destroys: bool) -> None:
    """Ask once for a stop, or for the end of the instance and its disk; raise MarketFailed unless the market says yes.

    A redirect is no yes, and is not followed.
    """
    status, body = _answer(settings, settings.end if destroys else settings.stop)
    if status not in _SUCCESSES:
        raise MarketFailed(f"the market answered {status}")
    if _is_soft_refusal(body):
        raise MarketFailed(f"the market answered {status}, and refused in its text")


def _answer(settings: DeadmanSettings, request: StopRequest) -> tuple[int, bytes]:
    address = urlsplit(settings.api)
    headers = {
        "authorization": f"Bearer {settings.key}",
        "accept": "application/json",
        "content-type": "application/json",
        "user-agent": "gpubid-guard",
    }
    body = json.dumps(request.body).encode()
    connection = _connection(address)
    # The connection lets go of its socket when it has read the headers of a last answer.
    sockets: list[socket.socket] = []
    bound = threading.Timer(MOST_SECONDS, _cut, [sockets])
    bound.daemon = True
    bound.start()
    try:
        connection.connect()
        sockets.append(connection.sock)
        connection.request(request.method, address.path + request.path, body, headers)
        response = connection.getresponse()
        return response.status, response.read(MOST_BYTES)
    except Exception as failure:  # noqa: BLE001 - whatever it is may have the key in its words
        raise MarketFailed(f"the market does not answer ({type(failure).__name__})") from None
    finally:
        bound.cancel()
        connection.close()


def _connection(address: SplitResult) -> http.client.HTTPConnection:
    host = address.hostname or ""
    if address.scheme != "https":
        return http.client.HTTPConnection(host, address.port, timeout=TIMEOUT_SECONDS)
    context = ssl.create_default_context()
    return http.client.HTTPSConnection(host, address.port, timeout=TIMEOUT_SECONDS, context=context)


def _cut(sockets: Sequence[socket.socket]) -> None:
    """Close the sockets, so that nothing waits for a next byte."""
    for each in sockets:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def _is_soft_refusal(body: bytes) -> bool:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(answer, dict) and answer.get("success") is False
