"""Point 3, too: GPUs that a slot is held or a lease released for as idle were idle in each listing for so long."""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.disasters.guards.container_script import ContainerScript
from tests.disasters.readings import Readings
from tests.disasters.sight import Broken, Sight
from tests.disasters.story import Work
from tests.disasters.truth import Box

HELD = """
SELECT events.event_id, events.reason, leases.market, leases.instance_id
FROM events JOIN leases USING (lease_id)
WHERE events.kind = 'workload.held' AND events.reason LIKE '%its GPUs are used below%' AND events.event_id > ?
ORDER BY events.event_id
"""


class IdleTimes:
    """Remembers when each instance's GPUs were busy in a true listing of its market."""

    def __init__(self, works: Iterable[Work], readings: Readings) -> None:
        self._works = {work.name: work for work in works}
        self._readings = readings
        self._busy: dict[tuple[str, str], list[float]] = {}
        self._last = 0
        self.judged = 0

    @property
    def is_drawn(self) -> bool:
        """Whether any work of the story may be held or released for that."""
        return any(work.idle is not None for work in self._works.values())

    def see(self, sight: Sight) -> None:
        """Take in what the true listings of the last cycle showed of each instance."""
        if not self.is_drawn:
            return
        for market in filter(sight.saw_truly, sight.fresh):
            at = min(sight.began, sight.listed(market))
            for box in sight.truth.boxes.values():
                if box.market == market and self._is_busy(box, at):
                    self._busy.setdefault((box.market, box.instance_id), []).append(at)

    def _is_busy(self, box: Box, at: float) -> bool:
        work = self._works.get(box.label.slot.workload) if box.label is not None else None
        return work is not None and work.idle is not None and _is_busy(box, at, work.idle.after)

    def judge(self, sight: Sight, ledger: Path) -> Iterator[Broken]:
        """Yield every new hold for idle GPUs that is not true."""
        for event, reason, market, instance_id in self._held(ledger):
            self._last = int(event)
            self.judged += 1
            box = sight.truth.boxes.get((market, instance_id))
            why = self.untrue(box, sight.now) if box is not None else "there is no such instance"
            if why:
                yield Broken(3, sight.cycle, f"{market} {instance_id}: held ({reason}), and {why}")

    def _held(self, ledger: Path) -> Iterator[tuple[str, str, str, str]]:
        if self.is_drawn:
            yield from self._readings.rows(ledger, HELD, str(self._last))

    def may_release(self, box: Box, at: float) -> bool:
        """Return whether the rule of its work releases an instance at a time for its idle GPUs."""
        work = self._works.get(box.label.slot.workload) if box.label is not None else None
        is_asked = work is not None and work.idle is not None and work.idle.then == "release"
        return is_asked and not self.untrue(box, at)

    def untrue(self, box: Box, at: float) -> str:
        """Return why the GPUs of an instance were not idle for long enough at a time, or nothing."""
        work = self._works.get(box.label.slot.workload) if box.label is not None else None
        if work is None or work.idle is None:
            return "no work of its story idles"
        busy = [each for each in self._busy.get((box.market, box.instance_id), ()) if each <= at]
        # A container that starts again between two listings is busy for nobody.
        quiet = at - max(busy, default=box.thing.created)
        return "" if quiet >= work.idle.lasts else f"its GPUs were busy {quiet:.0f} s before"


def _stretch(box: Box) -> tuple[float, float | None]:
    """Return when the container of an instance began to run, and when it ended, or None."""
    thing = box.thing
    if thing.running_since is not None:
        return thing.running_since, None
    return thing.ran or (thing.created, thing.created)


def _is_busy(box: Box, at: float, after: float) -> bool:
    """Return whether the GPUs of an instance worked at a time, not long ago; `after` as in `Idle`."""
    thing, (start, end) = box.thing, _stretch(box)
    if not start <= at or (end is not None and at > end):
        return False
    if isinstance(thing.process, ContainerScript):
        return thing.process.is_busy or at < thing.process.idle_from
    return at - start < (after or math.inf)
