"""REST v1 before it was retired, as far as the vendor's command line calls it. Out of stock is HTTP 500 here."""

import datetime as dt
import re
import shlex
from typing import Any

from agent.simulator.api_calls import Reply
from agent.simulator.runpod.http import calls
from agent.simulator.runpod.http.calls import Call
from agent.simulator.runpod.http.graphql_offers import words
from agent.simulator.runpod.http.surface import Surface
from agent.simulator.runpod.model import Pod, Refused, Terms
from agent.simulator.runpod.models import BY_ID, CPU, Cloud, GpuType
from agent.simulator.runpod.sales_modes import Mode

_POD = re.compile(r"/v1/pods/([^/]+)(?:/(start|stop|restart|reset|update))?")
_STATUSES = {Refused.NO_SUCH_POD: 404, Refused.BAD_INPUT: 400}


def answer(surface: Surface, call: Call) -> Reply:
    """Answer a call whose key is known."""
    if surface.world.mode.includes(Mode.V1_GONE):
        return _error(410, "REST API v1 has been retired. Use https://api.runpod.io/v2.")
    try:
        if call.path == "/v1/pods" and call.method == "GET":
            return calls.answer([view(surface, pod) for pod in surface.listed(call)])
        if call.path == "/v1/pods" and call.method == "POST":
            return _create(surface, call)
        if call.path == "/v1/billing/pods" and call.method == "GET":
            return _billing(surface)
        if (match := _POD.fullmatch(call.path)) is not None:
            return _one(surface, call, surface.pod(call, match.group(1)), match.group(2))
    except Refused as refused:
        return _error(_STATUSES.get(refused.code, 500), refused.sentence)
    return _error(404, "not found")


def _one(surface: Surface, call: Call, pod: Pod, verb: str | None) -> Reply:
    if verb is None and call.method == "DELETE":
        surface.world.terminate(pod.pod_id)
        return calls.nothing()
    if (verb is None and call.method == "PATCH") or verb == "update":
        pod.label = call.fields.get("name") or pod.label
    elif verb == "start":
        try:
            surface.world.resume(pod.pod_id)
        except Refused as refused:
            raise Refused(refused.code, f"start pod: {refused.sentence}") from refused
    elif verb == "stop":
        surface.world.stop(pod.pod_id)
    elif verb in ("restart", "reset"):
        surface.world.restart(pod.pod_id)
    return calls.answer(view(surface, pod))


def _create(surface: Surface, call: Call) -> Reply:
    body, world = call.fields, surface.world
    is_spot = bool(body.get("interruptible"))
    if is_spot and world.mode.includes(Mode.SPOT_DISCONTINUED):
        return _error(500, "create pod: Spot pods are no longer offered")
    if body.get("computeType") == "CPU":
        gpu: GpuType | None = CPU
    else:
        gpu = next((BY_ID[name] for name in body.get("gpuTypeIds") or () if name in BY_ID), None)
    if gpu is None:
        return _error(400, f"gpuTypeIds: must be one of {', '.join(BY_ID)}")
    terms = _terms(body, gpu)
    bid = (body.get("bidPerGpu") or world.floor(gpu, terms.clouds[0])) if is_spot else None
    try:
        return calls.answer(view(surface, surface.rent(call, terms, bid)), 201)
    except Refused as refused:
        no_stock = "There are no instances currently available."
        return _error(500, no_stock if refused.code == Refused.NO_STOCK else f"create pod: {refused.sentence}")


def _terms(body: dict[str, Any], gpu: GpuType) -> Terms:
    is_cpu = gpu is CPU
    return Terms(
        name=body.get("name") or "my pod",
        gpu=gpu,
        gpu_count=(body.get("vcpuCount") or 2) if is_cpu else body.get("gpuCount") or 1,
        clouds=(Cloud(body.get("cloudType") or "SECURE"),),
        image=body.get("imageName") or "",
        centers=tuple(body.get("dataCenterIds") or ()),
        countries=tuple(body.get("countryCodes") or ()),
        cudas=tuple(body.get("allowedCudaVersions") or ()),
        needs_public_ip=bool(body.get("supportPublicIp")),
        disk_gb=body.get("containerDiskInGb") or 50,
        volume_gb=0 if is_cpu else body.get("volumeInGb", 20),
        volume_path=body.get("volumeMountPath") or "/workspace",
        args=shlex.join(body.get("dockerStartCmd") or ()),
        ports=tuple(_ports(body.get("ports"))),
        env=body.get("env") or {},
    )


def _ports(value: object) -> list[str]:
    return list(words(value)) if isinstance(value, str) else list(value) if isinstance(value, list) else []


def view(surface: Surface, pod: Pod) -> dict[str, Any]:
    """Show a pod as the live answers did, which differ from their document."""
    reached = surface.reach(pod) if pod.running_since is not None else []
    public = {str(port["private"]): port["public"] for port in reached if port["type"] == "tcp"}
    return {
        "id": pod.pod_id,
        "name": pod.label,
        "desiredStatus": "RUNNING" if pod.holds_gpu else "EXITED",
        "imageName": pod.image,
        "costPerHr": round(pod.rate, 6),
        "gpuCount": 0 if pod.host.gpu is CPU else pod.gpu_count,
        "containerDiskInGb": pod.disk_gb,
        "volumeInGb": pod.volume_gb,
        "volumeMountPath": pod.volume_path,
        "machineId": pod.host.token,
        "ports": list(pod.port_names),
        "env": dict(pod.env),
        "publicIp": "127.0.0.1" if public else "",
        "portMappings": public,
        "interruptible": pod.is_bid,
        "createdAt": _stamp(pod.created),
        "lastStartedAt": _stamp(pod.running_since or pod.created),
        "lastStatusChange": pod.change.value,
    }


def _billing(surface: Surface) -> Reply:
    sums: dict[tuple[str, float], dict[str, float]] = {}
    for charge in surface.world.charges(0.0, surface.world.now):
        day = charge.day // 86_400.0 * 86_400.0
        line = sums.setdefault((surface.world.fleet.pod_id(charge.contract_id), day), {"amount": 0.0, "ms": 0.0})
        line["amount"] += charge.amount
        line["ms"] += charge.quantity * 3_600_000.0 if charge.kind == "gpu" else 0.0
    rows = [
        {"podId": pod_id, "time": calls.stamp(day), "amount": line["amount"], "timeBilledMs": int(line["ms"])}
        for (pod_id, day), line in sums.items()
    ]
    return calls.answer(rows)


def _error(status: int, sentence: str) -> Reply:
    return calls.answer({"error": sentence, "status": status}, status)


def _stamp(at: float) -> str:
    """Write an instant as Go prints one."""
    return dt.datetime.fromtimestamp(at, dt.UTC).strftime("%Y-%m-%d %H:%M:%S.000 +0000 UTC")
