"""The content of a request, read from the wire alone: its place, its instance, its label."""

import dataclasses
import functools
import re
import urllib.parse
from typing import Any

import msgspec

from agent.markets.http_exchange import Request

PAYING = frozenset({"rent", "rebid", "resume"})
WRITES = PAYING | {"pause", "release"}

_VAST = (
    ("GET", re.compile(r"/api/v1/instances"), "listing"),
    ("GET", re.compile(r"/api/v0/instances/(\d+)"), "look"),
    ("PUT", re.compile(r"/api/v0/asks/(\d+)"), "rent"),
    ("PUT", re.compile(r"/api/v0/instances/bid_price/(\d+)"), "rebid"),
    ("PUT", re.compile(r"/api/v0/instances/request_logs/(\d+)"), "log"),
    ("PUT", re.compile(r"/api/v0/instances/(\d+)"), "state"),
    ("DELETE", re.compile(r"/api/v0/instances/(\d+)"), "release"),
    ("POST", re.compile(r"/api/v0/bundles"), "search"),
    ("GET", re.compile(r"/api/v0/users/current"), "account"),
    ("GET", re.compile(r"/api/v0/(?:notifications/inbox|instances/pending-price-increases)"), "inbox"),
)
_RUNPOD = (
    ("GET", re.compile(r"/v2/pods"), "listing"),
    ("GET", re.compile(r"/v2/pods/([^/]+)"), "look"),
    ("GET", re.compile(r"/v2/pods/([^/]+)/logs"), "log"),
    ("POST", re.compile(r"/v2/pods"), "rent"),
    ("POST", re.compile(r"/v2/pods/([^/]+)/action"), "action"),
    ("DELETE", re.compile(r"/v2/pods/([^/]+)"), "release"),
    ("GET", re.compile(r"/v2/catalog/.*"), "search"),
    ("POST", re.compile(r"/graphql"), "graph"),
)
_MITHRIL = (
    ("GET", re.compile(r"/v2/spot/bids"), "listing"),
    ("GET", re.compile(r"/v2/instances"), "machines"),
    ("POST", re.compile(r"/v2/spot/bids"), "rent"),
    ("GET", re.compile(r"/v2/spot/bids/([^/]+)"), "look"),
    ("PATCH", re.compile(r"/v2/spot/bids/([^/]+)"), "change"),
    ("DELETE", re.compile(r"/v2/spot/bids/([^/]+)"), "release"),
    ("GET", re.compile(r"/v2/spot/bids/([^/]+)/history"), "inbox"),
    ("GET", re.compile(r"/v2/instances/pricing/history"), "paid"),
    ("GET", re.compile(r"/v2/instances/status/history"), "notice"),
    ("GET", re.compile(r"/v2/(?:instance-types|spot/availability|pricing/current)"), "search"),
    ("GET", re.compile(r"/v2/(?:me|projects)"), "account"),
)
_DSTACK = (
    ("POST", re.compile(r"/api/runs/list"), "listing"),
    ("POST", re.compile(r"/api/instances/list"), "machines"),
    ("POST", re.compile(r"/api/events/list"), "inbox"),
    ("POST", re.compile(r"/api/projects/main/get"), "project"),
    ("POST", re.compile(r"/api/project/main/runs/get"), "look"),
    ("POST", re.compile(r"/api/project/main/runs/apply"), "submit"),
    ("POST", re.compile(r"/api/project/main/runs/(?:stop|delete)"), "end"),
    ("POST", re.compile(r"/api/project/main/(?:runs/get_plan|fleets/get)"), "search"),
    ("POST", re.compile(r"/api/project/main/logs/poll"), "log"),
)
_ROUTES = {"vast": _VAST, "runpod": _RUNPOD, "mithril": _MITHRIL, "dstack": _DSTACK}
_NARROWED = {"name": "named", "bid_fid_in": "look"}
"""Questions of the query that make a listing one of one bid, and its place then."""
_ACTIONS = {"terminate": "release", "stop": "pause", "start": "resume"}


@dataclasses.dataclass(frozen=True, slots=True)
class Order:
    """A request as the market will read it. `kind` is one of `WRITES`, or empty for a question.

    The `target` is an id; at dstack's server it may be the name of a run.
    """

    market: str
    place: str
    kind: str = ""
    target: str = ""
    label: str = ""


def read(market: str, request: Request) -> Order:
    """Return the content of a request."""
    found = _found(market, request.method, request.url)
    return Order(market, "other") if found is None else _told(market, *found, request.body)


@functools.lru_cache(4096)
def _found(market: str, asked: str, url: str) -> tuple[str, str] | None:
    """Return the place and the target of a method and an address; None for one that is not of the market."""
    parts = urllib.parse.urlsplit(url)
    path = parts.path.rstrip("/")
    for method, pattern, place in _ROUTES[market]:
        match = pattern.fullmatch(path) if method == asked else None
        if match is not None:
            target = match.group(1) if match.groups() else ""
            return _narrowed(place, parts.query) if market == "mithril" else place, target
    return None


def _narrowed(place: str, query: str) -> str:
    """Return the place of a listing that is narrowed to one bid."""
    asked = urllib.parse.parse_qs(query) if place in {"listing", "machines"} else {}
    return next((narrow for name, narrow in _NARROWED.items() if name in asked), place)


def _told(market: str, place: str, target: str, body: bytes | None) -> Order:
    fields: dict[str, Any] = msgspec.json.decode(body) if body else {}
    if market == "dstack":
        return _run(place, fields)
    if place == "rent":
        return Order(market, "rent", "rent", target, str(fields.get("label") or fields.get("name") or ""))
    if place == "state":
        return Order(market, "state", "resume" if fields.get("state") == "running" else "pause", target)
    if place == "change":
        if "paused" not in fields:
            return Order(market, "rebid", "rebid", target)
        return Order(market, "state", "pause" if fields["paused"] else "resume", target)
    if place == "action":
        kind = _ACTIONS.get(str(fields.get("action")), "")
        return Order(market, "release" if kind == "release" else "state", kind, target)
    if place == "graph":
        return _graph(market, fields)
    return Order(market, place, place if place in WRITES else "", target)


def _run(place: str, fields: dict[str, Any]) -> Order:
    """Return what dstack's server is asked or told: every call of it is a POST with its target in the body."""
    if place == "submit":
        return Order("dstack", "rent", "rent", "", _tag(fields))
    if place == "end":
        return Order("dstack", "release", "release", str(fields["runs_names"][0]))
    return Order("dstack", place, "", str(fields.get("id", "")))


def _tag(fields: dict[str, Any]) -> str:
    """Return our label in the order of a run."""
    order = fields["plan"]["run_spec"]["configuration"]
    return str((order.get("tags") or {}).get("gpubid", ""))


def _graph(market: str, fields: dict[str, Any]) -> Order:
    query, asked = str(fields.get("query", "")), fields.get("variables", {}).get("input", {})
    if "podRentInterruptable(" in query:
        return Order(market, "rent", "rent", "", str(asked.get("name", "")))
    if "podBidResume(" in query:
        return Order(market, "rebid", "resume", str(asked.get("podId", "")))
    return Order(market, "search" if "gpuTypes" in query else "account")
