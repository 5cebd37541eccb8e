"""What runs in a storm: work that saves when it is asked to, and what it ends with where nothing interrupts it."""

import functools
import json
import shlex
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import recipes, trainer
from tests.support.recipes import Recipe

DISK = "/disk-of-the-instance"
"""In the configuration: a real container's disk has one path everywhere, each simulated one has its own."""
FOLDER = f"{DISK}/ckpt"
TABLE = """\
[workloads.{name}]
image = "alpine:latest"
image_gb = 0.01
disk_gb = 10
slots = {slots}
max_price = 0.8
strategy = "bids"
checkpoint = {{ at = "remote", takes = "10s" }}
kind = "batch"
command = {command}
[workloads.{name}.guard]
paths = {paths}
complete = "{complete}"
bucket = "s3://runs/{name}"
endpoint = "{endpoint}"
credential = "train_bucket"
"""
_LOSS = 1e-6


@dataclass(frozen=True)
class StormyWork:
    """A workload: its slots, its command for a number of steps, and what a checkpoint of it is."""

    name: str
    slots: int
    command: Callable[[int, float], list[str]]
    paths: tuple[str, ...]
    complete: str
    result: Callable[[Path, int], Any]
    """What the files of the last checkpoint, in a folder, say."""
    alone: Callable[[int], Any]
    """What a run of so many steps ends with where nothing interrupts it."""

    def table(self, endpoint: str, steps: int, pause_seconds: float) -> str:
        """Return its table, for the store at an address."""
        return TABLE.format(
            name=self.name,
            slots=self.slots,
            command=json.dumps(shlex.join(self.command(steps, pause_seconds))),
            paths=json.dumps(self.paths),
            complete=self.complete,
            endpoint=endpoint,
        )


def counters(slots: int) -> StormyWork:
    """Return work that counts, in so many slots."""
    return StormyWork(
        name="train",
        slots=slots,
        command=lambda steps, pause: trainer.command(FOLDER, steps, pause),
        paths=(FOLDER,),
        complete="state.json",
        result=lambda folder, _: json.loads((folder / "state.json").read_text())[:2],
        alone=lambda steps: [trainer.final(steps), steps],
    )


def loop() -> StormyWork:
    """Return the handbook's PyTorch loop, in one slot."""
    return _of_recipe("loop", recipes.LOOP, lambda folder, _: recipes.state(folder))


def hugging_face() -> StormyWork:
    """Return the handbook's program for Trainer, in one slot; its result are the losses of all steps."""
    return _of_recipe("trainer", recipes.TRAINER, recipes.losses)


def of_all_kinds() -> list[StormyWork]:
    """Return three slots of work, one of each kind."""
    return [counters(1), loop(), hugging_face()]


def _of_recipe(name: str, recipe: Recipe, result: Callable[[Path, int], Any]) -> StormyWork:
    @functools.cache
    def alone(steps: int) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            recipe.run(Path(folder), steps)
            found = result(Path(folder), steps)
        return pytest.approx(found, abs=_LOSS, rel=0) if isinstance(found, list) else found

    settings = recipe.settings(FOLDER)
    return StormyWork(
        name=name,
        slots=1,
        command=lambda steps, pause: recipe.command(FOLDER, steps, pause),
        paths=tuple(settings["paths"]),
        complete=settings["complete"],
        result=result,
        alone=alone,
    )
