"""A reply of a vendor's API as a value, and what faults make of it."""

import dataclasses
from collections.abc import Mapping

from agent.simulator.faults import Fault

JSON = "application/json"  # exactly: the vendor's own program shows no offers if a charset follows
TEXT = "text/plain"


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
