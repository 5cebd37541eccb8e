"""Charges over REST v2: per pod and in total, in buckets of UTC time."""

import datetime as dt
from typing import Any

from agent.simulator.api_calls import Reply
from agent.simulator.market_model import Charge
from agent.simulator.runpod.http import calls
from agent.simulator.runpod.http.calls import Call
from agent.simulator.runpod.http.surface import Surface
from agent.simulator.runpod.models import CPU

SIZES = ("hour", "day", "week", "month", "year")
_DEFAULT_DAYS = 30
_AMOUNTS = (
    *("podGpuAmount", "podCpuAmount", "podDiskAmount", "serverlessGpuAmount", "serverlessCpuAmount"),
    *("serverlessDiskAmount", "serverlessFeeAmount", "storageStandardAmount", "storageHighPerformanceAmount"),
    *("endpointAmount", "clusterGpuAmount", "clusterDiskAmount", "clusterNetworkingAmount"),
)


def show_pods(surface: Surface, call: Call) -> Reply:
    """Show the cost of each pod per bucket."""
    try:
        since, until, size = window(call)
    except ValueError as error:
        return calls.problem(400, str(error))
    wanted = call.query.get("podId")
    sums: dict[tuple[float, str], list[float]] = {}
    for charge in surface.world.charges(since, until - 1.0):
        pod_id, start = _pod_id(surface, charge), bucket(charge.day, size)
        if wanted in (None, pod_id) and since <= start < until:
            amounts = sums.setdefault((start, pod_id), [0.0, 0.0, 0.0])
            amounts[_column(surface, charge, pod_id)] += charge.amount
    records = [
        {
            "startTime": calls.stamp(start),
            "endTime": calls.stamp(bucket_end(start, size)),
            "podId": pod_id,
            **_sum(amounts),
        }
        for (start, pod_id), amounts in sorted(sums.items())
    ]
    query = {"startTime": calls.stamp(since), "endTime": calls.stamp(until), "bucketSize": size, "podId": wanted}
    totals = _sum([sum(column) for column in zip([0.0, 0.0, 0.0], *sums.values(), strict=False)])
    metadata: dict[str, Any] = {
        "query": query,
        "recordCount": len(records),
        "uniquePodCount": len({key[1] for key in sums}),
        "totals": totals,
    }
    return calls.answer({"records": records, "metadata": metadata})


def show_all(surface: Surface, call: Call) -> Reply:
    """Show the total cost per bucket; here only pods and network volumes cost anything."""
    try:
        since, until, size = window(call)
    except ValueError as error:
        return calls.problem(400, str(error))
    sums: dict[float, dict[str, float]] = {}
    for charge in surface.world.charges(since, until - 1.0):
        start = bucket(charge.day, size)
        if since <= start < until:
            names = ("podGpuAmount", "podCpuAmount", "podDiskAmount")
            name = names[_column(surface, charge, _pod_id(surface, charge))]
            amounts = sums.setdefault(start, dict.fromkeys(_AMOUNTS, 0.0))
            amounts[name] += charge.amount
    for paid in surface.world.volumes.charges():
        if since <= (start := bucket(paid.until - 1.0, size)) < until:
            sums.setdefault(start, dict.fromkeys(_AMOUNTS, 0.0))["storageStandardAmount"] += paid.amount
    records = [
        {
            "startTime": calls.stamp(start),
            "endTime": calls.stamp(bucket_end(start, size)),
            "totalAmount": sum(amounts.values()),
            **amounts,
        }
        for start, amounts in sorted(sums.items())
    ]
    totals = {name: sum(amounts[name] for amounts in sums.values()) for name in _AMOUNTS}
    query = {"startTime": calls.stamp(since), "endTime": calls.stamp(until), "bucketSize": size}
    metadata: dict[str, Any] = {"query": query, "recordCount": len(records)}
    metadata["totals"] = {"totalAmount": sum(totals.values()), **totals}
    return calls.answer({"records": records, "metadata": metadata})


def _sum(amounts: list[float]) -> dict[str, float]:
    gpu, cpu, disk = amounts
    return {"totalAmount": gpu + cpu + disk, "gpuAmount": gpu, "cpuAmount": cpu, "diskAmount": disk}


def _pod_id(surface: Surface, charge: Charge) -> str:
    return surface.world.fleet.pod_id(charge.contract_id)


def _column(surface: Surface, charge: Charge, pod_id: str) -> int:
    if charge.kind == "disk":
        return 2
    return 1 if surface.world.pods[pod_id].host.gpu is CPU else 0


def window(call: Call) -> tuple[float, float, str]:
    """Return the window asked for, snapped to whole buckets. Raises ValueError with a sentence."""
    size = call.query.get("bucketSize", "day")
    if size not in SIZES:
        raise ValueError(f"bucketSize: must be one of {', '.join(SIZES)}.")
    try:
        until = calls.instant(call.query["endTime"]) if "endTime" in call.query else call.now
        since = (
            calls.instant(call.query["startTime"]) if "startTime" in call.query else until - _DEFAULT_DAYS * 86_400.0
        )
    except ValueError as error:
        raise ValueError("startTime, endTime: must be RFC 3339.") from error
    since, last = bucket(since, size), bucket(until, size)
    until = last if last == until else bucket_end(last, size)
    if (count := call.query.get("lastN", "")).isdigit():
        since = bucket(call.now, size)
        for _ in range(int(count) - 1):
            since = bucket(since - 1.0, size)
        until = bucket_end(bucket(call.now, size), size)
    return since, until, size


def bucket(at: float, size: str) -> float:
    """Return the beginning of the bucket of an instant."""
    whole = dt.datetime.fromtimestamp(at, dt.UTC).replace(minute=0, second=0, microsecond=0)
    if size != "hour":
        whole = whole.replace(hour=0)
    if size == "week":
        whole -= dt.timedelta(days=whole.weekday())
    if size in {"month", "year"}:
        whole = whole.replace(day=1)
    if size == "year":
        whole = whole.replace(month=1)
    return whole.timestamp()


def bucket_end(start: float, size: str) -> float:
    """Return the end of the bucket that begins at `start`."""
    steps = {"hour": 3_600.0, "day": 86_400.0, "week": 604_800.0, "month": 32 * 86_400.0, "year": 367 * 86_400.0}
    return bucket(start + steps[size], size)
