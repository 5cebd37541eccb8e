"""Pods over REST v2: list, make, change, act, end."""

from typing import Any

import msgspec

from agent.simulator.api_calls import Reply
from agent.simulator.instances import program
from agent.simulator.instances.container_state import Container
from agent.simulator.runpod.http import calls, rest_bodies
from agent.simulator.runpod.http.calls import Call
from agent.simulator.runpod.http.surface import Surface
from agent.simulator.runpod.model import Pod, Refused, Terms
from agent.simulator.runpod.models import BY_ID, CPU, Cloud

MOST_PODS = 1000
"""Pods of one page without a `limit`. Assumed."""

ACTIONS = {
    "RUNNING": ["stop", "restart", "terminate"],
    "PROVISIONING": ["stop", "terminate"],
    "STARTING": ["stop", "terminate"],
    "EXITED": ["start", "terminate"],
    "ERROR": ["start", "terminate"],
    "TERMINATED": [],
}


def show_all(surface: Surface, call: Call) -> Reply:
    """List the pods. A fault of the weather, or the caller's `limit`, splits the list into pages.

    Each page but the last has the mark of the next. The published document has no pages; newer clients follow
    `nextCursor`, whose meaning only the market knows.
    """
    pods = surface.listed(call)
    paged = call.struck.get("paged_list")
    most = str(int(paged.number("rows", 2.0))) if paged is not None else call.query.get("limit", str(MOST_PODS))
    start = call.query.get("cursor", "0")
    if not (most.isascii() and most.isdigit() and start.isascii() and start.isdigit() and int(most) > 0):
        return calls.problem(400, "limit or cursor is invalid.")
    end = int(start) + int(most)
    shown: dict[str, Any] = {"pods": [view(surface, pod, call) for pod in pods[int(start) : end]]}
    return calls.answer(shown | ({"nextCursor": str(end)} if end < len(pods) else {}))


def show_one(surface: Surface, call: Call, pod_id: str) -> Reply:
    """Show a pod."""
    return calls.answer(view(surface, surface.pod(call, pod_id), call))


def create(surface: Surface, call: Call) -> Reply:
    """Rent on demand."""
    try:
        body = rest_bodies.read(call.body, rest_bodies.Create)
    except msgspec.ValidationError as error:
        return calls.problem(422, "Request validation failed.", str(error))
    if (body.gpu is None) == (body.cpu is None):
        return calls.problem(400, "Exactly one of gpu or cpu must be set.")
    if body.templateId is not None:
        return calls.problem(404, f"Template {body.templateId} not found.")
    if not body.image:
        return calls.problem(422, "Request validation failed.", "image: required without templateId")
    pod = surface.rent(call, _terms(surface, body))
    return calls.answer(view(surface, pod, call), 201)


def change(surface: Surface, call: Call, pod_id: str) -> Reply:
    """Change a pod; a new image, command or environment makes its container anew."""
    pod = surface.pod(call, pod_id)
    try:
        body = rest_bodies.read(call.body, rest_bodies.Patch)
    except msgspec.ValidationError as error:
        return calls.problem(422, "Request validation failed.", str(error))
    pod.label = body.name or pod.label
    pod.is_locked = pod.is_locked if body.locked is None else body.locked
    edited = [body.image, body.args, body.env, body.ports, body.disk]
    pod.image = body.image or pod.image
    pod.args = pod.args if body.args is None else body.args
    pod.env = pod.env if body.env is None else body.env
    pod.port_names = pod.port_names if body.ports is None else tuple(body.ports)
    if any(value is not None for value in edited):
        surface.world.edit(pod_id, disk_gb=body.disk)
    return calls.answer(view(surface, pod, call))


def remove(surface: Surface, call: Call, pod_id: str) -> Reply:
    """End a pod."""
    surface.pod(call, pod_id)
    surface.world.terminate(pod_id)
    return calls.nothing()


def act(surface: Surface, call: Call, pod_id: str) -> Reply:
    """Start, stop, restart or end a pod, if its state allows it."""
    try:
        action = rest_bodies.read(call.body, rest_bodies.Action).action
    except msgspec.ValidationError as error:
        return calls.problem(422, "Request validation failed.", str(error))
    pod = surface.pod(call, pod_id)
    if action not in ACTIONS[pod.status]:
        return calls.problem(409, f"Action {action} is not valid for a pod that is {pod.status}.")
    if action == "terminate":
        return remove(surface, call, pod_id)
    world = surface.world
    {"start": world.resume, "stop": world.stop, "restart": world.restart}[action](pod_id)
    return calls.answer(view(surface, pod, call))


def _terms(surface: Surface, body: rest_bodies.Create) -> Terms:
    """Read the terms of a create. Raises Refused."""
    gpu = BY_ID.get(body.gpu.id) if body.gpu is not None else CPU
    if gpu is None:
        raise Refused(Refused.BAD_INPUT, f"Unknown gpu.id; see GET /v2/catalog/gpus ({len(BY_ID)} types).")
    persistent, network = body.mounts.persistent, body.mounts.network[0] if body.mounts.network else None
    if persistent is not None and network is not None:
        raise Refused(Refused.BAD_INPUT, "mounts: persistent and network exclude one another.")
    volume = surface.world.volumes.named(network.volumeId) if network is not None else None
    return Terms(
        name=body.name,
        gpu=gpu,
        gpu_count=body.gpu.count if body.gpu is not None else body.cpu.vcpuCount if body.cpu is not None else 1,
        clouds=(Cloud(body.cloud),),
        image=body.image or "",
        centers=tuple(body.dataCenterIds) if volume is None else (volume.center_id,),
        cudas=tuple(body.gpu.allowedCudaVersions) if body.gpu is not None else (),
        least_cuda=body.gpu.minCudaVersion if body.gpu is not None else None,
        needs_public_ip=any(name.endswith("/tcp") for name in body.ports),
        disk_gb=body.disk,
        volume_gb=persistent.size if persistent is not None else 0,
        volume_path=persistent.path if persistent is not None else network.path if network is not None else "",
        network_volume=network.volumeId if network is not None else None,
        args=body.args,
        ports=tuple(body.ports),
        env=body.env,
        registry=body.registry,
    )


def view(surface: Surface, pod: Pod, call: Call) -> dict[str, Any]:
    """Show a pod in the document's shape."""
    status = pod.status
    unknown = call.struck.get("unknown_status")
    shown: dict[str, Any] = {
        "id": pod.pod_id,
        "name": pod.label,
        "status": status if unknown is None else str(unknown.extra.get("status", "unknown")),
        "actions": ACTIONS[status],
        "image": pod.image,
        "args": pod.args,
        "disk": pod.disk_gb,
        "mounts": _mounts(pod),
        "ports": list(pod.port_names),
        "env": dict(pod.env),
        "registry": pod.terms.registry,
        "cloud": pod.host.cloud.value,
        "dataCenterId": pod.host.center_id,
        "cudaVersion": pod.host.cuda,
        "ssh": _ssh(surface, pod),
        "template": pod.terms.template,
        "cost": round(pod.rate, 6) if pod.holds_gpu else 0.0,
        "locked": pod.is_locked,
        "globalNetworking": {"enabled": False},
        "runtime": runtime(surface, pod),
        "createdAt": calls.stamp(pod.created),
        "startedAt": calls.stamp(pod.running_since) if pod.running_since is not None else None,
    }
    if pod.host.gpu is CPU:
        shown["cpu"] = {"id": "cpu3c", "vcpuCount": pod.gpu_count, "memory": pod.gpu_count * 2}
    else:
        shown["gpu"] = {"id": pod.host.gpu.type_id, "count": pod.gpu_count}
    return shown


def runtime(surface: Surface, pod: Pod) -> dict[str, Any] | None:
    """Show the host's report: None unless the host answers and the container runs."""
    if not _is_reported(pod):
        return None
    now = surface.world.now
    use = round(program.gpu_use(pod, now))
    cards = 0 if pod.host.gpu is CPU else pod.gpu_count
    return {
        "uptime": int(now - (pod.running_since or now)),
        "gpus": [{"util": use, "memoryUtil": round(use * 0.8)}] * cards,
        "cpu": {"util": 12},
        "memory": {"util": 20},
        "ports": surface.reach(pod),
    }


def _is_reported(pod: Pod) -> bool:
    return pod.holds_gpu and not pod.is_offline and pod.container is Container.RUNNING


def _mounts(pod: Pod) -> dict[str, Any]:
    if pod.terms.network_volume is not None:
        return {"network": [{"volumeId": pod.terms.network_volume, "path": pod.volume_path}]}
    return {"persistent": {"size": pod.volume_gb, "path": pod.volume_path}} if pod.volume_gb else {}


def _ssh(surface: Surface, pod: Pod) -> dict[str, Any]:
    if not _is_reported(pod):
        return {"proxy": None, "direct": None}
    user = f"{pod.pod_id}-{pod.host.token[:8]}"
    proxy = {"host": "ssh.runpod.io", "port": 22, "username": user, "command": f"ssh {user}@ssh.runpod.io"}
    for port in surface.reach(pod):
        if port["private"] == 22 and port["type"] == "tcp":  # noqa: PLR2004 - the port of ssh
            command = f"ssh root@{port['ip']} -p {port['public']}"
            direct = {"host": port["ip"], "port": port["public"], "username": "root", "command": command}
            return {"proxy": proxy, "direct": direct}
    return {"proxy": proxy, "direct": None}
