"""Point 2: no write goes to an instance without our label, and a paying request leaves once per intent at most."""

from collections.abc import Iterator
from pathlib import Path

from tests.disasters.orders import PAYING, Order
from tests.disasters.readings import Readings
from tests.disasters.sight import Broken
from tests.disasters.truth import Truth

_SENT = "SELECT intent_id FROM intents WHERE market = ? AND instance_id = ? AND kind = ? AND state = 'sent'"


class Writes:
    """Looks at every order before the market acts on it."""

    def __init__(self, truth: Truth, readings: Readings) -> None:
        self._truth = truth
        self._readings = readings
        self._paid: set[str] = set()
        self._broken: list[str] = []
        self.judged = 0

    def leaves(self, order: Order, ledger: Path) -> None:
        """Judge one order; `ledger` is the file of the daemon that sends it."""
        self.judged += 1
        for intent_id in self._intents(order, ledger) if order.kind in PAYING else ():
            if intent_id in self._paid:
                self._broken.append(f"{order.kind} {intent_id} left twice")
            self._paid.add(intent_id)
        box = self._truth.boxes.get((order.market, order.target))
        if order.kind != "rent" and box is not None and box.label is None:
            text = box.thing.label
            self._broken.append(
                f"{order.kind} of {order.market} {order.target} left, which somebody rented by hand (label {text!r})"
            )

    def judge(self, cycle: int) -> Iterator[Broken]:
        """Yield the violations since the last look."""
        broken, self._broken = self._broken, []
        for sentence in broken:
            yield Broken(2, cycle, sentence)

    def _intents(self, order: Order, ledger: Path) -> Iterator[str]:
        if order.kind == "rent":
            label = self._truth.label(order.label)
            if label is None:
                self._broken.append(f"a rent left under the label {order.label!r}, which is none of ours")
                return
            yield label.intent_id
            return
        rows = self._readings.rows(ledger, _SENT, order.market, order.target, order.kind)
        # RunPod raises the bid of a stopped pod by starting it.
        rows = rows or self._readings.rows(ledger, _SENT, order.market, order.target, "rebid")
        if not rows:
            self._broken.append(f"{order.kind} of {order.target} left, and the ledger holds no such intent as sent")
        for (intent_id,) in rows:
            yield intent_id
