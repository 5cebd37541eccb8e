"""The `nvidia-smi` of a container of either market: the truth of its host, or a lie of the weather."""

import dataclasses
import shlex
from pathlib import Path

import pytest

from tests.support import counter
from tests.support.container_scene import Scene, real_market
from tests.support.pods import A4000, OF_THE_PAST, running_pods
from tests.support.programs import until

ASKED = "nvidia-smi --query-gpu=name,memory.total,ecc.errors.uncorrected.volatile.total --format=csv,noheader,nounits"


async def seen(scene: Scene, question: str) -> list[str]:
    """Return a program's output in a new container, with its exit code last."""
    made = await scene.started(runtype="args", args=["sh", "-c", f"{question}; echo code $?; sleep 600"])

    async def log() -> list[str]:
        lines = await scene.log(made)
        return lines if any(line.startswith("code ") for line in lines) else []

    return list(await until(log, "an exit code"))


async def test_a_driver_shows_the_cards_of_the_host_until_the_weather_lies(tmp_path: Path) -> None:
    async with real_market(tmp_path) as scene:
        *rows, code = await seen(scene, ASKED)
        (contract,) = scene.market.world.live_contracts()
        card = contract.slice.host.gpu
        assert (len(rows), code) == (len(contract.slice.gpus), "code 0")
        name, memory, errors = rows[0].split(", ")
        assert name.startswith("NVIDIA ")
        assert name.endswith(card.name)
        assert (memory, errors) == (str(card.vram_mb), "[N/A]")
        await scene.market.weather("gpu_lie", machine_id=1, gpu="of another host")
        lie = await scene.market.weather("gpu_lie", gpu="NVIDIA GeForce GTX 1070", gpus=2, errors=3)
        first, second, _ = await seen(scene, ASKED)
        assert first == second
        assert [*first.split(", ")[::2], first.split(", ")[2]] == ["NVIDIA GeForce GTX 1070", "3", "3"]
        await scene.market.control("DELETE", f"/weather/{lie}")
        assert "1070" not in (await seen(scene, ASKED))[0]


@pytest.mark.parametrize(
    ("question", "lines"),
    [
        (
            "nvidia-smi --query-gpu=name,clocks_event_reasons.active --format=csv",
            ['Field "clocks_event_reasons.active" is not a valid field to query.', "", "code 2"],
        ),
        (
            "SIM_GPUS= nvidia-smi",
            ["NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "code 9"],
        ),
        ("nvidia-smi --query-gpu=count,pcie.link.gen.max --format=csv", ["count, pcie.link.gen.max", "1, 4", "code 0"]),
    ],
)
async def test_it_answers_as_the_drivers_program_does(tmp_path: Path, question: str, lines: list[str]) -> None:
    async with real_market(tmp_path) as scene:
        assert await seen(scene, question) == lines


async def test_a_pod_has_one_too(tmp_path: Path) -> None:
    async with running_pods(
        dataclasses.replace(OF_THE_PAST, processes=True), registry=counter.Registry(tmp_path)
    ) as pods:
        words = ["sh", "-c", f"{ASKED} > gpus.new; mv gpus.new gpus; sleep 600"]
        made = await pods.created(args=shlex.join(words), mounts={"persistent": {"size": 20, "path": "/workspace"}})
        await pods.running(made)

        async def told() -> str:
            return read(tmp_path / f"runpod-{made}" / "workspace" / "gpus")

        name, memory, _ = (await until(told, "an answer")).split(", ")
        assert (name, memory) == (A4000, "16384")


def read(file: Path) -> str:
    return file.read_text() if file.exists() else ""
