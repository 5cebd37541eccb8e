"""A pod of which two fields, or the market's two surfaces, say different things: the wrong one changes nothing.

Invariants:
1. A cost contradicts EXITED and TERMINATED, and a report of the host contradicts ERROR: by the OpenAPI document of
   REST v2 the cost is 0 then, and only a running pod has a report. The status is unknown until GraphQL also shows no
   running pod. If GraphQL does not show the pod, it is unknown for `PATIENCE_SECONDS`.
2. A cost of 0 and GraphQL's EXITED together contradict any status of a pod that would run, and one that is no status.
3. A cost, a report of the host on both surfaces and GraphQL's RUNNING together contradict any other status: it runs.
4. A cost, a number of GPUs or the size of a disk that both surfaces once showed alike, or one of them as ordered, is
   unread while they differ. Otherwise it is unread for `LAG_SECONDS`: a fresh pod is not on other terms than ordered
   because of one wrong answer. The higher cost counts
   once they have differed for `LONG_SECONDS`, unless it is more than `MOST_RISE` times the other: caps count the safe
   side, and a cost of a thousand times would end what somebody uses.
5. A host is silent only if both surfaces show no report of it.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass

import msgspec

from agent.markets.runpod import figures, history, parse, states

PATIENCE_SECONDS = 900.0
"""How long a contradicted status must be listed, since markets have shown wrong fields for ten minutes."""
LONG_SECONDS = 7200.0
"""How long costs may differ before the higher one counts. Nothing is lost meanwhile: a rise is owed from the last look
that showed the agreed cost."""
LAG_SECONDS = 120.0
"""How long two surfaces may differ about a fresh pod. Assumed."""
MOST_RISE = 3.0
"""A cost may rise by this factor on one surface alone."""
TOLERANCE = history.SAME_RATE
_RUNNING, _STOPPED = "RUNNING", "EXITED"
_PLACED = frozenset({"PROVISIONING", "STARTING", _RUNNING})
_NO_STATUS = ""


@dataclass(frozen=True, slots=True)
class Told:
    """A pod as both surfaces show it, without what they contradict each other in."""

    row: parse.PodRow
    pod: history.Pod | None


class Contradictions:
    """The contradictions of the pods of an account, and the figures in which its surfaces agreed."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._agreed: set[tuple[str, str]] = set()
        self._apart_since: dict[tuple[str, str], float] = {}
        self._ordered: dict[tuple[str, str], float] = {}

    def ordered(self, pod_id: str, cost: float | None, gpus: int, disk_gb: float) -> None:
        """Note the terms of a rent: its dollars per hour, GPUs and gigabytes."""
        disk, volume = math.ceil(disk_gb), max(math.ceil(disk_gb), figures.LEAST_VOLUME_GB)
        terms = {"cost": cost, "gpus": float(gpus), "disk": float(disk), "volume": float(volume)}
        self._ordered |= {(pod_id, name): term for name, term in terms.items() if term is not None}

    def settled(self, row: parse.PodRow, pod: history.Pod | None, now: float) -> Told:
        """Return a pod without its contradictions; `now` is monotonic, in seconds."""
        row = _with_report(row, pod)
        if _is_stopped(row, pod):
            row = msgspec.structs.replace(row, status=_STOPPED)
        elif _is_running(row, pod):
            row = msgspec.structs.replace(row, status=_RUNNING)
        elif self._is_end_doubted(row, pod, now):
            row = msgspec.structs.replace(row, status=_NO_STATUS)
        return self._without_false_figures(row, pod, now)

    def keep(self, ids: Collection[str]) -> None:
        """Forget the pods that do not exist any more."""
        self._since = {pod_id: at for pod_id, at in self._since.items() if pod_id in ids}
        self._ordered = {key: term for key, term in self._ordered.items() if key[0] in ids}
        self._agreed = {(pod_id, name) for pod_id, name in self._agreed if pod_id in ids}
        self._apart_since = {key: at for key, at in self._apart_since.items() if key[0] in ids}

    def _is_end_doubted(self, row: parse.PodRow, pod: history.Pod | None, now: float) -> bool:
        if not _is_contradicted(row):
            self._since.pop(row.id, None)
            return False
        if pod is not None and pod.desiredStatus is not None:
            return pod.desiredStatus == _RUNNING
        return now - self._since.setdefault(row.id, now) < PATIENCE_SECONDS

    def _without_false_figures(self, row: parse.PodRow, pod: history.Pod | None, now: float) -> Told:
        if pod is None or row.status not in {*_PLACED, _STOPPED}:
            return Told(row, pod)
        if pod.desiredStatus not in {_STOPPED if row.status == _STOPPED else _RUNNING, None}:
            return Told(row, pod)
        volume = row.mounts.persistent.size if row.mounts is not None and row.mounts.persistent is not None else None
        count = row.gpu.count if row.gpu is not None else None
        if self._is_false(row.id, "gpus", count, pod.gpuCount, now):
            row = msgspec.structs.replace(row, gpu=None)
        if self._is_false(row.id, "disk", row.disk, pod.containerDiskInGb, now):
            row = msgspec.structs.replace(row, disk=None)
        if self._is_false(row.id, "volume", volume, pod.volumeInGb, now):
            row = msgspec.structs.replace(row, mounts=None)
        # A pod that has not started may show no cost yet, and GraphQL goes on showing one of a stopped pod.
        costs = row.cost if row.status == _RUNNING else row.cost or None, pod.costPerHr
        if row.status != _STOPPED and self._is_false(row.id, "cost", *costs, now):
            believed = self._believed_cost(row.id, costs, now)
            row, pod = msgspec.structs.replace(row, cost=believed), msgspec.structs.replace(pod, costPerHr=believed)
        return Told(row, pod)

    def _believed_cost(self, pod_id: str, costs: tuple[float | None, float | None], now: float) -> float | None:
        """Return the higher of two costs that have differed for long; None while neither counts."""
        low, high = sorted(cost or 0.0 for cost in costs)
        is_long = now - self._apart_since.get((pod_id, "cost"), now) >= LONG_SECONDS
        return high if is_long and high <= MOST_RISE * low else None

    def _is_false(self, pod_id: str, name: str, here: float | None, there: float | None, now: float) -> bool:
        if here is None or there is None:
            return False
        ordered = self._ordered.get((pod_id, name))
        if _is_same(here, there):
            self._agreed.add((pod_id, name))
            self._apart_since.pop((pod_id, name), None)
            return False
        if ordered is not None and (_is_same(here, ordered) or _is_same(there, ordered)):
            self._agreed.add((pod_id, name))
        since = self._apart_since.setdefault((pod_id, name), now)
        return (pod_id, name) in self._agreed or now - since < LAG_SECONDS


def _is_same(one: float, other: float) -> bool:
    return abs(one - other) <= TOLERANCE * max(abs(one), abs(other))


def _is_stopped(row: parse.PodRow, pod: history.Pod | None) -> bool:
    """Return whether a cost and GraphQL agree that a pod is stopped, which no status of an end is."""
    is_end = row.status == states.BROKEN or row.status in states.NO_COST
    return not is_end and row.cost == 0 and pod is not None and pod.desiredStatus == _STOPPED


def _is_running(row: parse.PodRow, pod: history.Pod | None) -> bool:
    """Return whether a cost and both surfaces' reports show that a pod runs: a pod that starts has no report yet."""
    if pod is None or pod.desiredStatus != _RUNNING or pod.uptime is None:
        return False
    return bool(row.cost and row.cost > 0) and row.runtime is not None and row.runtime.uptime is not None


def _is_contradicted(row: parse.PodRow) -> bool:
    if row.status in states.NO_COST:
        return row.cost is not None and row.cost > 0
    return row.status == states.BROKEN and row.runtime is not None and row.runtime.uptime is not None


def _with_report(row: parse.PodRow, pod: history.Pod | None) -> parse.PodRow:
    """Return a running pod with the report of its host that GraphQL shows, if the listing shows none."""
    is_silent = row.status == _RUNNING and (row.runtime is None or row.runtime.uptime is None)
    if not is_silent or pod is None or pod.desiredStatus != _RUNNING or pod.uptime is None:
        return row
    runtime = row.runtime or parse.Runtime()
    return msgspec.structs.replace(row, runtime=msgspec.structs.replace(runtime, uptime=pod.uptime))
