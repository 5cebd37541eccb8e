"""The handbook's training programs under the guard: killed at many points and moved, they end as if never interrupted.

PyTorch and Trainer run on the CPU, with tiny models; guard, work and S3 server are programs of their own.
"""

import contextlib
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.guard.bucket_notes import BucketNotes
from agent.guard.checkpoints import checkpoint_restore
from agent.guard.checkpoints.checkpoint_list import CheckpointList
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_settings import BucketPlace
from agent.guard.s3.s3_objects import S3Objects
from tests.support import recipes, s3_servers, store_proxy
from tests.support.guarded import ROOT, Guarded, Instance
from tests.support.recipes import LOOP, TRAINER, Recipe
from tests.support.s3_servers import Store
from tests.support.store_proxy import CUT, StoreProxy

INTERVAL_SECONDS = 15
"""Of the guard's time, 0.3 s of ours."""
PAUSE_SECONDS = 0.02
MOST_STEPS_OF_A_START = 40
SERVER = "s3rver" if s3_servers.HERE["s3rver"] else "moto"

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not recipes.IS_HERE, reason=recipes.WHY_NOT),
]


class Kills:
    """Starts of one recipe, each killed at a random point: on the disk of the one before or, after a move, on none."""

    def __init__(self, recipe: Recipe, steps: int, place: Path, proxy: StoreProxy, seed: int) -> None:
        self._recipe = recipe
        self._steps = steps
        self._place = place
        self._proxy = proxy
        self._draw = random.Random(seed)
        self._moves = 0
        self._instance = Instance(place / "host-0")
        self.points: list[str] = []

    def start_and_kill(self, *, has_manifest: bool) -> None:
        """Start it, and see it die in the middle of a step, of a checkpoint or of an upload."""
        is_moved = bool(self.points) and self._draw.random() < 0.4
        if is_moved:
            self._moves += 1
            self._instance = Instance(self._place / f"host-{self._moves}")
        kind = self._draw.choice(["step", "write", "request"])
        step = self._draw.randrange(1, MOST_STEPS_OF_A_START)
        point = {"step": f"step:{step}", "write": f"write:{self._draw.randrange(1, 30)}"}.get(kind)
        requests = self._draw.randrange(3, 40) if point is None else None
        with self.started(has_manifest=has_manifest, KILL=point or f"step:{MOST_STEPS_OF_A_START}") as guard:
            if requests is not None:
                self._proxy.fault = _killer(guard, requests, is_after=self._draw.random() < 0.5)
            assert guard.ended() == -signal.SIGKILL, guard.text()
        self._proxy.fault = lambda _method, _path: None
        self._proxy.settle()
        self.points.append(f"{'an empty disk, ' if is_moved else ''}{point or f'request:{requests}'}")

    def finish(self) -> None:
        """Start it a last time, and let it end."""
        with self.started(has_manifest=True, pause_seconds=0.0) as guard:
            guard.phase("done")

    @contextlib.contextmanager
    def started(self, *, has_manifest: bool, pause_seconds: float = PAUSE_SECONDS, **env: str) -> Iterator[Guarded]:
        """Start the recipe under the guard with the settings of its table."""
        folder = self._instance.work / "ckpt"
        told: dict[str, Any] = {
            **self._recipe.settings(folder),
            "interval_seconds": INTERVAL_SECONDS,
            "lease": f"L{self._moves}",
            "manifest_exists": has_manifest,
            "bucket": self._proxy.behind.place(ROOT, endpoint=self._proxy.url),
        }
        env = {**recipes.ENVIRONMENT, "HOME": str(self._place), **env}
        command = self._recipe.command(folder, self._steps, pause_seconds)
        with self._instance.started(*command, env=env, store=self._proxy.behind, **told) as guard:
            yield guard


def _killer(guard: Guarded, left: int, *, is_after: bool) -> store_proxy.Fault:
    """Return a fault that kills the guard, and by that the work, at a request; the store has it or has it not."""
    requests = iter(range(left, 0, -1))

    def strike(_method: str, path: str) -> str | None:
        # It looks for orders and beats while the work only begins.
        if "/beat-" in path or "order.json" in path or next(requests, None) != 1:
            return None
        os.kill(guard.process.pid, signal.SIGKILL)
        return None if is_after else CUT

    return strike


@contextlib.contextmanager
def reader(store: Store) -> Iterator[BucketNotes]:
    place = BucketPlace(store.url, "us-east-1", s3_servers.BUCKET, ROOT, s3_servers.KEY_ID, s3_servers.SECRET, "")
    objects = S3Objects(place, GuardClock())
    yield BucketNotes(objects, ROOT)
    objects.close()


def killed(recipe: Recipe, points: int, place: Path) -> Path:
    """Kill a recipe at so many points, let it end, and return a folder with the bucket's content."""
    steps = points * MOST_STEPS_OF_A_START
    with (
        s3_servers.running(SERVER, place / "store") as store,
        store_proxy.before(store) as proxy,
        reader(store) as notes,
    ):
        kills = Kills(recipe, steps, place, proxy, seed=1)
        checkpoints = CheckpointList(notes, "test")
        reached: list[float | None] = []
        for _ in range(points):
            kills.start_and_kill(has_manifest=checkpoints.newest() is not None)
            newest = checkpoints.newest()
            reached.append(newest.progress if newest is not None else None)
            print(f"{kills.points[-1]}: the bucket has step {reached[-1]}", flush=True)
        kills.finish()
        newest = checkpoints.newest()
        assert newest is not None
        assert newest.progress == steps
        assert len(set(reached)) > points / 4, "hardly a start came further: this proves little"
        (place / "end").mkdir()
        paths = recipe.settings(place / "end")["paths"]
        checkpoint_restore.restore(notes, newest, paths)
    return place / "end"


@pytest.mark.long(120)
def test_the_loop_that_was_killed_ends_bit_for_bit_as_one_that_was_not(tmp_path: Path) -> None:
    points = 30
    LOOP.run(tmp_path / "alone", points * MOST_STEPS_OF_A_START)
    assert recipes.state(killed(LOOP, points, tmp_path)) == recipes.state(tmp_path / "alone")


@pytest.mark.long(120)
def test_the_losses_of_a_trainer_that_was_killed_are_those_of_one_that_was_not(tmp_path: Path) -> None:
    points = 15
    steps = points * MOST_STEPS_OF_A_START
    TRAINER.run(tmp_path / "alone", steps)
    alone = recipes.losses(tmp_path / "alone", steps)
    interrupted = recipes.losses(killed(TRAINER, points, tmp_path), steps)
    print("largest difference of a loss:", max(abs(one - two) for one, two in zip(alone, interrupted, strict=True)))
    assert interrupted == pytest.approx(alone, abs=1e-6, rel=0)
