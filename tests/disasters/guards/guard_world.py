"""Every guard of a story, the truth about its work, and the claims of its host about it."""

import dataclasses
from collections.abc import Callable
from typing import Any

from agent.domain.market import gpu
from agent.domain.market.gpu import GpuModel
from agent.domain.slot import Slot
from agent.guard import bucket_notes, guard_settings
from agent.guard.bucket_notes import BucketNotes
from agent.guard.checkpoints import manifest as manifests
from agent.guard.checkpoints.manifest import WrongManifest
from agent.simulator.market_model import Refusal
from agent.simulator.processes import simulated_gpus
from agent.simulator.runpod.model import Pod, Refused
from agent.simulator.vast.model import Contract
from tests.disasters.guards.bucket import Bucket, GuardSide
from tests.disasters.guards.scripted_guard import ScriptedGuard
from tests.disasters.story import Story
from tests.disasters.truth import Box
from tests.support.scene import FLEET
from tests.support.steered import Simulator

RESTART_SECONDS = 10.0
"""A pod whose container ended starts it again."""
NOTICE_SECONDS = 10.0
"""The time between SIGTERM and SIGKILL of an evicted container, in worlds that give a notice."""


class GuardWorld:
    """Starts guards in the containers whose command starts one."""

    def __init__(self, story: Story, simulator: Simulator) -> None:
        self.bucket = Bucket()
        self.guards: dict[str, ScriptedGuard] = {}
        """By the id of the intent that rented the instance."""
        self.done: dict[str, float] = {}
        """When the bucket got the end of work that is truly done, by the run's folder."""
        self.claimed: set[str] = set()
        """The folders of runs that a host called done."""
        self.check_lies: set[str] = set()
        self.refused: set[tuple[str, GpuModel]] = set()
        """Hosts of Vast, each with its model, whose last check in the bucket was a lie."""
        self._works = {work.name: work.guard for work in story.works if work.guard is not None}
        self._simulator = simulator
        worlds: tuple[Any, ...] = (simulator.world, simulator.pods)
        for market, world in zip(("vast", "runpod"), worlds, strict=True):
            world.containers.run_processes(self._launcher(market, world))
            if any(guard.is_warned for guard in self._works.values()):
                world.containers.notice_seconds = NOTICE_SECONDS

    def guard_of(self, box: Box) -> ScriptedGuard | None:
        """Return the guard of an instance, once it began."""
        process = box.thing.process
        return process if isinstance(process, ScriptedGuard) else None

    def is_called_done(self, place: Slot) -> bool:
        """Return whether the work of a slot is done, or a host of it says so."""
        return any(slot_of(root) == place for root in (*self.done, *self.claimed))

    def best(self, root: str) -> float:
        """Return the highest count of a checkpoint of a run that the bucket truly and wholly has; 0 without one."""
        objects, best = self.bucket.store.objects, 0.0
        for key in [key for key in objects if key.startswith(f"{root}/ckpt/") and key.endswith(".json")]:
            try:
                made = manifests.read(bucket_notes.parsed(objects[key].body), key[len(root) + 1 :])
            except WrongManifest:
                continue
            parts = ((objects.get(f"{root}/ckpt/{made.id}/{file.path}"), file.sha256) for file in made.files)
            if all(there is not None and there.tag == digest for there, digest in parts):
                best = max(best, made.progress or 0.0)
        return best

    def calm(self) -> None:
        """Let the bucket answer and hosts report the truth."""
        self.bucket.calm()
        self.check_lies.clear()
        for guard in self.guards.values():
            guard.lies.clear()

    def _launcher(self, market: str, world: Any) -> Callable[[Any], None]:
        def launch(thing: Contract | Pod) -> None:
            if "GPUBID_GUARD" not in thing.env:
                return
            guard = thing.process if isinstance(thing.process, ScriptedGuard) else self._made(market, world, thing)
            if guard is not None:
                for lie in self.check_lies:
                    guard.lies.tell(lie)
                thing.process = guard
                guard.start()

        return launch

    def _made(self, market: str, world: Any, thing: Contract | Pod) -> ScriptedGuard | None:
        number, key = ("CONTAINER_ID", "CONTAINER_API_KEY") if market == "vast" else ("RUNPOD_POD_ID", "RUNPOD_API_KEY")
        rented = {**thing.env, number: str(thing.contract_id), key: "own-key"}
        settings = guard_settings.read(rented)
        script = self._works.get(settings.bucket.root.partition("/")[0]) if settings.bucket is not None else None
        if settings.bucket is None or script is None:
            return None
        timeline = world._timeline
        side = GuardSide(self.bucket, lambda: timeline.now, lambda: thing.is_offline)
        ground = Ground(self, market, world, thing)
        guard = ScriptedGuard(rented, settings, script, BucketNotes(side, settings.bucket.root), ground)
        self.guards[settings.lease] = guard
        return guard


@dataclasses.dataclass(slots=True)
class Ground:
    """The world around one container."""

    guards: GuardWorld
    market: str
    world: Any
    thing: Contract | Pod

    @property
    def gpu(self) -> str:
        """Return the model, as its driver writes it."""
        gpu: Any = self.thing.host.gpu
        return str(gpu.type_id) if self.market == "runpod" else simulated_gpus.driver_name(gpu.name)

    @property
    def memory_mb(self) -> int:
        """Return the memory of a GPU."""
        gpu: Any = self.thing.host.gpu
        return int(1024 * gpu.memory_gb if self.market == "runpod" else gpu.vram_mb)

    def now(self) -> float:
        """Return the world's time."""
        return float(self.world._timeline.now)

    def put(self, at: float, act: Callable[[], None]) -> None:
        """Let something happen at a time."""
        self.world._timeline.put(at, act)

    def exit(self) -> None:
        """Let the container end: a pod's is started again at once, that of a contract stays ended."""
        guard = self.thing.process
        if self.market == "vast":
            self.world.containers.exit(self.thing, None)
        elif isinstance(guard, ScriptedGuard):
            guard.kill()
            starts = guard.starts

            def again() -> None:
                if guard.starts == starts and self.thing.running_since is not None:
                    guard.start()

            self.put(self.now() + RESTART_SECONDS, again)

    def end(self, *, destroys: bool) -> None:
        """Ask the market to stop the instance, or to end it, by the instance's own key."""
        thing = self.thing
        try:
            if isinstance(thing, Pod):
                (self.world.terminate if destroys else self.world.stop)(thing.pod_id)
            else:
                (self.world.destroy if destroys else self.world.stop)(thing.contract_id)
        except (Refusal, Refused):
            return

    def note_check(self, *, is_true: bool) -> None:
        """See that the bucket has a check of the host."""
        if self.market == "vast":
            change = self.guards.refused.discard if is_true else self.guards.refused.add
            change((str(self.thing.host.machine_id), gpu.model(self.thing.host.gpu.name)))

    def note_done(self, root: str) -> None:
        """See that work is done, and that the bucket has its end."""
        self.guards.done.setdefault(root, self.now())


def slot_of(root: str) -> Slot:
    """Return the slot of a run's folder in the bucket."""
    _, _, name, index, _ = root.split("/")
    return Slot(name, int(index))


def root_of(name: str, index: int, run: int) -> str:
    """Return the folder of a run in the bucket."""
    return f"{name}/{FLEET}/{name}/{index}/{run}"
