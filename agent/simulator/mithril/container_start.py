"""The start of a container's real processes on a bid's machine.

Its first process is the command that the startup script gives to `docker run`; the image does not exist. A command of
the image's own runs nothing. Its files stay on the boot disk. Its ports are not open under the machine's address: they
are the ports of loopback that SIM_PORT_n names.
"""

from collections.abc import Callable, Mapping
from typing import Any

from agent.simulator.mithril.model import Bid
from agent.simulator.processes import simulated_gpus
from agent.simulator.processes.container_process import Start
from agent.simulator.processes.process_registry import ProcessRegistry
from agent.simulator.processes.simulated_gpus import SimulatedGpus

_DRIVER_NAMES = {
    "A100": "NVIDIA A100-SXM4-80GB",
    "H100": "NVIDIA H100 80GB HBM3",
    "H200": "NVIDIA H200",
    "B200": "NVIDIA B200",
}


def launcher(registry: ProcessRegistry, lies: Mapping[int, Mapping[str, Any]]) -> Callable[[Bid], None]:
    """Return the function that starts the real processes of a bid. `lies` are those about GPUs, the newest last."""

    def launch(bid: Bid) -> None:
        """Start the container's command with the variables of the script; the market sets none."""
        process = registry.made(f"mithril-{bid.fid}", bid.ports, has_volume=False)
        bid.process = process
        env = {**bid.env, simulated_gpus.VARIABLE: _gpus(bid, lies).driver_value}
        registry.start(process, Start(bid.words, env=env), port_names=[])

    return launch


def _gpus(bid: Bid, lies: Mapping[int, Mapping[str, Any]]) -> SimulatedGpus:
    """Return the GPUs that the driver of a bid's machine shows."""
    kind = bid.pool.kind
    truth = SimulatedGpus(_DRIVER_NAMES[kind.gpu_type], kind.gpu_count, 1024 * kind.gpu_memory_gb)
    return simulated_gpus.shown(truth, bid.host.machine_id, lies.values())
