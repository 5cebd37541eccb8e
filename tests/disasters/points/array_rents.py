"""Point 2, too: no rent begins a slot of an array while as many others are live as may be, nor one that is done."""

from collections.abc import Iterator

from agent.config.settings import Config
from agent.simulator.dstack.model import Run
from tests.disasters.orders import Order
from tests.disasters.readings import Readings
from tests.disasters.sight import Broken
from tests.disasters.truth import Truth

_PAID = """
SELECT slot FROM intents WHERE workload = ? AND kind IN ('rent', 'rebid', 'resume') AND resolved_at IS NULL
"""
_LEASES = "SELECT slot, market, instance_id, state FROM leases WHERE workload = ? AND state <> 'ended'"
_LEASED = "SELECT DISTINCT slot FROM leases WHERE workload = ? AND state <> 'ended'"
_MARKED = "SELECT key FROM cooldowns WHERE scope = ?"


class ArrayRents:
    """Counts the live slots of an array by the ledger, at the instant at which a rent leaves."""

    def __init__(self, truth: Truth, readings: Readings) -> None:
        self._truth = truth
        self._readings = readings
        self._broken: list[str] = []

    def leaves(self, order: Order, config: Config) -> None:
        """Look at a rent before the market acts on it. A slot with a lease moves: it was live before."""
        label = self._truth.label(order.label) if order.kind == "rent" else None
        works = {work.name: work for work in config.workloads if work.array is not None}
        work = works.get(label.slot.workload) if label is not None else None
        if label is None or work is None or work.array is None or work.array.at_once is None:
            return
        name, index = work.name, label.slot.index
        if (index,) in self._readings.rows(config.ledger, _LEASED, name):
            return
        held = {key for (key,) in self._readings.rows(config.ledger, _MARKED, "held")}
        leases = self._readings.rows(config.ledger, _LEASES, name)
        live = {slot for slot, *lease in leases if not self._has_left(*lease)} | {index}
        live |= {slot for (slot,) in self._readings.rows(config.ledger, _PAID, name)}
        live = {slot for slot in live if f"slot:{name}/{slot}" not in held}
        if len(live) > work.array.at_once:
            self._broken.append(f"a rent for {label.slot} left, and of {name} the slots {sorted(live)} are live")
        if (f"slot:{label.slot}",) in self._readings.rows(config.ledger, _MARKED, "done"):
            self._broken.append(f"a rent for {label.slot} left, which is done")

    def _has_left(self, market: str, instance_id: str, state: str) -> bool:
        """Return whether a release is over in truth, or its server says so, which a person may have to prove."""
        box = self._truth.boxes.get((market, instance_id))
        if box is None or state != "releasing":
            return False
        machine = box.thing.machine if isinstance(box.thing, Run) else None
        return not box.is_live or (machine is not None and machine.status == "terminated")

    def judge(self, cycle: int) -> Iterator[Broken]:
        """Yield the violations since the last look."""
        broken, self._broken = self._broken, []
        yield from (Broken(2, cycle, sentence) for sentence in broken)
