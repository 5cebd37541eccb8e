"""List prices and floors at a given time: constants, but for the spikes that a climate declares."""

from agent.simulator.climate import Climate, Spike
from agent.simulator.runpod.models import Cloud, GpuType


def price(climate: Climate, gpu: GpuType, cloud: Cloud, age: float) -> float:
    """Return $/h of one GPU on demand, `age` seconds after the market began."""
    return round(gpu.price(cloud) * _factor(climate, gpu, age), 4)


def floor(climate: Climate, gpu: GpuType, cloud: Cloud, age: float) -> float | None:
    """Return the lowest bid for one GPU; None where it is not sold interruptible."""
    listed = gpu.floor(cloud)
    return None if listed is None else round(listed * _factor(climate, gpu, age), 4)


def spiking(climate: Climate, age: float) -> tuple[Spike, ...]:
    """Return the spikes that last `age` seconds after the market began."""
    return tuple(spike for spike in climate.spikes if spike.at_seconds <= age < spike.at_seconds + spike.seconds)


def _factor(climate: Climate, gpu: GpuType, age: float) -> float:
    factor = 1.0
    for spike in spiking(climate, age) if climate.spikes else ():
        if not spike.gpus or gpu.name in spike.gpus:
            factor *= spike.factor
    return factor
