"""Point 3, too: each verdict that a service does not answer, or that work stalls, is true in the world."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from agent.simulator.instances import program
from tests.disasters.health.scripted_ports import ScriptedPorts
from tests.disasters.readings import Readings
from tests.disasters.sight import Broken, Sight
from tests.disasters.story import Work
from tests.disasters.truth import Box

STEP_SECONDS = 60.0
"""A simulated container prints a step a minute."""
REFUSALS = 2
NEWS = """
SELECT events.event_id, events.kind, events.reason, leases.market, leases.instance_id, leases.workload
FROM events JOIN leases USING (lease_id)
WHERE events.kind IN ('lease.unhealthy', 'lease.stalled') AND events.event_id > ? ORDER BY events.event_id
"""


class Verdicts:
    """Compares each new verdict with the truth at the end of the cycle in which it was recorded."""

    def __init__(self, works: Iterable[Work], ports: ScriptedPorts | None, readings: Readings) -> None:
        self._works = {work.name: work for work in works}
        self._ports = ports
        self._readings = readings
        self._last = 0
        self._seen_cycle = -1
        self.judged = 0

    def judge(self, sight: Sight, ledger: Path) -> Iterator[Broken]:
        """Yield every new verdict that was born in the dark, or is not true."""
        if self._ports is None:
            return
        # A process that died after it recorded a verdict took with it how fresh its listing was.
        is_known, self._seen_cycle = sight.cycle == self._seen_cycle + 1, sight.cycle
        for event, kind, reason, market, instance_id, workload in self._readings.rows(ledger, NEWS, str(self._last)):
            self._last = int(event)
            self.judged += 1
            box = sight.truth.boxes.get((market, instance_id))
            is_dark = is_known and not sight.fresh.get(market)
            truth = self._untrue(sight, kind, box, self._works[workload])
            why = "its market did not answer" if is_dark else truth
            if why:
                yield Broken(3, sight.cycle, f"{market} {instance_id}: {kind} ({reason}), and {why}")

    def _untrue(self, sight: Sight, kind: str, box: Box | None, work: Work) -> str:
        if box is None or work.health is None:
            return "there is no such instance, or nobody watches it"
        if kind == "lease.unhealthy":
            times = self._ports.refused.get(box.instance_id, []) if self._ports is not None else []
            return "" if len(times) >= REFUSALS else f"it refused {len(times)} connections"
        quiet = sight.now - _last_step(box, sight.now)
        is_quiet = 0.0 < work.health.stalled_after <= quiet
        return "" if is_quiet else f"it printed a step {quiet:.0f} s ago"


def _last_step(box: Box, now: float) -> float:
    """Return when a container printed its last line."""
    thing = box.thing
    start, end = (thing.running_since, now) if thing.running_since is not None else thing.ran or (now, now)
    hangs_after = program.seconds_to_hang(thing, program.worked_before(thing, start, end))
    return start + min(end - start, hangs_after) // STEP_SECONDS * STEP_SECONDS
