"""GraphQL's answers about offers: types of GPU with the lowest price now, and data centres.

Prices of a type are per GPU; `lowestPrice` is of the whole pod.
"""

from collections.abc import Callable, Mapping
from typing import Any

from agent.simulator.runpod import places
from agent.simulator.runpod.http.rest_catalogue import level
from agent.simulator.runpod.http.surface import Surface
from agent.simulator.runpod.model import Terms
from agent.simulator.runpod.models import BY_ID, TYPES, Cloud, GpuType

NAMES = frozenset({"gpuTypes", "dataCenters", "countryCodes", "cpuFlavors"})
"""The root fields of a question about offers."""

_WORDS = {"NONE": None, "LOW": "Low", "MEDIUM": "Medium", "HIGH": "High"}


def fields(surface: Surface) -> dict[str, Callable[..., Any]]:
    """Return the resolvers; they need no key."""

    def gpu_types(_: object, **given: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - what the query says
        wanted = given.get("input") or {}
        ids = set(wanted.get("ids") or ()) | ({wanted["id"]} if wanted.get("id") else set())
        shown = [_type(surface, gpu) for gpu in TYPES if not ids or gpu.type_id in ids]
        return shown if ids else [*shown, _unknown()]

    def data_centers(_: object) -> list[dict[str, Any]]:
        return [_center(surface, center) for center in places.DATA_CENTERS]

    return {
        "gpuTypes": gpu_types,
        "dataCenters": data_centers,
        "countryCodes": lambda _: sorted({host.country for host in surface.world.hosts.values()}),
        "cpuFlavors": lambda _: [{"id": "cpu3c", "displayName": "Compute-Optimized", "minVcpu": 2, "maxVcpu": 32}],
    }


def _type(surface: Surface, gpu: GpuType) -> dict[str, Any]:
    """Return the fields of a type. Slow fields are functions, which run only where they are asked for."""
    world = surface.world

    def lowest(_: object, **given: Any) -> dict[str, Any]:  # noqa: ANN401 - what the query says
        return _lowest(surface, gpu, given.get("input") or {"gpuCount": 1})

    return {
        "id": gpu.type_id,
        "displayName": gpu.name,
        "manufacturer": "AMD" if gpu.maker == "AMD" else "Nvidia",
        "memoryInGb": gpu.memory_gb,
        "cudaCores": 0,
        "secureCloud": gpu.is_secure,
        "communityCloud": gpu.is_community,
        "securePrice": lambda _: world.price(gpu, Cloud.SECURE),
        "communityPrice": lambda _: world.price(gpu, Cloud.COMMUNITY),
        "secureSpotPrice": lambda _: world.floor(gpu, Cloud.SECURE),
        "communitySpotPrice": lambda _: world.floor(gpu, Cloud.COMMUNITY),
        "clusterPrice": lambda _: round(world.price(gpu, Cloud.SECURE) * 1.2, 4),
        "maxGpuCount": gpu.most,
        "maxGpuCountSecureCloud": gpu.most if gpu.is_secure else 0,
        "maxGpuCountCommunityCloud": gpu.most if gpu.is_community else 0,
        "minPodGpuCount": 1,
        "nodeGroupDatacenters": lambda _: [{"id": center, "name": center} for center in gpu.data_centers],
        "lowestPrice": lowest,
    }


def _unknown() -> dict[str, Any]:
    """Show the junk row that the vendor's own answer ends with."""
    nothing = {"memoryInGb": 0, "maxGpuCount": 1, "secureCloud": False, "communityCloud": False}
    return {"id": "unknown", "displayName": "unknown", "securePrice": 0, "communityPrice": 0, **nothing}


def _lowest(surface: Surface, gpu: GpuType, wanted: Mapping[str, Any]) -> dict[str, Any]:
    world, count = surface.world, max(int(wanted["gpuCount"]), 1)
    hosts = world.fitting(_terms(gpu, count, wanted))
    frees = [world.stock.free(host) for host in hosts]
    able = [host for host, free in zip(hosts, frees, strict=True) if free >= count]
    shown: dict[str, Any] = {"gpuName": gpu.name, "gpuTypeId": gpu.type_id}
    if not able:
        return shown
    clouds = {host.cloud for host in able}
    prices = {cloud: world.price(gpu, cloud) for cloud in clouds}
    best = min(able, key=lambda host: prices[host.cloud])
    floors = [floor for cloud in clouds if (floor := world.floor(gpu, cloud)) is not None]
    total, most = sum(host.gpu_count for host in hosts), max(frees)
    held = total - sum(frees)
    return {
        **shown,
        "uninterruptablePrice": round(prices[best.cloud] * count, 4),
        "minimumBidPrice": round(min(floors) * count, 4) if floors else None,
        "minMemory": best.ram_gb_per_gpu * count,
        "minVcpu": best.vcpu_per_gpu * count,
        "rentedCount": held,
        "totalCount": total,
        "rentalPercentage": held / total,
        "stockStatus": lambda _: _WORDS[level(surface, hosts, count)],
        "countryCode": best.country,
        "supportPublicIp": best.has_public_ip,
        "maxUnreservedGpuCount": most,
        "availableGpuCounts": lambda _: list(range(1, most + 1)),
        "gpuTypeCudaVersions": lambda _: [
            {"cudaVersion": version, "availability": "available"} for version in sorted({host.cuda for host in able})
        ],
    }


def _terms(gpu: GpuType, count: int, wanted: Mapping[str, Any]) -> Terms:
    clouds = {None: tuple(Cloud), True: (Cloud.SECURE,), False: (Cloud.COMMUNITY,)}[wanted.get("secureCloud")]
    cudas = list(wanted.get("allowedCudaVersions") or ()) or [wanted.get("cudaVersion")]
    return Terms(
        name="",
        gpu=gpu,
        gpu_count=count,
        clouds=clouds,
        centers=words(wanted.get("dataCenterId")),
        countries=words(wanted.get("countryCode")),
        cudas=tuple(version for version in cudas if version),
        least_cuda=wanted.get("minCudaVersion") or None,
        least_vcpu=wanted.get("minVcpuCount") or 0,
        least_ram_gb=wanted.get("minMemoryInGb") or 0,
        needs_public_ip=bool(wanted.get("supportPublicIp")),
    )


def words(text: str | None) -> tuple[str, ...]:
    """Split a list that is written with commas; None and an empty text give an empty list."""
    return tuple(word.strip() for word in (text or "").split(",") if word.strip())


def _center(surface: Surface, center: places.DataCenter) -> dict[str, Any]:
    def availability(_: object, **given: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - what the query says
        wanted = given.get("input") or {}
        count, type_id = wanted.get("gpuCount") or 1, wanted.get("gpuTypeId")
        types = TYPES if not type_id else tuple(gpu for gpu in TYPES if gpu is BY_ID.get(type_id))
        there = [host for host in surface.world.hosts.values() if host.center_id == center.center_id]
        shown = []
        for gpu in types:
            if hosts := [host for host in there if host.gpu is gpu]:
                word = _WORDS[level(surface, hosts, count)]
                fields = {"gpuTypeId": gpu.type_id, "displayName": gpu.name, "stockStatus": word}
                shown.append({"id": f"{center.center_id}-{gpu.type_id}", **fields, "available": word is not None})
        return shown

    return {
        "id": center.center_id,
        "name": center.center_id,
        "location": center.name,
        "listed": True,
        "storageSupport": True,
        "globalNetwork": False,
        "compliance": [],
        "gpuAvailability": availability,
    }
