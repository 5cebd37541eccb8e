"""REST v2: the endpoint of each route."""

import re
from collections.abc import Callable

from agent.simulator.api_calls import Reply
from agent.simulator.runpod.http import calls, rest_billing, rest_catalogue, rest_pods, rest_volumes
from agent.simulator.runpod.http.calls import Call
from agent.simulator.runpod.http.surface import Surface
from agent.simulator.runpod.model import Refused

# The logs endpoint is a stream and lives in api.py.
ROUTES: tuple[tuple[str, re.Pattern[str], Callable[..., Reply]], ...] = tuple(
    (method, re.compile(pattern), endpoint)
    for method, pattern, endpoint in (
        ("GET", r"/v2/pods", rest_pods.show_all),
        ("POST", r"/v2/pods", rest_pods.create),
        ("GET", r"/v2/pods/([^/]+)", rest_pods.show_one),
        ("PATCH", r"/v2/pods/([^/]+)", rest_pods.change),
        ("DELETE", r"/v2/pods/([^/]+)", rest_pods.remove),
        ("POST", r"/v2/pods/([^/]+)/action", rest_pods.act),
        ("GET", r"/v2/catalog/gpus", rest_catalogue.show_gpus),
        ("GET", r"/v2/catalog/gpus/([^/]+)", rest_catalogue.show_gpu),
        ("GET", r"/v2/catalog/cpus", rest_catalogue.show_cpus),
        ("GET", r"/v2/catalog/datacenters", rest_catalogue.show_centers),
        ("GET", r"/v2/catalog/datacenters/([^/]+)", rest_catalogue.show_center),
        ("GET", r"/v2/network-volumes", rest_volumes.show_volumes),
        ("POST", r"/v2/network-volumes", rest_volumes.create_volume),
        ("GET", r"/v2/network-volumes/([^/]+)", rest_volumes.show_volume),
        ("PATCH", r"/v2/network-volumes/([^/]+)", rest_volumes.change_volume),
        ("DELETE", r"/v2/network-volumes/([^/]+)", rest_volumes.delete_volume),
        ("GET", r"/v2/billing/network-volumes", rest_volumes.show_bill),
        ("GET", r"/v2/billing", rest_billing.show_all),
        ("GET", r"/v2/billing/pods", rest_billing.show_pods),
    )
)
_STATUSES = {Refused.NO_SUCH_POD: 404, Refused.WRONG_STATE: 409, Refused.NOT_EXITED: 409}


def answer(surface: Surface, call: Call) -> Reply:
    """Answer a call whose key is known."""
    allowed = []
    for method, pattern, endpoint in ROUTES:
        match = pattern.fullmatch(call.path)
        if match is None:
            continue
        allowed.append(method)
        if method == call.method:
            if call.is_body_broken:
                return calls.problem(400, "The request body is not valid JSON.")
            return _endpoint(surface, call, endpoint, match.groups())
    if not allowed:
        return calls.problem(404, f"There is no {call.path} here.")
    reply = calls.problem(405, f"{call.method} is not supported here.")
    reply.headers = {"Allow": ", ".join(sorted(set(allowed)))}
    return reply


def _endpoint(surface: Surface, call: Call, endpoint: Callable[..., Reply], parts: tuple[str, ...]) -> Reply:
    try:
        return endpoint(surface, call, *parts)
    except Refused as refused:
        return calls.problem(_STATUSES.get(refused.code, 400), refused.sentence)
