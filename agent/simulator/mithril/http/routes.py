"""The routes of this market: which function answers which method and path."""

import re
from collections.abc import Callable

from agent.simulator.api_calls import Reply
from agent.simulator.mithril.http import account, bids, disks, instances, offers, shell_keys
from agent.simulator.mithril.http.calls import Call
from agent.simulator.mithril.http.surface import Surface
from agent.simulator.mithril.model import Refused

_ID = r"([A-Za-z0-9_-]+)"
ROUTES: tuple[tuple[str, str, Callable[..., Reply]], ...] = (
    ("GET", "/v2/me", account.me),
    ("GET", "/v2/projects", account.projects),
    ("GET", "/v2/quotas", account.quotas),
    ("GET", "/v2/reservation", account.reservations),
    ("GET", "/v2/instance-types", offers.types),
    ("GET", "/v2/cpu/instance-types", offers.processor_types),
    ("GET", "/v2/spot/availability", offers.availability),
    ("GET", "/v2/pricing/current", offers.current),
    ("GET", "/v2/pricing/history", offers.history),
    ("GET", "/v2/spot/bids", bids.listed),
    ("POST", "/v2/spot/bids", bids.place),
    ("GET", "/v2/spot/bids/{}", bids.show),
    ("PATCH", "/v2/spot/bids/{}", bids.change),
    ("DELETE", "/v2/spot/bids/{}", bids.end),
    ("GET", "/v2/spot/bids/{}/status", bids.status),
    ("GET", "/v2/spot/bids/{}/history", bids.history),
    ("GET", "/v2/volumes", disks.listed),
    ("POST", "/v2/volumes", disks.make),
    ("PATCH", "/v2/volumes/{}", disks.rename),
    ("DELETE", "/v2/volumes/{}", disks.delete),
    ("GET", "/v2/ssh-keys", shell_keys.listed),
    ("POST", "/v2/ssh-keys", shell_keys.make),
    ("PATCH", "/v2/ssh-keys/{}", shell_keys.change),
    ("DELETE", "/v2/ssh-keys/{}", shell_keys.delete),
    ("GET", "/v2/instances", instances.listed),
    ("PATCH", "/v2/instances", instances.change),
    ("GET", "/v2/instances/status/history", instances.statuses),
    ("GET", "/v2/instances/pricing/history", instances.prices),
    ("GET", "/v2/instances/{}/status", instances.status),
    ("POST", "/v2/instances/{}/restart", instances.restart),
)
_COMPILED = tuple((method, re.compile(path.replace("{}", _ID)), answer) for method, path, answer in ROUTES)


def answer(surface: Surface, call: Call) -> Reply:
    """Answer a call, or raise Refused."""
    is_path_known = False
    for method, pattern, answering in _COMPILED:
        match = pattern.fullmatch(call.path)
        if match is None:
            continue
        if method == call.method:
            return answering(surface, call, *match.groups())
        is_path_known = True
    raise Refused(405, "Method Not Allowed") if is_path_known else Refused(404, "Not Found")
