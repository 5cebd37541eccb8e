"""A call of this market's API as a value, and the shapes of its replies."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import msgspec

from agent.simulator.api_calls import Reply
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


def ok(fields: Mapping[str, Any]) -> Reply:
    """Answer 200 with an object."""
    return Reply(_encode(fields))


def success(**fields: Any) -> Reply:  # noqa: ANN401 - JSON is any
    """Answer 200 with success and more."""
    return Reply(_encode({"success": True, **fields}))


def refuse(status: int, code: str | None, text: str, **fields: Any) -> Reply:  # noqa: ANN401 - JSON is any
    """Answer a refusal in the common shape. Status 200 makes it a soft refusal."""
    return Reply(_encode({"success": False, "error": code, "msg": text, **fields}), status)
