"""Points 2 and 5, too: no instance is rented for a run whose end its guard reported, and no instance of it bills on."""

from collections.abc import Iterator

from agent.config.settings import Config
from agent.domain.record.lease import Lease
from tests.disasters.guards.guard_world import GuardWorld, root_of
from tests.disasters.orders import Order
from tests.disasters.points.stopping import Stopping
from tests.disasters.readings import Readings
from tests.disasters.sight import Broken, Sight
from tests.disasters.truth import Box, Truth

LATELY_SECONDS = 90.0
"""So long after an end, or a failure of the bucket, nobody may have read it: a guard is listened to each minute."""
_RUN = "SELECT name, slot, run FROM guard_runs WHERE workload = ? AND slot = ? ORDER BY run DESC LIMIT 1"


TAKES_SECONDS = 300.0
"""So long the guard of a kept host may take to go on with the next task, after a look of the daemon at its beats."""


def _may_begin(lease: Lease, sight: Sight) -> bool:
    """Return whether an instance was lately given another task, which its guard has to find first."""
    age = (sight.at - lease.opened_at).total_seconds()
    return lease.is_reassigned and age <= TAKES_SECONDS + LATELY_SECONDS


class Finished:
    """Knows which runs are truly done, and checks the payments for them."""

    def __init__(self, truth: Truth, guards: GuardWorld | None, readings: Readings) -> None:
        self._truth = truth
        self._guards = guards
        self._readings = readings
        self._broken: list[str] = []
        self._bills = Stopping()

    def leaves(self, order: Order, config: Config, now: float) -> None:
        """Look at a rent before the market acts on it. A person may have the work done again, without a guard."""
        label, ledger = self._truth.label(order.label) if order.kind == "rent" else None, config.ledger
        guarded = {work.name for work in config.workloads if work.guard is not None}
        if self._guards is None or label is None or label.slot.workload not in guarded:
            return
        rows = self._readings.rows(ledger, _RUN, label.slot.workload, str(label.slot.index))
        root = root_of(*rows[0]) if rows else ""
        # The daemon reads the bucket before it plans, and a slow search or market delays its rent.
        is_known = now - self._guards.done.get(root, now) > LATELY_SECONDS
        if is_known and not self._is_unread(root, now):
            self._broken.append(f"a rent for {label.slot} left, and the bucket says that its run is done")

    def judge(self, sight: Sight) -> Iterator[Broken]:
        """Yield the violations since the last look, and the instances that bill on."""
        broken, self._broken = self._broken, []
        for sentence in broken:
            yield Broken(2, sight.cycle, sentence)
        if self._guards is not None:
            # A found and held instance waits for a person (rule 7), and nobody reads the reports of its guard.
            held = {(lease.market, lease.instance_id) for lease in sight.leases if lease.is_held or not lease.guard_run}
            held |= {(lease.market, lease.instance_id) for lease in sight.leases if _may_begin(lease, sight)}
            yield from self._bills.judge(
                sight,
                must_stop="the end of its work",
                of=lambda box: self._is_done(box, sight.now) and (box.market, box.instance_id) not in held,
            )

    def _is_done(self, box: Box, now: float) -> bool:
        guard = self._guards.guard_of(box) if self._guards is not None else None
        return (
            guard is not None
            and self._guards is not None
            and guard.root in self._guards.done
            and not self._is_unread(guard.root, now)
        )

    def _is_unread(self, root: str, now: float) -> bool:
        """Return whether the bucket may not have shown the end."""
        if self._guards is None:
            return True
        bucket = self._guards.bucket
        return (
            bucket.is_away(root, now)
            or now - bucket.failed_at.get(root.partition("/")[0], -LATELY_SECONDS) < LATELY_SECONDS
        )
