"""The network volumes of a simulated account: a real one has those that its workloads name."""

from collections import Counter
from collections.abc import Iterable

from agent.domain.work.workload import Workload
from agent.markets.runpod import names
from agent.simulator.market_server import Simulator

SIZE_GB = 100


def put(simulator: Simulator, workloads: Iterable[Workload]) -> None:
    """Make the volumes that workloads name, each in the data centre with most GPUs that its workload takes."""
    for work in workloads:
        volume = work.requirements.network_volume
        if volume and simulator.pods.volumes.get(volume) is None:
            simulator.pods.volumes.create(volume, SIZE_GB, _place(simulator, work), volume)


def _place(simulator: Simulator, work: Workload) -> str:
    models = work.requirements.gpu_models
    gpus = Counter[str]()
    for host in simulator.pods.hosts.values():
        if host.center_id is not None and (not models or names.model(host.gpu.name) in models):
            gpus[host.center_id] += host.gpu_count
    # Among equals the first by name, so that the same configuration gives the same market.
    return min(gpus, key=lambda place: (-gpus[place], place), default="EU-RO-1")
