"""A pod as GraphQL shows it."""

import datetime as dt
from typing import Any

from agent.simulator.instances import program
from agent.simulator.instances.container_state import Container
from agent.simulator.runpod import assumed_figures
from agent.simulator.runpod.http.calls import Call
from agent.simulator.runpod.http.surface import Surface
from agent.simulator.runpod.model import Host, Pod
from agent.simulator.runpod.models import CPU, Cloud


def view(surface: Surface, pod: Pod, call: Call) -> dict[str, Any]:
    """Show every field of a pod that the schema has."""
    unknown = call.struck.get("unknown_status")
    host, is_cpu = pod.host, pod.host.gpu is CPU
    return {
        "id": pod.pod_id,
        "name": pod.label,
        # The schema has no word for the weather's unknown status; DEAD is one that never comes otherwise.
        "desiredStatus": "DEAD" if unknown is not None else "RUNNING" if pod.holds_gpu else "EXITED",
        "lastStatusChange": f"{pod.change.value}: {js_date(pod.changed)}",
        "podType": "INTERRUPTABLE" if pod.is_bid else "RESERVED",
        "costPerHr": round(pod.rate, 6),
        "adjustedCostPerHr": round(pod.rate, 6),
        "costMultiplier": 1,
        "lowestBidPriceToResume": surface.world.floor(host.gpu, host.cloud) if pod.is_bid else None,
        "gpuCount": 0 if is_cpu else pod.gpu_count,
        "gpus": [{"id": _card(pod, index), "podId": pod.pod_id} for index in range(0 if is_cpu else pod.gpu_count)],
        "vcpuCount": pod.gpu_count if is_cpu else host.vcpu_per_gpu * pod.gpu_count,
        "memoryInGb": pod.gpu_count * 2 if is_cpu else host.ram_gb_per_gpu * pod.gpu_count,
        "containerDiskInGb": pod.disk_gb,
        "volumeInGb": pod.volume_gb,
        "volumeMountPath": pod.volume_path,
        "networkVolumeId": pod.terms.network_volume,
        "imageName": pod.image,
        "dockerArgs": pod.args,
        "env": [f"{key}={value}" for key, value in pod.env.items()],
        "ports": ",".join(pod.port_names) or None,
        "templateId": pod.terms.template,
        "containerRegistryAuthId": pod.terms.registry,
        "machineId": host.token,
        "machine": _machine(surface, pod),
        "runtime": _runtime(surface, pod),
        "latestTelemetry": _telemetry(surface, pod),
        "uptimeSeconds": 0,
        "createdAt": _stamp(pod.created),
        "lastStartedAt": _stamp(pod.running_since) if pod.running_since is not None else None,
        "consumerUserId": surface.account(call),
        "locked": pod.is_locked,
        "version": 0,
        "cpuFlavorId": "cpu3c" if is_cpu else None,
        "readableStatus": "Running" if pod.holds_gpu else "Exited",
    }


def js_date(at: float) -> str:
    """Write an instant as JavaScript does."""
    read = dt.datetime.fromtimestamp(at, dt.UTC)
    return read.strftime("%a %b %d %Y %H:%M:%S GMT+0000 (Coordinated Universal Time)")


def _machine(surface: Surface, pod: Pod) -> dict[str, Any]:
    host = pod.host
    return {
        "costPerHr": round(pod.rate, 6),
        "currentPricePerGpu": surface.world.price(host.gpu, host.cloud),
        "gpuAvailable": surface.world.stock.free(host),
        "gpuDisplayName": host.gpu.name,
        "gpuTypeId": host.gpu.type_id,
        "location": host.country,
        "dataCenterId": host.center_id,
        "podHostId": f"{pod.pod_id}-{host.machine_id:08x}",
        "secureCloud": host.cloud is Cloud.SECURE,
        "supportPublicIp": host.has_public_ip,
        "listed": True,
        "minPodGpuCount": 1,
        "maxDownloadSpeedMbps": int(host.inet_down),
        "vcpuTotal": host.vcpu_per_gpu * host.gpu_count,
        "memoryTotal": host.ram_gb_per_gpu * host.gpu_count,
        **_maintenance(surface, host),
    }


def _maintenance(surface: Surface, host: Host) -> dict[str, Any]:
    """Return the planned maintenance of a host until it is over. The format of its times is assumed."""
    begins, ends = host.maintenance or (0.0, 0.0)
    if ends <= surface.world.now:
        return {"maintenanceStart": None, "maintenanceEnd": None, "maintenanceNote": None}
    note = "Scheduled maintenance"
    return {"maintenanceStart": _stamp(begins), "maintenanceEnd": _stamp(ends), "maintenanceNote": note}


def _runtime(surface: Surface, pod: Pod) -> dict[str, Any] | None:
    """Show the host's report. For a while it still contains a container that was stopped."""
    now = surface.world.now
    since = pod.running_since
    if since is None and pod.ran is not None and not pod.holds_gpu and now - pod.ran[1] < assumed_figures.STALE_SECONDS:
        since = pod.ran[0]
    if since is None or pod.is_offline or (pod.holds_gpu and pod.container is not Container.RUNNING):
        return None
    use = program.gpu_use(pod, now) if pod.holds_gpu else 0.0
    cards = 0 if pod.host.gpu is CPU else pod.gpu_count
    ports = surface.reach(pod) if pod.holds_gpu else []
    return {
        "uptimeInSeconds": int(now - since),
        "container": {"cpuPercent": 12, "memoryPercent": 20},
        "gpus": [
            {"id": _card(pod, index), "gpuUtilPercent": use, "memoryUtilPercent": use * 0.8} for index in range(cards)
        ],
        "ports": [
            {
                "ip": port["ip"],
                "isIpPublic": port["type"] != "http",
                "privatePort": port["private"],
                "publicPort": port["public"],
                "type": port["type"],
            }
            for port in ports
        ],
    }


def _telemetry(surface: Surface, pod: Pod) -> dict[str, Any] | None:
    if pod.first_started is None:
        return None
    state = "running" if pod.container is Container.RUNNING else "exited"
    return {"state": state, "time": _stamp(surface.world.now), "cpuUtilization": 12, "memoryUtilization": 20}


def _card(pod: Pod, index: int) -> str:
    return f"GPU-{pod.host.machine_id:08x}-0000-4000-8000-{index:012x}"


def _stamp(at: float) -> str:
    return dt.datetime.fromtimestamp(at, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
