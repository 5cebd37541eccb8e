"""The market's status of a pod -> our one state.

Invariants:
1. A word that is not in the table is UNKNOWN, which is ignorance.
2. A pod that runs without reporting anything is not running yet: its image is being pulled, or its host is silent.
"""

from agent.domain.market.instance import InstanceState

BROKEN = "ERROR"

_TABLE = {
    "PROVISIONING": InstanceState.PENDING,
    "STARTING": InstanceState.LOADING,
    "RUNNING": InstanceState.RUNNING,
    "EXITED": InstanceState.PAUSED,
    BROKEN: InstanceState.FAILED,
}
GONE = "TERMINATED"
"""A pod that was ended; it soon leaves the listing and costs nothing."""


NO_COST = frozenset({"EXITED", GONE})
"""The statuses whose cost is 0 (OpenAPI document of REST v2)."""


def state(status: str, *, has_runtime: bool) -> InstanceState:
    """Return the state of a pod."""
    found = _TABLE.get(status, InstanceState.UNKNOWN)
    if found is InstanceState.RUNNING and not has_runtime:
        return InstanceState.LOADING
    return found


def is_wanted_running(status: str) -> bool:
    """Return whether a pod runs or will run soon."""
    return status in {"PROVISIONING", "STARTING", "RUNNING"}


def is_stopped(status: str) -> bool:
    """Return whether a pod has given its GPUs back."""
    return _TABLE.get(status) is InstanceState.PAUSED
