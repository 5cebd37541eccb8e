"""Hosts that report nothing of a pod that has run: for a while it runs on, then its host is silent."""

from collections.abc import Collection

import msgspec

from agent.domain.market.instance import Instance, InstanceState
from agent.markets.runpod import parse

SILENCE_SECONDS = 180.0
"""The market asks a host for its report with a timeout of about two seconds, so a few missing ones say nothing."""
_RUNNING = "RUNNING"


class Silence:
    """When each pod of an account was last reported, and which ones have run."""

    def __init__(self) -> None:
        self._heard_at: dict[str, float] = {}
        self._has_run: set[str] = set()

    def has_run(self, pod_id: str) -> bool:
        """Return whether a pod has reported anything so far."""
        return pod_id in self._has_run

    def keep(self, ids: Collection[str]) -> None:
        """Forget the pods that do not exist any more."""
        self._has_run.intersection_update(ids)
        self._heard_at = {pod_id: at for pod_id, at in self._heard_at.items() if pod_id in ids}

    def heard(self, row: parse.PodRow, instance: Instance, now: float) -> Instance:
        """Return an instance that its host reports, has not reported for a while, or not any more."""
        if instance.state is InstanceState.RUNNING:
            self._heard_at[row.id] = now
            self._has_run.add(row.id)
        elif instance.state is InstanceState.LOADING and row.status == _RUNNING and row.id in self._heard_at:
            is_late = now - self._heard_at[row.id] < SILENCE_SECONDS
            state = InstanceState.RUNNING if is_late else InstanceState.OFFLINE
            return msgspec.structs.replace(instance, state=state)
        elif row.status != _RUNNING:
            self._heard_at.pop(row.id, None)
        return instance
