"""Point 3: whether the work of a slot has truly ended, which is what `done` says where no person said it."""

from collections.abc import Iterable

from agent.domain.slot import Slot
from agent.domain.work.workload import WorkloadKind
from agent.simulator.instances.container_state import Container
from tests.disasters.guards.guard_world import GuardWorld
from tests.disasters.story import Work
from tests.disasters.truth import Box, Truth

ROUNDING_SECONDS = 1.0


class Ends:
    """Remembers how long each slot's containers have worked, and which of them ended by themselves."""

    def __init__(self, truth: Truth, works: Iterable[Work], guards: GuardWorld | None = None) -> None:
        self._truth = truth
        self._guards = guards
        self._works = {work.name: work for work in works}
        self._worked: dict[Slot, float] = {}
        self._exited: set[Slot] = set()

    def see(self) -> None:
        """Take in the instances that run now."""
        for box in self._truth.live:
            if box.slot is not None:
                self.see_one(box, box.slot)

    def see_one(self, box: Box, place: Slot) -> None:
        """Take in one instance of a slot."""
        thing = box.thing
        since = self._truth.now - thing.running_since if thing.running_since is not None else 0.0
        self._worked[place] = max(self._worked.get(place, 0.0), thing.worked + since)
        # A guarded container that ends without a word of its guard was killed, and is not done.
        if thing.holds_gpu and thing.container is Container.EXITED and thing.process is None:
            self._exited.add(place)

    def is_done(self, place: Slot) -> bool:
        """Return whether a batch has printed its last line, or where it prints none, its container has ended.

        Of guarded work nobody knows but its own guards, whatever those of other slots say.
        """
        work = self._works.get(place.workload)
        if work is None or work.kind != WorkloadKind.BATCH.value:
            return False
        if self._guards is not None and work.guard is not None:
            return self._guards.is_called_done(place) or place in self._exited
        if work.ends_after:
            return self._worked.get(place, 0.0) >= work.ends_after - ROUNDING_SECONDS
        return place in self._exited
