"""What runs in a contract's container, and which variables this market sets in it.

The arguments of a create that asks for `args` are the container's first process, in place of the image's own. Any other
launch keeps a process of the market's, which runs `onstart` at every start and stays when that ends. The image is not
there: a command finds the programs of this machine.
"""

from collections.abc import Callable

from agent.simulator.market_model import Contract
from agent.simulator.processes.container_process import Start
from agent.simulator.processes.process_registry import ProcessRegistry

_ADDRESS = "127.0.0.1"


def launcher(registry: ProcessRegistry, key_of: Callable[[int], str]) -> Callable[[Contract], None]:
    """Return the function that starts the real processes of a contract; `key_of` gives the key of its container."""

    def launch(contract: Contract) -> None:
        """Start the first process of a contract's container, with the variables that this market sets."""
        made = registry.made(f"vast-{contract.contract_id}", contract.ports, has_volume=False)
        contract.process = made
        env = {
            **contract.env,
            "CONTAINER_ID": str(contract.contract_id),
            "CONTAINER_API_KEY": key_of(contract.contract_id),
            "VAST_CONTAINERLABEL": f"C.{contract.contract_id}",
            "PUBLIC_IPADDR": _ADDRESS,
        }
        has_command = "args" in contract.runtype.split()
        start = Start(contract.args if has_command else (), "" if has_command else contract.onstart or "", env)
        registry.start(made, start, port_names=["VAST_TCP_PORT_{}"])

    return launch
