"""A call and a reply of the vendor's API as values, and the shapes of replies."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import msgspec

from agent.simulator.faults import Fault
from agent.simulator.field_lies import Vocabulary

VOCABULARY = Vocabulary(
    fields={
        "id": ("instances.id", "offers.id", "offers.ask_contract_id", "new_contract"),
        "label": ("instances.label",),
        "price": ("instances.dph_base", "instances.dph_total", "offers.dph_base", "offers.dph_total", "offers.min_bid"),
        "state": ("instances.actual_status",),
        "host": ("instances.machine_id", "offers.machine_id"),
    },
    lists=("instances", "offers", "results", "notifications"),
    cursor="next_token",
    marks=frozenset({"id", "new_contract"}),
)
"""The paths of the fields that field lies change."""

JSON = "application/json"  # exactly: the vendor's own program shows no offers if a charset follows
TEXT = "text/plain"

_encode = msgspec.json.Encoder().encode


@dataclasses.dataclass(slots=True)
class Call:
    """One request, taken apart. `route` is its path without /api/vN and final slash, numbers as {id}."""

    method: str
    route: str
    version: int
    numbers: tuple[int, ...]
    query: Mapping[str, str]
    body: Any  # decoded JSON; None without one
    is_body_broken: bool
    key: str | None
    peer: str
    base_url: str
    now: float
    number: int  # serial number of this call since the start
    struck: Mapping[str, Fault]

    @property
    def id(self) -> int:
        """Return the number in its path."""
        return self.numbers[0]

    @property
    def fields(self) -> dict[str, Any]:
        """Return its JSON object, an empty one for anything else."""
        return self.body if isinstance(self.body, dict) else {}


@dataclasses.dataclass(slots=True)
class Reply:
    """One answer. `headers` are besides Content-Type and Date."""

    body: bytes
    status: int = 200
    content_type: str = JSON
    headers: Mapping[str, str] | None = None


DROPPED = Reply(b"", 0)
"""Stands for a connection that breaks without an answer."""


def ok(fields: Mapping[str, Any]) -> Reply:
    """Answer 200 with an object."""
    return Reply(_encode(fields))


def success(**fields: Any) -> Reply:  # noqa: ANN401 - JSON is any
    """Answer 200 with success and more."""
    return Reply(_encode({"success": True, **fields}))


def refuse(status: int, code: str | None, text: str, **fields: Any) -> Reply:  # noqa: ANN401 - JSON is any
    """Answer a refusal in the common shape. Status 200 makes it a soft refusal."""
    return Reply(_encode({"success": False, "error": code, "msg": text, **fields}), status)


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
