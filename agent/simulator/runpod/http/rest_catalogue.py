"""The catalogue over REST v2: GPUs, processors and data centres, with availability on request."""

from collections.abc import Sequence
from typing import Any

from agent.simulator.api_calls import Reply
from agent.simulator.runpod import assumed_figures, places
from agent.simulator.runpod.http import calls
from agent.simulator.runpod.http.calls import Call
from agent.simulator.runpod.http.surface import Surface
from agent.simulator.runpod.model import Host, Terms
from agent.simulator.runpod.models import BY_ID, CPU, TYPES, Cloud, GpuType


class BadQueryError(ValueError):
    """A parameter is wrong; the text names it."""


def show_gpus(surface: Surface, call: Call) -> Reply:
    """List the types of GPU."""

    def shown() -> Reply:
        return _shown(call, lambda terms: {"gpus": [_gpu(surface, gpu, terms) for gpu in TYPES]})

    return surface.catalogue(("gpus", *sorted(call.query.items())), shown)


def show_gpu(surface: Surface, call: Call, type_id: str) -> Reply:
    """Show one type."""
    gpu = BY_ID.get(type_id)
    if gpu is None:
        return calls.problem(404, f"GPU type {type_id} not found.")
    return _shown(call, lambda terms: _gpu(surface, gpu, terms))


def show_centers(surface: Surface, call: Call) -> Reply:
    """List the data centres."""
    return calls.answer({"dataCenters": [_center(surface, center, call) for center in places.DATA_CENTERS]})


def show_center(surface: Surface, call: Call, center_id: str) -> Reply:
    """Show one data centre."""
    center = places.BY_ID.get(center_id)
    if center is None:
        return calls.problem(404, f"Data center {center_id} not found.")
    return calls.answer(_center(surface, center, call))


def show_cpus(surface: Surface, call: Call) -> Reply:
    """List the processors: one flavour."""
    del surface, call
    flavour = {
        "id": "cpu3c",
        "name": "Compute-Optimized",
        "group": "Gen 3",
        "vcpu": {"min": 2, "max": 32},
        "ramGbPerVcpu": 2.0,
        "price": {"securePerVcpu": CPU.secure_price, "serverlessPerVcpu": 0.03},
    }
    return calls.answer({"cpus": [flavour]})


def level(surface: Surface, hosts: Sequence[Host], count: int) -> str:
    """Return the market's word for how many more pods of `count` GPUs fit on these hosts."""
    fits = surface.world.stock.fits(hosts, count)
    low, medium = assumed_figures.STOCK_LEVELS
    if fits == 0:
        return "NONE"
    return "LOW" if fits <= low else "MEDIUM" if fits <= medium else "HIGH"


def _shown(call: Call, show: Any) -> Reply:  # noqa: ANN401 - JSON is any
    try:
        return calls.answer(show(_asked(call)))
    except BadQueryError as error:
        return calls.problem(400, str(error))


def _asked(call: Call) -> Terms | None:
    """Read the terms of a question about availability; None if the call asks for none. Raises BadQueryError."""
    query = call.query
    extra = [name for name in ("count", "cloud", "countryCodes", "cudaVersions", "minCudaVersion") if name in query]
    if query.get("include") != "AVAILABILITY":
        if extra or "include" in query:
            raise BadQueryError(f"{(extra or ['include'])[0]}: valid only with include=AVAILABILITY.")
        return None
    if "product" not in query:
        raise BadQueryError("product: required with include=AVAILABILITY.")
    count, cloud = query.get("count", "1"), query.get("cloud")
    if not count.isdigit() or int(count) < 1:
        raise BadQueryError("count: must be a whole number of at least 1.")
    if cloud is not None and cloud not in {"SECURE", "COMMUNITY"}:
        raise BadQueryError("cloud: must be SECURE or COMMUNITY.")
    return Terms(
        name="",
        gpu=TYPES[0],
        gpu_count=int(count),
        clouds=tuple(Cloud) if cloud is None else (Cloud(cloud),),
        countries=_words(query.get("countryCodes")),
        cudas=_words(query.get("cudaVersions")),
        least_cuda=query.get("minCudaVersion"),
    )


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(word for word in (text or "").split(",") if word)


def _gpu(surface: Surface, gpu: GpuType, asked: Terms | None) -> dict[str, Any]:
    world, clouds = surface.world, gpu.clouds()
    shown: dict[str, Any] = {
        "id": gpu.type_id,
        "name": gpu.name,
        "pool": None,
        "manufacturer": gpu.maker,
        "memory": gpu.memory_gb,
        "secure": gpu.is_secure,
        "community": gpu.is_community,
        "price": {cloud.value.lower(): world.price(gpu, cloud) for cloud in Cloud},
        "maxCount": {cloud.value.lower(): gpu.most if cloud in clouds else 0 for cloud in Cloud},
    }
    if asked is not None:
        hosts = world.fitting(_for(gpu, asked))
        shown["availability"] = level(surface, hosts, asked.gpu_count)
        shown["dataCenters"] = _by_center(surface, hosts, asked.gpu_count)
        shown["cudaVersions"] = [
            {"version": version, "available": world.stock.fits(with_it, asked.gpu_count) > 0}
            for version in sorted({host.cuda for host in hosts})
            if (with_it := [host for host in hosts if host.cuda == version])
        ]
    return shown


def _for(gpu: GpuType, asked: Terms) -> Terms:
    return Terms(
        name="",
        gpu=gpu,
        gpu_count=asked.gpu_count,
        clouds=asked.clouds,
        countries=asked.countries,
        cudas=asked.cudas,
        least_cuda=asked.least_cuda,
    )


def _by_center(surface: Surface, hosts: Sequence[Host], count: int) -> list[dict[str, Any]]:
    found = []
    for center_id in sorted({host.center_id for host in hosts if host.center_id is not None}):
        there = [host for host in hosts if host.center_id == center_id]
        found.append(
            {"id": center_id, "name": places.BY_ID[center_id].name, "availability": level(surface, there, count)}
        )
    return found


def _center(surface: Surface, center: places.DataCenter, call: Call) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": center.center_id,
        "name": center.name,
        "region": center.region,
        "networkVolumeTypes": ["STANDARD"],
        "compliance": [],
        "globalNetwork": False,
    }
    if "GPU_AVAILABILITY" in call.query.get("include", ""):
        hosts = [host for host in surface.world.hosts.values() if host.center_id == center.center_id]
        shown["gpuAvailability"] = [
            {"id": gpu.type_id, "name": gpu.name, "availability": level(surface, there, 1)}
            for gpu in TYPES
            if (there := [host for host in hosts if host.gpu is gpu])
        ]
    return shown
