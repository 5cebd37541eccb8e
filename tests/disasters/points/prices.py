"""Point 2, too: no instance costs more than its workload may, whatever anybody says of it or of its work."""

from collections.abc import Iterator

from agent.simulator.runpod.model import Pod
from tests.disasters.sight import Broken, Sight
from tests.disasters.truth import Box

ROUNDING = 1e-6


class Prices:
    """Knows the most that each workload was ever allowed to cost, and every bid that was judged."""

    def __init__(self) -> None:
        self._most: dict[str, float] = {}
        self._judged: dict[tuple[str, str], float] = {}

    def judge(self, sight: Sight) -> Iterator[Broken]:
        """Yield what was rented or bid for more than that. What a host asks for more later is no bid of ours."""
        for work in sight.app.rules.workloads:
            self._most[work.name] = max(self._most.get(work.name, 0.0), work.prices.highest.dollars)
        for box in sight.truth.live:
            key, bid = (box.market, box.instance_id), _bid(box)
            if box.label is None or (key in self._judged and bid is None):
                continue
            price = bid if bid is not None else _asked(box)
            most = self._most.get(box.label.slot.workload)
            if most is None or self._judged.get(key) == price:
                continue
            self._judged[key] = price
            if price > most + ROUNDING:
                sentence = (
                    f"{box.market} {box.instance_id} costs ${price:.3f}/h, and {box.label.slot} may cost ${most:.3f}"
                )
                yield Broken(2, sight.cycle, sentence)


def _bid(box: Box) -> float | None:
    thing = box.thing
    if thing.bid is None:
        return None
    return thing.rate if isinstance(thing, Pod) else thing.bid


def _asked(box: Box) -> float:
    return box.thing.rate if isinstance(box.thing, Pod) else box.thing.locked_ask
