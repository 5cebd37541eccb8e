"""The network volumes of a simulated account: a real one has those that its workloads name."""

from collections.abc import Callable, Iterable

from agent.domain.work.workload import Workload
from agent.markets import registered_markets
from agent.markets.market_record import MarketRecord
from agent.simulator.market_server import Simulator

SIZE_GB = 100


def put(simulator: Simulator, workloads: Iterable[Workload]) -> None:
    """Make the volumes that workloads name, on each market that mounts some, each near the GPUs of its workload."""
    records = [record for name, record in registered_markets.installed().items() if record.mounts_volumes]
    for work in workloads:
        volume = work.requirements.network_volume
        for record in records if volume else ():
            if record.name in simulator.sides:
                simulator.sides[record.name].add_volume(volume, SIZE_GB, _wanted(record, work))


def _wanted(record: MarketRecord, work: Workload) -> Callable[[str], bool]:
    models = work.requirements.gpu_models
    return lambda gpu: not models or record.gpu_model(gpu) in models
