"""The start of a pod's container: its first process, and the variables that this market sets in it.

The pod's arguments are the container's first process, which the host starts again when it ends. The image itself does
not exist: a command finds the programs of this machine. A pod without arguments, which would run the image's own
command, runs nothing.
"""

import shlex
from collections.abc import Callable, Mapping
from typing import Any

from agent.simulator.processes import simulated_gpus
from agent.simulator.processes.container_process import Start
from agent.simulator.processes.process_registry import ProcessRegistry
from agent.simulator.processes.simulated_gpus import SimulatedGpus
from agent.simulator.runpod.model import Pod

_ADDRESS = "127.0.0.1"


def launcher(
    registry: ProcessRegistry, key_of: Callable[[str], str], lies: Mapping[int, Mapping[str, Any]]
) -> Callable[[Pod], None]:
    """Return the function that starts the real processes of a pod; `key_of` gives the key of its container.

    `lies` are the weather's lies about GPUs, the newest last.
    """

    def launch(pod: Pod) -> None:
        """Make the pod's disk and ports, and start its command with the variables that RunPod sets."""
        shared = f"volume-{pod.terms.network_volume}" if pod.terms.network_volume else ""
        process = registry.made(f"runpod-{pod.pod_id}", pod.ports, has_volume=pod.volume_gb > 0, shared=shared)
        pod.process = process
        env = {
            **pod.env,
            "RUNPOD_POD_ID": pod.pod_id,
            "RUNPOD_API_KEY": key_of(pod.pod_id),
            "RUNPOD_POD_HOSTNAME": f"{pod.pod_id}-{pod.host.machine_id:08x}",
            "RUNPOD_DC_ID": pod.host.center_id or "",
            "RUNPOD_GPU_COUNT": str(pod.gpu_count),
            "RUNPOD_PUBLIC_IP": _ADDRESS,
            simulated_gpus.VARIABLE: _gpus(pod, lies).driver_value,
        }
        registry.start(process, Start(_words(pod.args), env=env), port_names=["RUNPOD_TCP_PORT_{}"])

    return launch


def _gpus(pod: Pod, lies: Mapping[int, Mapping[str, Any]]) -> SimulatedGpus:
    """Return the GPUs that the driver of a pod's container shows. The market names each model as drivers do."""
    truth = SimulatedGpus(pod.host.gpu.type_id, pod.gpu_count, 1024 * pod.host.gpu.memory_gb)
    return simulated_gpus.shown(truth, pod.host.machine_id, lies.values())


def _words(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError:
        # A shell would refuse it too. The container prints an error and ends.
        return [arguments]
