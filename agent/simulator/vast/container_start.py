"""The start of a contract's container: its processes, and the variables that this market sets in it.

A create with `args` runs them as the container's first process, in place of the image's own. Any other launch has a
first process of the market's, which runs `onstart` at every start and stays after it. The image itself does not exist:
a command finds the programs of this machine.
"""

from collections.abc import Callable, Mapping
from typing import Any

from agent.simulator.processes import simulated_gpus
from agent.simulator.processes.container_process import Start
from agent.simulator.processes.process_registry import ProcessRegistry
from agent.simulator.processes.simulated_gpus import SimulatedGpus
from agent.simulator.vast.model import Contract

_ADDRESS = "127.0.0.1"


def launcher(
    registry: ProcessRegistry, key_of: Callable[[int], str], lies: Mapping[int, Mapping[str, Any]]
) -> Callable[[Contract], None]:
    """Return the function that starts the real processes of a contract; `key_of` gives the key of its container.

    `lies` are the weather's lies about GPUs, the newest last.
    """

    def launch(contract: Contract) -> None:
        """Start the first process of a contract's container, with the variables that this market sets."""
        process = registry.made(f"vast-{contract.contract_id}", contract.ports, has_volume=False)
        contract.process = process
        env = {
            **contract.env,
            "CONTAINER_ID": str(contract.contract_id),
            "CONTAINER_API_KEY": key_of(contract.contract_id),
            "VAST_CONTAINERLABEL": f"C.{contract.contract_id}",
            "PUBLIC_IPADDR": _ADDRESS,
            simulated_gpus.VARIABLE: _gpus(contract, lies).driver_value,
        }
        has_command = "args" in contract.runtype.split()
        start = Start(contract.args if has_command else (), "" if has_command else contract.onstart or "", env)
        registry.start(process, start, port_names=["VAST_TCP_PORT_{}"])

    return launch


def _gpus(contract: Contract, lies: Mapping[int, Mapping[str, Any]]) -> SimulatedGpus:
    """Return the GPUs that the driver of a contract's container shows."""
    host = contract.slice.host
    name, count = simulated_gpus.driver_name(host.gpu.name), len(contract.slice.gpus)
    truth = SimulatedGpus(name, count, host.gpu.vram_mb, host.driver, host.gpu.max_power)
    return simulated_gpus.shown(truth, host.machine_id, lies.values())
