"""The rights of a pod's own key, which the market puts into the pod's container for that pod alone.

Others report that it may show, start, stop and end its own pod, and that `myself` refuses it. Assumed are that it may
do nothing else, and the codes of the refusals over REST.
"""

import re

from agent.simulator.runpod.http.calls import Call
from agent.simulator.runpod.http.surface import Surface

_POD = re.compile(r"/v[12]/pods/([^/]+)(?:/(action|start|stop))?")
_VERBS = frozenset({("GET", None), ("DELETE", None), ("POST", "action"), ("POST", "start"), ("POST", "stop")})
_ACTIONS = frozenset({"start", "stop", "terminate"})
_GRAPHQL = "/graphql"


def owner(surface: Surface, key: str | None) -> str | None:
    """Return the id of the pod with this key; None for the key of the account or of an ended pod, or an unknown key."""
    if key is None or key == surface.key:
        return None
    return next((pod.pod_id for pod in surface.world.live_contracts() if surface.pod_key(pod.pod_id) == key), None)


def allows(call: Call, pod_id: str) -> bool:
    """Return whether a pod's key allows a call. Over GraphQL each field decides (graphql_pods.py)."""
    if call.path == _GRAPHQL:
        return True
    match = _POD.fullmatch(call.path)
    if match is None or match[1] != pod_id or (call.method, match[2]) not in _VERBS:
        return False
    return match[2] != "action" or call.fields.get("action") in _ACTIONS
