"""A call of this market's surfaces and the shapes of its answers."""

import dataclasses
import datetime as dt
from typing import Any

import msgspec

from agent.simulator import api_calls
from agent.simulator.api_calls import JSON, Reply
from agent.simulator.field_lies import Vocabulary

_BIDS = "data.podRentInterruptable", "data.podBidResume", "data.podFindAndDeployOnDemand"
VOCABULARY = Vocabulary(
    fields={
        "id": ("pods.id", "id", "data.pod.id", "data.myself.pods.id", *(f"{place}.id" for place in _BIDS)),
        "label": ("pods.name", "name", "data.pod.name", "data.myself.pods.name"),
        "price": (
            *("pods.cost", "cost", "gpus.price.secure", "gpus.price.community"),
            *("price.secure", "price.community", "data.**.costPerHr", "data.**.adjustedCostPerHr"),
            *("data.**.minimumBidPrice", "data.**.uninterruptablePrice"),
        ),
        "state": ("pods.status", "status", "data.**.desiredStatus"),
        "host": ("pods.dataCenterId", "dataCenterId", "gpus.dataCenters.id", "data.**.machineId"),
    },
    lists=("pods", "gpus", "records", "data.myself.pods", "data.gpuTypes"),
    cursor="nextCursor",
    marks=frozenset({"id", "podId"}),
)
"""The paths of the fields that field lies change."""

PROBLEM = "application/problem+json"
_TITLES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    410: "Gone",
    422: "Unprocessable Entity",
    429: "Too Many Requests",
}


@dataclasses.dataclass(slots=True)
class Call(api_calls.Call):
    """One request."""

    @property
    def fields(self) -> dict[str, Any]:
        """Return its JSON object, an empty one for anything else."""
        return self.body if isinstance(self.body, dict) else {}


def answer(fields: object, status: int = 200) -> Reply:
    """Answer JSON."""
    return Reply(msgspec.json.encode(fields), status, JSON)


def nothing() -> Reply:
    """Answer 204."""
    return Reply(b"", 204)


def problem(status: int, detail: str, *errors: str) -> Reply:
    """Answer a problem of REST v2."""
    fields: dict[str, Any] = {"title": _TITLES.get(status, "Error"), "status": status, "detail": detail}
    if errors:
        fields["errors"] = list(errors)
    return Reply(msgspec.json.encode(fields), status, PROBLEM)


def stamp(at: float) -> str:
    """Return an instant as REST v2 writes it."""
    return dt.datetime.fromtimestamp(at, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def instant(text: str) -> float:
    """Read such an instant. Raises ValueError."""
    read = dt.datetime.fromisoformat(text)
    return (read if read.tzinfo is not None else read.replace(tzinfo=dt.UTC)).timestamp()
