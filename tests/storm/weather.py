"""What blows in a storm: transport faults and lies about single fields, drawn by a seed and short-lived."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

Fields = Mapping[str, Any]
FAULTS: Sequence[tuple[str, Fields]] = (
    ("reset", {"when": "after"}),
    ("reset", {"when": "before"}),
    ("server_error_after", {}),
    ("server_error_before", {}),
    ("slow", {"delay": 20}),
    ("truncated", {}),
    ("malformed", {}),
    ("html_403", {}),
    ("throttle_json", {}),
    ("throttle_retry_after", {"retry_after": 31_536_000}),
    ("throttle_retry_after", {"retry_after": "inf"}),
    ("empty_list", {}),
    ("partial_list", {}),
    ("stale_list", {}),
    ("unknown_status", {}),
)
LIES: Sequence[Fields] = (
    {"field": "label", "how": "set", "value": "a person's"},
    {"field": "label", "how": "missing"},
    {"field": "price", "how": "times", "value": 1000},
    {"field": "price", "how": "times", "value": 0.1},
    {"field": "price", "how": "nan"},
    {"field": "price", "how": "string"},
    {"field": "price", "how": "missing"},
    {"field": "state", "how": "set", "value": "bogus"},
    {"field": "state", "how": "null"},
    {"field": "host", "how": "set", "value": 777},
    {"field": "id", "how": "string"},
    {"field": "id", "how": "missing"},
    {"field": "date", "how": "plus", "value": 3600},
    {"field": "date", "how": "missing"},
    {"field": "next_cursor", "how": "set", "value": "more"},
    {"field": "rows", "how": "twice"},
    {"field": "rows", "how": "twice_changed"},
)
RUN = "POST /api/project/main/runs/apply"
RENT = {"vast": "PUT /asks", "runpod": "POST /v2/pods", "mithril": "POST /v2/spot/bids", "dstack": RUN}
"""The routes by which something is rented; a wrong id in their reply is the worst lie of all."""


def faults(market: str, draw: random.Random) -> dict[str, Any]:
    """Draw one transport fault."""
    name, more = draw.choice(FAULTS)
    return _declared(market, draw, {"fault": name, **more})


def lie(market: str, draw: random.Random, foreign: str) -> dict[str, Any]:
    """Draw one lie about a field; one in four puts the id of a foreign instance into the reply to a rent."""
    if draw.random() < 0.25:
        value: int | str = int(foreign) if foreign.isdecimal() else foreign
        told = {"fault": "field_lie", "field": "id", "how": "set", "value": value, "route": RENT[market], "count": 1}
        return {**told, "market": market, "seconds": 900}
    if draw.random() < 0.1:
        return {"fault": "label_edit", "market": market, "seconds": draw.randint(20, 120)}
    return _declared(market, draw, {"fault": "field_lie", **draw.choice(LIES)})


def _declared(market: str, draw: random.Random, fields: Fields) -> dict[str, Any]:
    span = {"seconds": draw.randint(15, 120), "probability": draw.choice((0.3, 0.6, 1.0))}
    return {**fields, "market": market, **span}
