"""RunPod's own package, PyPI `runpod` 1.12.0, works against the simulator unmodified: every call it has for pods.

It runs in an environment of its own, .venv-runpod (`make sdk`): it and Vast.ai's package ask for different versions of
`cryptography`.
"""

import pathlib

import pytest

from tests.support import sdk
from tests.support.pods import A4000, Pods

pytestmark = pytest.mark.skipif(not sdk.PYTHON.exists(), reason="RunPod's package is not here (make sdk)")

LIFE = """
import json
import runpod
runpod.api_key = "simulated-key"
said = {"user": runpod.get_user(), "gpus": runpod.get_gpus(), "gpu": runpod.get_gpu("NVIDIA RTX A4000", 2)}
made = runpod.create_pod("sdk1", "ubuntu:22.04", "NVIDIA RTX A4000", cloud_type="SECURE", gpu_count=1, volume_in_gb=10,
    container_disk_in_gb=10, ports="22/tcp,8888/http",
    env={"A": "b"}, allowed_cuda_versions=["12.4", "12.6", "12.8", "13.0"])
said["made"] = made
said["cpu"] = runpod.create_pod("sdk2", "ubuntu:22.04", instance_id="cpu3c-2-4")
said["volume"] = runpod.create_pod("sdk3", "ubuntu:22.04", "NVIDIA RTX A4000", network_volume_id="nv1")
said["pods"] = runpod.get_pods()
said["pod"] = runpod.get_pod(made["id"])
said["stopped"] = runpod.stop_pod(made["id"])
said["resumed"] = runpod.resume_pod(made["id"], 1)
said["terminated"] = runpod.terminate_pod(made["id"])
said["gone"] = runpod.get_pod(made["id"])
print(json.dumps(said))
"""

REFUSED = """
import json
import runpod
from runpod.error import AuthenticationError, QueryError
runpod.api_key = "simulated-key"
said = {}
for name, call in {
    "sold_out": lambda: runpod.create_pod("a", "b", "NVIDIA RTX A4000", gpu_count=500),
    "quotes": lambda: runpod.create_pod("a", "b", "NVIDIA RTX A4000", docker_args='bash -c "x"'),
    "terminate": lambda: runpod.terminate_pod("nothing"),
    "no_gpu": lambda: runpod.get_gpu("NVIDIA Abacus"),
}.items():
    try:
        call()
    except (QueryError, ValueError) as error:
        said[name] = [type(error).__name__, str(error)]
runpod.api_key = "rpa_wrong"
try:
    runpod.get_pods()
except AuthenticationError as error:
    said["key"] = [type(error).__name__, ""]
print(json.dumps(said))
"""


async def test_every_call_in_one_life(pods: Pods, tmp_path: pathlib.Path) -> None:
    center = next(host.center_id for host in pods.world.hosts.values() if host.gpu.type_id == A4000)
    pods.world.volumes.create("data", 10, center or "", "nv1")
    said = await sdk.run(pods.simulator.runpod_url, tmp_path, LIFE)
    assert said["user"]["id"] == pods.world.account_id
    assert [volume["id"] for volume in said["user"]["networkVolumes"]] == ["nv1"]
    assert len(said["gpus"]) == 39
    assert said["gpu"]["lowestPrice"]["uninterruptablePrice"] in (0.34, 0.48)
    made = said["made"]["id"]
    assert said["made"]["env"] == ["A=b"]
    assert [pod["name"] for pod in said["pods"]] == ["sdk1", "sdk2", "sdk3"]
    assert (said["pod"]["id"], said["pod"]["podType"], said["pod"]["gpuCount"]) == (made, "RESERVED", 1)
    assert said["stopped"] == {"id": made, "desiredStatus": "EXITED"}
    assert said["resumed"]["desiredStatus"] == "RUNNING"
    assert (said["terminated"], said["gone"]) == (None, None)
    told = {row["id"]: row for row in (await pods.truth())["contracts"]}
    assert told[made]["end_cause"] == "destroyed"
    assert [told[said[name]["id"]]["ended"] for name in ("cpu", "volume")] == [None, None]


@pytest.mark.nightly
async def test_refusals_reach_the_caller_as_the_packages_own_errors(pods: Pods, tmp_path: pathlib.Path) -> None:
    said = await sdk.run(pods.simulator.runpod_url, tmp_path, REFUSED)
    assert said["sold_out"][0] == said["quotes"][0] == said["terminate"][0] == "QueryError"
    assert "no longer any instances" in said["sold_out"][1]
    assert said["terminate"][1] == "pod not found to terminate"
    assert said["no_gpu"][0] == "ValueError"
    assert said["key"][0] == "AuthenticationError"
