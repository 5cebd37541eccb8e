"""GraphQL's orders about pods, and its answers about the account."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from agent.simulator.runpod import assumed_figures
from agent.simulator.runpod.http import pod_view
from agent.simulator.runpod.http.calls import Call
from agent.simulator.runpod.http.graphql_offers import words
from agent.simulator.runpod.http.surface import Surface
from agent.simulator.runpod.model import Refused, Terms
from agent.simulator.runpod.models import BY_ID, CPU, Cloud, GpuType
from agent.simulator.runpod.network_volumes import NetworkVolume
from agent.simulator.runpod.world import World

_CLOUDS = {"SECURE": (Cloud.SECURE,), "COMMUNITY": (Cloud.COMMUNITY,)}
Input = Mapping[str, Any]


def fields(surface: Surface, call: Call) -> dict[str, Callable[..., Any]]:
    """Return the resolvers. Without a key `myself` is null, and every other field is refused.

    The key of a pod may show, start, stop and end that pod.
    """

    def shown(act: Callable[[Input], str], *, is_for_its_pod: bool = False) -> Callable[..., Any]:
        """Make a resolver that does something to a pod and shows it."""

        def resolve(_: object, **given: Any) -> dict[str, Any]:  # noqa: ANN401 - what the query says
            _require(surface, call, given["input"]["podId"] if is_for_its_pod else None)
            return pod_view.view(surface, surface.pod(call, act(given.get("input") or {})), call)

        return resolve

    def settings(_: object, **given: Any) -> dict[str, Any] | None:  # noqa: ANN401 - what the query says
        _require(surface, call)
        surface.public_key = (given.get("input") or {}).get("pubKey") or surface.public_key
        return _myself(surface, call)

    world = surface.world
    return {
        "myself": lambda _: _myself(surface, call),
        "pod": functools.partial(_pod, surface, call),
        "podFindAndDeployOnDemand": shown(lambda given: surface.rent(call, _terms(world, given, _gpu(given))).pod_id),
        "podRentInterruptable": shown(
            lambda given: surface.rent(call, _terms(world, given, _gpu(given)), float(given["bidPerGpu"])).pod_id
        ),
        "deployCpuPod": shown(lambda given: surface.rent(call, _cpu_terms(world, given)).pod_id),
        "podBidResume": shown(
            lambda given: world.resume(given["podId"], float(given["bidPerGpu"]), given["gpuCount"]).pod_id,
            is_for_its_pod=True,
        ),
        "podResume": shown(
            lambda given: world.resume(given["podId"], gpu_count=given.get("gpuCount")).pod_id, is_for_its_pod=True
        ),
        "podStop": shown(lambda given: world.stop(given["podId"]).pod_id, is_for_its_pod=True),
        "podEditJob": shown(lambda given: _edit(surface, call, given)),
        "podTerminate": functools.partial(_terminate, surface, call),
        "updateUserSettings": settings,
    }


def _pod(surface: Surface, call: Call, _: object, **given: Any) -> dict[str, Any] | None:  # noqa: ANN401 - as asked
    pod_id = (given.get("input") or {}).get("podId", "")
    _require(surface, call, pod_id)
    try:
        return pod_view.view(surface, surface.pod(call, pod_id), call)
    except Refused:
        return None


def _terminate(surface: Surface, call: Call, _: object, **given: Any) -> None:  # noqa: ANN401 - as asked
    pod_id = given["input"]["podId"]
    _require(surface, call, pod_id)
    try:
        surface.pod(call, pod_id)
    except Refused as refused:
        raise Refused(refused.code, "pod not found to terminate") from refused
    surface.world.terminate(pod_id)


def _require(surface: Surface, call: Call, pod_id: str | None = None) -> None:
    """Raise Refused unless the key belongs to the account, or to the pod in the question."""
    if call.key != surface.key and (pod_id is None or call.key != surface.pod_key(pod_id)):
        raise Refused(Refused.BAD_INPUT, "Unauthorized")


def _volume(volume: NetworkVolume) -> dict[str, Any]:
    return {
        "id": volume.volume_id,
        "name": volume.name,
        "size": volume.size_gb,
        "dataCenterId": volume.center_id,
        "dataCenter": {"id": volume.center_id},
    }


def _myself(surface: Surface, call: Call) -> dict[str, Any] | None:
    if call.key is None:
        return None
    _require(surface, call)
    world = surface.world
    gpus, disks = world.fleet.gpu_rate(), world.fleet.disk_rate()
    return {
        "id": surface.account(call),
        "email": "renter@example.com",
        "clientBalance": round(world.credit, 6),
        "currentSpendPerHr": round(gpus + disks, 6),
        "spendLimit": int(assumed_figures.SPEND_LIMIT),
        "minBalance": 0.0,
        "underBalance": world.credit <= 0,
        "notifyPodsStale": False,
        "notifyPodsGeneral": False,
        "notifyLowBalance": False,
        "spendDetails": {
            "localStoragePerHour": disks,
            "networkStoragePerHour": world.volumes.rate(),
            "gpuComputePerHour": gpus,
        },
        "pubKey": surface.public_key,
        "networkVolumes": [_volume(volume) for volume in world.volumes.all()],
        "pods": [pod_view.view(surface, pod, call) for pod in surface.listed(call)],
        "containerRegistryCreds": [],
    }


def _gpu(given: Input) -> GpuType:
    ids = [given.get("gpuTypeId"), *(given.get("gpuTypeIdList") or ())]
    for type_id in ids:
        if (gpu := BY_ID.get(type_id or "")) is not None:
            return gpu
    raise Refused(Refused.BAD_INPUT, "Something went wrong. Please try again later or contact support.")


def _terms(world: World, given: Input, gpu: GpuType) -> Terms:
    """Read the terms of a create; an empty text counts as absent."""
    volume_id = given.get("networkVolumeId") or None
    if volume_id is not None:
        centers: tuple[str, ...] = (world.volumes.named(volume_id).center_id,)
    else:
        centers = words(given.get("dataCenterId"))
    return Terms(
        name=given.get("name") or "pod",
        gpu=gpu,
        gpu_count=given.get("gpuCount") or 1,
        clouds=_CLOUDS.get(str(given.get("cloudType")), tuple(Cloud)),
        image=given.get("imageName") or "",
        centers=centers,
        countries=words(given.get("countryCode")),
        cudas=tuple(given.get("allowedCudaVersions") or words(given.get("cudaVersion"))),
        least_cuda=given.get("minCudaVersion") or None,
        least_vcpu=given.get("minVcpuCount") or 0,
        least_ram_gb=given.get("minMemoryInGb") or 0,
        needs_public_ip=bool(given.get("supportPublicIp")),
        most_per_hour=given.get("deployCost") or None,
        disk_gb=given.get("containerDiskInGb") or 0,
        volume_gb=given.get("volumeInGb") or 0,
        volume_path=given.get("volumeMountPath") or "",
        network_volume=volume_id,
        args=given.get("dockerArgs") or "",
        ports=words(given.get("ports")),
        env=_env(given) or {},
        template=given.get("templateId") or None,
        registry=given.get("containerRegistryAuthId") or None,
    )


def _cpu_terms(world: World, given: Input) -> Terms:
    """Read a pod without GPUs: an instance is named flavour-vCPUs-memory, such as cpu3c-2-4."""
    parts = (given.get("instanceId") or "cpu3c-2-4").split("-")
    count = int(parts[1]) if len(parts) == 3 and parts[1].isdigit() else 2  # noqa: PLR2004 - the three parts
    return _terms(world, {**given, "gpuCount": count, "cloudType": "SECURE"}, CPU)


def _env(given: Input) -> dict[str, str] | None:
    pairs = given.get("env")
    return None if pairs is None else {pair["key"]: pair["value"] for pair in pairs}


def _edit(surface: Surface, call: Call, given: Input) -> str:
    pod = surface.pod(call, given["podId"])
    pod.image = given.get("imageName") or pod.image
    pod.args = given.get("dockerArgs") or pod.args
    pod.port_names = words(given.get("ports")) or pod.port_names
    pod.env = _env(given) or pod.env
    surface.world.edit(pod.pod_id, disk_gb=given.get("containerDiskInGb"))
    return pod.pod_id
