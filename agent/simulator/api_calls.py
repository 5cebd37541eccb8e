"""A call and a reply of a vendor's API as values, and their changes by faults and field lies."""

import dataclasses
import email.utils
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from agent.simulator import http_wire
from agent.simulator.faults import Fault
from agent.simulator.field_lies import Vocabulary
from agent.simulator.http_wire import Answer, Asked, Cut
from agent.simulator.weather import Weather

JSON = "application/json"  # exactly: the vendor's own program shows no offers if a charset follows
TEXT = "text/plain"


@dataclasses.dataclass(slots=True)
class Call:
    """One request, and the faults that strike it."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any  # decoded JSON; None without one
    is_body_broken: bool
    key: str | None
    now: float
    struck: Mapping[str, Fault]

    @classmethod
    def of(cls, asked: Asked, path: str, now: float, struck: Mapping[str, Fault]) -> Self:
        """Return the call of a request at an instant of the market."""
        body, is_broken = http_wire.decoded(asked.body)
        return cls(asked.method, path, asked.query, asked.headers, body, is_broken, asked.key, now, struck)


class Place(NamedTuple):
    """Where a call went: its route has {id} in the place of numbers."""

    method: str
    route: str
    path: str


@dataclasses.dataclass(slots=True)
class Reply:
    """One answer. `headers` are besides Content-Type and Date."""

    body: bytes
    status: int = 200
    content_type: str = JSON
    headers: Mapping[str, str] | None = None


DROPPED = Reply(b"", 0)
"""Stands for a connection that breaks without an answer."""


def plain(status: int, text: str) -> Reply:
    """Answer text that is not JSON."""
    return Reply(text.encode(), status, TEXT)


def server_error(fault: Fault) -> Reply:
    """Answer the page of a proxy whose server fails."""
    status = int(fault.number("status", 503.0))
    page = f"<html><body><h1>{status} Service Temporarily Unavailable</h1></body></html>"
    return Reply(page.encode(), status, "text/html")


def dropped_before(struck: Mapping[str, Fault]) -> Reply | None:
    """Return the lost answer to a call whose connection breaks before it is applied, or None."""
    reset = struck.get("reset")
    return DROPPED if reset is not None and reset.extra.get("when") == "before" else None


def after(struck: Mapping[str, Fault], reply: Reply) -> Reply:
    """Return the answer to a call that was applied."""
    if not struck:
        return reply
    if "reset" in struck:
        return DROPPED
    if (fault := struck.get("server_error_after")) is not None:
        return server_error(fault)
    if "malformed" in struck:
        return Reply(b'{"data": tru' + reply.body[: len(reply.body) // 2], reply.status, reply.content_type)
    return reply


def dressed(
    reply: Reply, place: Place, struck: Mapping[str, Fault], weather: Weather, words: Vocabulary, time: float
) -> Answer:
    """Return the final answer: its headers with the clock's Date, and the active field lies."""
    if reply is DROPPED:
        return http_wire.DROPPED
    skew = struck.get("clock_skew")
    at = int(time + (skew.number("skew", 120.0) if skew is not None else 0.0))
    honest = {"Date": _http_date(at), **(reply.headers or {})}
    if reply.status != 204:  # noqa: PLR2004 - no content, no type of it
        honest["Content-Type"] = reply.content_type
    headers, body = weather.falsified(*place, honest, reply.body, words)
    is_half = "truncated" in struck and len(body) > 1
    return Answer(reply.status, headers, body, Cut.HALF if is_half else Cut.WHOLE)


@functools.lru_cache(8)
def _http_date(second: int) -> str:
    return email.utils.formatdate(second, usegmt=True)
