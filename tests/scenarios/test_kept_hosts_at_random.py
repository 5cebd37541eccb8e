"""Arrays that keep their hosts, under events drawn at random: each task is done once, and no slot is filled twice."""

import contextlib
import random
from collections import Counter
from pathlib import Path

import pytest

from agent.act import crashpoint
from agent.domain.record.hold import Word
from agent.domain.record.lease import LeaseState
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.order import Order
from tests.scenarios.test_kept_hosts import done, marked, played
from tests.scenarios.test_kept_hosts_cut_off import Killed
from tests.support.played_guards import PlayedGuards
from tests.support.world import Rehearsed

SLOTS = 5
OFTEN = 0.06
"""The chance of an event in one cycle."""


class Trouble:
    """Draws what happens to a world, and ends it again."""

    def __init__(self, seed: int, world: Rehearsed, guards: PlayedGuards, patched: pytest.MonkeyPatch) -> None:
        self._draw = random.Random(seed)
        self._world = world
        self._guards = guards
        self._rivals: list[int] = []
        self._places: list[str] = []
        self._is_resumed = False
        patched.setattr(crashpoint, "reached", self._reached)

    def _reached(self, step: str, kind: str) -> None:
        if self._places and f"{step}:{kind}" == self._places[0]:
            raise Killed(self._places.pop())

    async def step(self) -> None:
        """Run one cycle; a program that was killed in it is started again."""
        if self._draw.random() < OFTEN:
            self._happens()
        try:
            await self._guards.step()
        except Killed:
            await self._world.restart(self._draw.choice([1.0, 60.0, 600.0]))
        if self._is_resumed:
            # A host that is gone leaves a slot for a person.
            self._is_resumed = False
            for held in marked(self._world, Word.HELD):
                await self._world.app.say(Order("resume", held), "a person")

    def _happens(self) -> None:
        live = self._world.live()
        event = self._draw.choice(["deaf", "crash", "crash", "rival", "gone", "still"])
        if event == "deaf":
            self._guards.deaf = not self._guards.deaf
        elif event == "crash":
            steps = ["resolved:reassign", "told:reassign", "sent:rent", "sent:release", "resolved:release"]
            self._places = [self._draw.choice(steps)]
        elif event == "rival" and live:
            self._rivals.append(self._world.rival(self._draw.choice(live).slice.machine_id, bid=0.5))
        elif event == "gone" and live:
            self._world.weather("host_gone", machine_id=self._draw.choice(live).slice.machine_id)
        elif event == "still":
            self._is_resumed = True
            for rival in self._rivals:
                self._world.market.remove_rival(rival)
            self._rivals, self._guards.deaf = [], False


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2, 21))])
async def test_each_task_is_done_once_and_no_slot_has_two_running_leases(tmp_path: Path, seed: int) -> None:
    at_once = ArrayTerms(2, task_hours=0.1)
    async with played(tmp_path, slots=SLOTS, array=at_once) as (world, guards):
        with pytest.MonkeyPatch.context() as patched:
            trouble = Trouble(seed, world, guards, patched)
            limit = world.clock.monotonic() + 8 * 3600
            while len(done(world)) < SLOTS:
                assert world.clock.monotonic() < limit, world.told()
                await trouble.step()
                running = [lease for lease in world.leases() if lease.state is LeaseState.RUNNING]
                assert max(Counter(lease.slot for lease in running).values(), default=0) <= 1
                assert not {str(lease.slot) for lease in running if lease.is_reassigned} & set(map(str, _over(world)))
        with contextlib.suppress(Killed):
            await guards.cycle(10)
        assert sorted(guards.done()) == [str(slot) for slot in range(SLOTS)]
        assert not world.live()


def _over(world: Rehearsed) -> list[str]:
    """Return the slots that the last plan had as done: a lease of one was released in that cycle."""
    decisions = world.plans[-2].decisions if len(world.plans) > 1 else ()
    return [str(each.slot) for each in decisions if each.reason.code == "done" and not hasattr(each, "lease")]
