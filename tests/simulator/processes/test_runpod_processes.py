"""Real processes in RunPod's pods, over its real HTTP APIs: stops, volumes, evictions, restarts, logs."""

import asyncio
import contextlib
import dataclasses
import json
import shlex
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.support import counter, levers
from tests.support.pods import A4000, OF_THE_PAST, Pods, running_pods
from tests.support.programs import until

REAL = dataclasses.replace(OF_THE_PAST, processes=True)
VOLUME = {"persistent": {"size": 20, "path": "/workspace"}}
BID = """mutation {{ podRentInterruptable(input: {{bidPerGpu: 0.2, gpuCount: 1, gpuTypeId: "{gpu}", name: "exp1",
imageName: "ubuntu:22.04", cloudType: COMMUNITY, containerDiskInGb: 20, volumeInGb: 20, dockerArgs: {args}}})
{{ id }} }}"""


@dataclasses.dataclass(frozen=True)
class Scene:
    """A market whose pods are real, the folder of their disks, and a word in the command lines."""

    pods: Pods
    folder: Path
    mark: str

    async def started(self, command: list[str], **fields: Any) -> str:
        """Make a pod and wait until its container runs."""
        made = await self.pods.created(args=shlex.join(command), **fields)
        await self.pods.running(made)
        return made

    async def first_line(self, pod_id: str) -> str:
        """Follow the log's stream until its first line comes."""
        url = f"{self.pods.simulator.runpod_url}/v2/pods/{pod_id}/logs"
        headers = {"Authorization": f"Bearer {self.pods.simulator.runpod.key}"}
        async with self.pods.session.get(url, headers=headers) as answer:
            coming = asyncio.ensure_future(answer.content.readuntil(b"\n\n"))

            async def has_come() -> bool:
                # The stream looks again whenever the market moves.
                await self.pods.advance(0.0)
                return coming.done()

            await until(has_come, "a line in the log")
        (row,) = (row for row in (await coming).splitlines() if row.startswith(b"data:"))
        return str(json.loads(row[5:])["line"])

    def volume(self, pod_id: str) -> Path:
        return self.folder / f"runpod-{pod_id}" / "workspace"

    def container(self, pod_id: str) -> Path:
        return self.folder / f"runpod-{pod_id}" / "root"


@contextlib.asynccontextmanager
async def real_pods(folder: Path) -> AsyncIterator[Scene]:
    async with running_pods(REAL, registry=counter.Registry(folder)) as pods:
        yield Scene(pods, folder, uuid.uuid4().hex)


async def test_a_stop_kills_and_keeps_the_volume_alone_and_the_end_takes_both(tmp_path: Path) -> None:
    async with real_pods(tmp_path) as scene:
        made = await scene.started(counter.command(scene.mark), mounts=VOLUME)
        await until(lambda: counter.counted(scene.volume(made)), "a count on the volume")
        (scene.container(made) / "cache").touch()
        assert (await scene.pods.act(made, "stop")).status == 200
        assert counter.alive(scene.mark) == []
        assert list(scene.container(made).iterdir()) == []
        count = counter.counted(scene.volume(made))
        await scene.pods.act(made, "start")
        await scene.pods.running(made)
        await until(lambda: counter.counted(scene.volume(made)) > count, "a higher count")
        assert await scene.first_line(made) == f"from {count}"
        await scene.pods.call("DELETE", f"/v2/pods/{made}")
        assert counter.alive(scene.mark) == []
        assert not scene.volume(made).parent.exists()


async def test_an_eviction_is_sigterm_and_five_seconds_later_sigkill(tmp_path: Path) -> None:
    code = (
        "import signal, time\n"
        "def told(*_):\n    open('told', 'w').close()\n"
        "signal.signal(signal.SIGTERM, told)\nopen('ready', 'w').close()\nwhile True: time.sleep(1)"
    )
    async with real_pods(tmp_path) as scene:
        args = json.dumps(shlex.join(counter.python(code, scene.mark)))
        made = (await scene.pods.ask(BID.format(gpu=A4000, args=args)))["podRentInterruptable"]["id"]
        await scene.pods.running(made)
        await until((scene.volume(made) / "ready").exists, "a process that listens to signals")
        machine = next(pod["machine_id"] for pod in (await scene.pods.truth())["contracts"])
        levers.clear_host(scene.pods.world, machine)
        await scene.pods.control("POST", "/rivals", {"machine_id": machine, "bid": 0.3})
        await until((scene.volume(made) / "told").exists, "the notice on the volume")
        assert counter.alive(scene.mark)
        await scene.pods.advance(5.0)
        assert counter.alive(scene.mark) == []
        assert (await scene.pods.show(made))["status"] == "EXITED"
        assert (scene.volume(made) / "told").exists()


async def test_a_command_that_ends_is_started_again_by_the_host(tmp_path: Path) -> None:
    command = ["sh", "-c", "echo once >> starts; wc -l < starts"]
    async with real_pods(tmp_path) as scene:
        made = await scene.started(command, mounts=VOLUME)

        async def starts() -> bool:
            await scene.pods.advance(10.0)
            file = scene.volume(made) / "starts"
            return file.exists() and len(file.read_text().splitlines()) >= 3

        await until(starts, "a third start")
        assert (await scene.pods.show(made))["status"] in {"RUNNING", "STARTING"}


async def test_a_start_command_of_the_first_rest_api_keeps_its_words(tmp_path: Path) -> None:
    async with real_pods(tmp_path) as scene:
        body = {"name": "one", "imageName": "ubuntu:22.04", "gpuTypeIds": [A4000]}
        body["dockerStartCmd"] = ["sh", "-c", "echo 'two words' > said; exec sleep 600"]
        answer = await scene.pods.call("POST", "/v1/pods", body)
        assert answer.status == 201, answer.raw
        made = answer.body["id"]
        await scene.pods.running(made)
        said = scene.volume(made) / "said"
        await until(lambda: said.exists() and said.read_text(), "its words")
        assert said.read_text() == "two words\n"


async def test_the_pod_knows_its_id_and_its_own_key_alone(tmp_path: Path) -> None:
    code = "import json, os, time; print(json.dumps(dict(os.environ)), flush=True); time.sleep(600)"
    async with real_pods(tmp_path) as scene:
        made = await scene.started(counter.python(code), env={"EPOCHS": "3"}, ports=["8080/tcp"], mounts=VOLUME)
        env = json.loads(await scene.first_line(made))
        pod = await scene.pods.show(made)
        assert (env["RUNPOD_POD_ID"], env["EPOCHS"], env["SIM_SPEED"]) == (made, "3", "30")
        assert env["RUNPOD_API_KEY"] == scene.pods.simulator.runpod.pod_key(made)
        assert (env["HOME"], env["SIM_DISK"]) == (str(scene.container(made)), str(scene.volume(made)))
        assert [port["public"] for port in pod["runtime"]["ports"]] == [int(env["RUNPOD_TCP_PORT_8080"])]
        assert scene.pods.simulator.runpod.key not in env.values()
