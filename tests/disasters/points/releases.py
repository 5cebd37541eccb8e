"""Point 3: a healthy lease is released for a recorded reason that is true in the world."""

import math
from collections.abc import Callable, Iterator

from tests.disasters.orders import Order
from tests.disasters.sight import Broken, Sight
from tests.disasters.story import Strike
from tests.disasters.truth import Box, Truth

LATELY_SECONDS = 3600.0
LAST_SECONDS = 660.0
"""So long before its host leaves the market a lease may be released first: ten minutes, and what a cycle takes."""
LIES_TO_BELIEVE = 2
"""So many answers that agree are believed: what the market tells so often nobody could find out to be untrue."""
READ_BACK = 2
"""In the first such cycle a lease may only have become one."""
TERMS = frozenset({"host", "price"})
"""Lies about what a rent is read back by."""


class Releases:
    """Looks at every release of what truly runs. `ordered` says whether a person asked for an end of a workload."""

    def __init__(self, truth: Truth, ordered: Callable[[str], bool], is_capped: Callable[[], bool]) -> None:
        self._truth = truth
        self._ordered = ordered
        self._is_capped = is_capped
        self._pending: list[tuple[Box, bool, bool]] = []
        self._ran: dict[tuple[str, str], float] = {}
        self._lies: list[tuple[float, str]] = []
        self._unwritten_at = -LATELY_SECONDS
        self._shown: dict[tuple[str, str], int] = {}
        """In how many whole cycles each healthy lease was listed truly; `READ_BACK` of them wrote its terms down."""
        self._dearer: set[tuple[str, str]] = set()
        self._now = 0.0
        self.judged = 0

    def leaves(self, order: Order) -> None:
        """Note the release of a healthy instance of ours, and whether its slot runs elsewhere at this instant."""
        box = self._truth.boxes.get((order.market, order.target))
        if order.kind != "release" or box is None or box.label is None or not box.is_running:
            return
        others = (
            each
            for each in self._truth.boxes.values()
            if each is not box and each.label is not None and each.label.slot == box.label.slot
        )
        runs_elsewhere = any(each.is_running or self._ran_lately(each) for each in others)
        self._pending.append((box, runs_elsewhere, (box.market, box.instance_id) in self._ran))

    def _ran_lately(self, box: Box) -> bool:
        return self._now - self._ran.get((box.market, box.instance_id), -LATELY_SECONDS) < LATELY_SECONDS

    def hear(self, now: float, strike: Strike) -> None:
        """Take in what went wrong with an answer."""
        if strike.fault in TERMS:
            self._lies.append((now, strike.market))
        if strike.market == "ledger":
            self._unwritten_at = now

    def hear_rise(self, box: Box) -> None:
        """See that a person accepts a higher price of what no written look has read back yet (rule 16)."""
        key = (box.market, box.instance_id)
        if self._unwritten_at >= box.thing.created and self._shown.get(key, 0) < READ_BACK:
            self._dearer.add(key)

    def look(self, sight: Sight) -> None:
        """Take in whose terms a cycle has read back and written down: one that no fault of the ledger has struck."""
        if sight.is_shared or any(strike.market == "ledger" for strike in sight.struck):
            return
        for lease in sight.leases:
            key = (lease.market, lease.instance_id)
            box = self._truth.boxes.get(key)
            is_healthy = box is not None and box.is_live and box.thing.holds_gpu and not box.thing.is_offline
            if is_healthy and lease.is_proven and sight.saw_truly(lease.market):
                self._shown[key] = self._shown.get(key, 0) + 1

    def see(self, now: float) -> None:
        """Remember what runs: a release that was decided on stays one, whatever becomes of the other lease."""
        self._now = now
        self._ran |= {(box.market, box.instance_id): now for box in self._truth.live if box.is_running}

    def judge(self, cycle: int, reason_of: Callable[[Box], str | None]) -> Iterator[Broken]:
        """Yield every such release whose recorded reason is none or untrue."""
        pending, self._pending = self._pending, []
        for box, runs_elsewhere, was_seen in pending:
            self.judged += 1
            why = self._untrue(box, reason_of(box), runs_elsewhere=runs_elsewhere, was_seen=was_seen)
            if why:
                yield Broken(3, cycle, f"{box.market} {box.instance_id} was released while it ran: {why}")

    def _untrue(self, box: Box, code: str | None, *, runs_elsewhere: bool, was_seen: bool) -> str:
        if code is None:
            return "the ledger has no lease of it"
        if not code:
            # What a person ordered, and what nobody uses, ends although that could not be written down (rule 13).
            # No listing has shown an overdue start running that begins to run between the last one and its release.
            is_unused = runs_elsewhere or not was_seen
            is_unwritten = is_unused and self._now - self._unwritten_at < LATELY_SECONDS
            is_ordered = bool(box.label and self._ordered(box.label.slot.workload))
            return "" if is_ordered or is_unwritten else "no reason is recorded"
        if code.startswith("mismatch"):
            lies = sum(market == box.market and at >= box.thing.created for at, market in self._lies)
            # It costs more indeed, and a ledger that took nothing does not know that it was rented at less.
            is_dearer = code.startswith("mismatch: it costs") and (box.market, box.instance_id) in self._dearer
            return "" if is_dearer or lies >= LIES_TO_BELIEVE else f"recorded is {code!r}, and it is what was rented"
        if code in {"moved", "not_needed", "move_lost", "spare_not_worth"} and not runs_elsewhere:
            # Where a cap forbids two at once, what its host ends within minutes makes room for the next.
            is_last = code == "moved" and getattr(box.thing, "end_time", math.inf) - self._now < LAST_SECONDS
            is_true = is_last or code == "spare_not_worth"
            return "" if is_true else f"recorded is {code!r}, and its slot runs nowhere else"
        slot = box.label.slot.workload if box.label else ""
        if code in {"ordered", "released_before"} and not self._ordered(slot):
            return f"recorded is {code!r}, and nobody ordered it"
        if code in {"over_budget", "over_rate"} and not self._is_capped():
            return f"recorded is {code!r}, and no cap is near"
        return ""
