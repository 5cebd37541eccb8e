"""Point 3, too: no disk with the only copy of work is released, but for a reason that rule 11 allows."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from agent.decide.reconcile.guards import acceptance_verdict
from agent.domain.slot import Slot
from tests.disasters.guards.guard_world import GuardWorld
from tests.disasters.guards.scripted_guard import ScriptedGuard
from tests.disasters.orders import Order
from tests.disasters.sight import Broken, Sight
from tests.disasters.story import Work
from tests.disasters.truth import Box, Truth

ALLOWED = frozenset({"ordered", "killed", "over_budget", "over_rate", "done"})
"""Codes of releases that rule 11 does not forbid: a person's, a cap's, and those of work that is done."""
FAILED = (acceptance_verdict.REJECTED, "mismatch")
"""Beginnings of the reasons for which a lease is given up in its first minutes, before it holds work."""
ROUNDING = 0.01
LOOKS = 3
"""After so many looks at a container that its guard refused to start, with its log, a daemon knows of the refusal."""


class OnlyCopies:
    """Checks every release of an instance that keeps its checkpoints on its disk."""

    def __init__(self, truth: Truth, works: Iterable[Work], guards: GuardWorld | None) -> None:
        self._truth = truth
        self._guards = guards
        self._on_disk = {work.name for work in works if work.guard is not None and work.guard.is_on_disk}
        self._pending: list[tuple[Box, str]] = []
        self._refusals: Counter[str] = Counter()
        """How often a daemon could look at each refusal, by the intent of its lease."""
        self.judged = 0

    def see(self, sight: Sight) -> None:
        """Count the looks at guards that refused to start: their logs say so until their market stops them."""
        guards = self._guards.guards if self._guards is not None else {}
        has_log = not any(strike.place == "log" for strike in sight.struck)
        for box in sight.truth.live if guards and has_log else ():
            guard = self._guards.guard_of(box) if self._guards is not None else None
            if guard is not None and guard.has_refused and box.thing.holds_gpu and sight.saw_truly(box.market):
                self._refusals[guard.settings.lease] += 1

    def leaves(self, order: Order) -> None:
        """Compare the present content of a disk and of the bucket."""
        box = self._truth.boxes.get((order.market, order.target))
        if order.kind != "release" or box is None or box.label is None or not box.is_live:
            return
        guard = self._guards.guard_of(box) if self._guards is not None else None
        if box.label.slot.workload not in self._on_disk or (guard is None and not self._has_work(box)):
            return
        self.judged += 1
        lacks = self._lacks(guard) if guard is not None else "its disk has work that no guard carries"
        if lacks:
            self._pending.append((box, lacks))

    def _lacks(self, guard: ScriptedGuard) -> str:
        """Return the checkpoint of a disk that the bucket lacks.

        One that its guard reported, or any if it reported none.

        A strategy has priced the work that was saved after that and never reported.
        """
        disk = guard.disk
        needed = disk.counts.get(disk.told, disk.saved)
        if needed is None or self._guards is None or guard.root in self._guards.done:
            return ""
        best = self._guards.best(guard.root)
        if best >= needed - ROUNDING:
            return ""
        return f"its disk has a count of {needed:.0f}, and the bucket truly has {best:.0f} of it"

    def judge(
        self, cycle: int, reason_of: Callable[[Box], str | None], ordered: Callable[[str], bool]
    ) -> Iterator[Broken]:
        """Yield every such release without a reason that is allowed."""
        pending, self._pending = self._pending, []
        for box, lacks in pending:
            code = reason_of(box)
            is_ordered = box.label is not None and ordered(box.label.slot.workload)
            if not is_ordered and code not in ALLOWED and not (code or "").startswith(FAILED):
                yield Broken(3, cycle, f"{box.market} {box.instance_id} was released ({code}), and {lacks}")

    def tied(self) -> frozenset[Slot]:
        """Return the slots whose stopped disk has work, and waits for a person where its host starts it no more."""
        stopped = (box for box in self._truth.live if box.label is not None and not box.is_running)
        slots = {box.label.slot for box in stopped if box.label is not None and self._has_work(box)}
        return frozenset(slot for slot in slots if slot.workload in self._on_disk)

    def _has_work(self, box: Box) -> bool:
        """Return whether work began on a disk, or may have as far as a daemon can know.

        Where a file took its guard away, any run may have saved work. A container that ran, and that its market stopped
        before a daemon could read of the refusal of its guard, may have worked as well.
        """
        guard = self._guards.guard_of(box) if self._guards is not None else None
        if guard is None:
            return box.thing.first_started is not None
        return guard.disk.is_begun or (guard.has_refused and self._refusals[guard.settings.lease] < LOOKS)
