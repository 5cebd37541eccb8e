"""Points 1 and 2, too: an instance goes on only with a slot that nothing else fills and whose work is not done.

While two daemons run, none is judged, then or later: each fills slots that the other one does not know.
"""

import math
from collections.abc import Iterator

from agent.domain.record.lease import Lease
from tests.disasters.guards.guard_world import GuardWorld, root_of
from tests.disasters.sight import Broken, Sight


class KeptLeases:
    """Judges each lease of an instance that went on with another slot once, when it is new."""

    def __init__(self, guards: GuardWorld | None) -> None:
        self._guards = guards
        self._seen: set[str] = set()
        self.judged = 0

    def judge(self, sight: Sight) -> Iterator[Broken]:
        """Yield each that should not be, and tell every instance's present slot to the truth."""
        if self._guards is None:
            return
        for lease in sight.leases:
            box = sight.truth.boxes.get((lease.market, lease.instance_id))
            if not lease.is_reassigned or box is None:
                continue
            box.kept_for = lease.slot
            if lease.lease_id not in self._seen:
                self._seen.add(lease.lease_id)
                self.judged += not sight.is_shared
                yield from () if sight.is_shared else self._untrue(sight, lease)

    def _untrue(self, sight: Sight, lease: Lease) -> Iterator[Broken]:
        others = [each.lease_id for each in sight.leases if each.slot == lease.slot and each is not lease]
        same = [each for each in sight.leases if each.instance_id == lease.instance_id and each.market == lease.market]
        if others or len(same) != 1:
            sentence = f"{lease.lease_id} went on with {lease.slot}, which {others} fill; {len(same)} leases have it"
            yield Broken(2, sight.cycle, sentence)
        root = root_of(lease.slot.workload, lease.slot.index, lease.guard_run or 0)
        if self._guards is not None and self._guards.done.get(root, math.inf) < lease.opened_at.timestamp():
            yield Broken(2, sight.cycle, f"{lease.lease_id} went on with {lease.slot}, whose run is done")
