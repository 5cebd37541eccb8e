"""The OpenAPI document of the feed, made from the read model. Programs may rely on it."""

from typing import Any

import msgspec

from agent import __version__
from agent.web.feed import read_model

FLEET_PATH = "/api/v1/fleet"
EVENTS_PATH = "/api/v1/events"
DOCUMENT_PATH = "/api/v1/openapi.json"
SHAPES = (read_model.Fleet, read_model.Beat, read_model.Refusal)
REFERENCE = "#/components/schemas/{name}"


def document() -> dict[str, Any]:
    """Return the OpenAPI 3.1 document."""
    _, schemas = msgspec.json.schema_components(SHAPES, ref_template=REFERENCE)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "gpubid feed",
            "version": "1",
            "description": f"The fleet of a gpubid {__version__} daemon, read only. Money is in dollars, times in UTC.",
        },
        "paths": {
            FLEET_PATH: {"get": _get("fleet", "The fleet now", {"application/json": _schema("Fleet")})},
            EVENTS_PATH: {
                "get": _get(
                    "events",
                    "The fleet after each change, and once a minute, as server-sent events: `fleet` has a Fleet as its "
                    "data; `beat` has a Beat. A message comes at least every ten seconds, first a Fleet. Before a "
                    "stream ends for another one, `refused` has a Refusal.",
                    {"text/event-stream": {"schema": {"type": "string"}}},
                )
            },
            DOCUMENT_PATH: {
                "get": _get("openapi", "This document", {"application/json": {"schema": {"type": "object"}}})
            },
        },
        "components": {"schemas": schemas},
    }


def _get(name: str, summary: str, content: dict[str, Any]) -> dict[str, Any]:
    refused = {"application/json": _schema("Refusal")}
    return {
        "operationId": name,
        "summary": summary,
        "responses": {
            "200": {"description": summary, "content": content},
            "421": {"description": "the request uses a host name that is not the daemon's; see `names` in [web]"},
            "503": {"description": "the ledger cannot be read", "content": refused},
        },
    }


def _schema(name: str) -> dict[str, Any]:
    return {"schema": {"$ref": REFERENCE.format(name=name)}}
