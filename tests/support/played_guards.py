"""Guards of simulated containers, played: they leave in the bucket what real ones leave, on the world's clock.

Real guards do the same in tests/guard/test_next_task.py. A played one works for some minutes and is done; with a next
task in its folder it goes on with that, as often as there is one.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from agent.guard.tasks import task_watch
from agent.simulator.vast.model import Contract
from tests.support.played_bucket import PlayedBucket
from tests.support.world import Rehearsed


@dataclass
class PlayedGuard:
    """One container's guard, and the tasks that it has begun, as (slot, run, values of the slot)."""

    lease: str
    root: str
    begun_at: float
    tasks: list[tuple[str, str]] = field(default_factory=list)
    ended_at: float | None = None
    beats: int = 0


@dataclass
class PlayedGuards:
    """The guards of every container that runs. `minutes` is the length of a task, `deaf` are those that take none."""

    world: Rehearsed
    bucket: PlayedBucket
    minutes: float = 6.0
    deaf: bool = False
    guards: dict[int, PlayedGuard] = field(default_factory=dict)

    async def cycle(self, minutes: float) -> None:
        """Run the world for some minutes, with its guards."""
        until = self.world.clock.monotonic() + minutes * 60
        while self.world.clock.monotonic() < until:
            await self.step()

    async def until(self, is_reached: Callable[[], Awaitable[bool]], minutes: float = 240.0) -> None:
        """Run the world with its guards until a condition is true. Fail if that takes longer than these minutes."""
        limit = self.world.clock.monotonic() + minutes * 60
        while not await is_reached():
            assert self.world.clock.monotonic() < limit, f"not reached within {minutes} minutes: {self.world.told()}"
            await self.step()

    async def step(self) -> None:
        """Run one cycle of the program after the guards had their turn."""
        self.play()
        await self.world.cycle()

    def play_alone(self, minutes: int) -> None:
        """Let guards go on for some minutes in which the program sleeps."""
        for _ in range(minutes):
            self.world.clock.advance(60.0)
            self.play()

    def play(self) -> None:
        """Give the guards their turn."""
        now = self.world.clock.time()
        self.world.market.advance_to(now)
        for contract in self.world.live():
            # An instance of another daemon has no guard that is played here.
            if contract.status == "running" and "GPUBID_GUARD" in contract.env:
                self._live(contract, now)

    def done(self) -> list[str]:
        """Return the slots whose work was done, in the order in which guards ended it."""
        ends = [(guard, each) for guard in self.guards.values() for each, _ in guard.tasks]
        return [slot for guard, slot in ends if guard.ended_at is not None or slot != guard.tasks[-1][0]]

    def _live(self, contract: Contract, now: float) -> None:
        guard = self.guards.get(contract.contract_id)
        if guard is None:
            told = json.loads(contract.env["GPUBID_GUARD"])
            guard = PlayedGuard(told["lease"], told["bucket"]["root"], now)
            self.guards[contract.contract_id] = guard
            guard.tasks.append((contract.env["GPUBID_SLOT"], contract.env.get("LR", "")))
        elif guard.ended_at is not None and now - guard.ended_at < task_watch.WAITS_SECONDS and not self.deaf:
            self._go_on(guard, now)
        if guard.ended_at is None and now - guard.begun_at >= self.minutes * 60:
            guard.ended_at = now
            end = {"version": 1, "lease": guard.lease, "code": 0, "done": True}
            assert f"{guard.root}/end.json" not in self.bucket.objects, "a task was done twice"
            self._put(f"{guard.root}/end.json", end)
        guard.beats += 1
        phase = "running" if guard.ended_at is None else "done"
        beat = {"version": 1, "sequence": guard.beats, "lease": guard.lease, "phase": phase}
        self._put(f"{guard.root}/beat-{guard.lease}.json", beat)

    def _go_on(self, guard: PlayedGuard, now: float) -> None:
        note = self.bucket.objects.get(f"{guard.root}/next-{guard.lease}.json")
        if note is None:
            return
        task = json.loads(note)
        guard.lease, guard.root, guard.begun_at, guard.ended_at = task["lease"], task["root"], now, None
        assert f"{guard.root}/end.json" not in self.bucket.objects, "a task that is done begins again"
        guard.tasks.append((task["variables"]["GPUBID_SLOT"], task["variables"].get("LR", "")))

    def _put(self, path: str, note: dict[str, object]) -> None:
        self.bucket.put(path, json.dumps(note).encode())
