"""Point 4: what a fall adds that is doubted until it is believed (rule 21).

Less than agreed is charged: the ask under a bid, or what a deposit leaves. It is doubted from the first listing that
shows less than what counts; then the highest rate that was listed since is believed, and what is less is doubted anew.
"""

import dataclasses

from tests.disasters.points import price_doubt
from tests.disasters.points.price_doubt import agreed
from tests.disasters.sight import Sight
from tests.disasters.truth import Box, Truth

MOST_APART_SECONDS = 300.0
"""The longest time between two polls of a story."""


@dataclasses.dataclass(slots=True)
class Fall:
    """The rates below the agreed one, and the highest that may count.

    A doubt ends with the highest rate that was listed in it, and the next one begins. Nobody tells when: so what counts
    was listed in one of the last two.
    """

    agreed: float
    doubted: float
    """Seconds of true listings after which a doubt is over."""
    base: float
    """What counts while nothing less was listed for so long."""
    clock: float = 0.0
    """Seconds of true listings so far."""
    told: list[tuple[float, float]] = dataclasses.field(default_factory=list)
    """The rates listed since the first below `base`, each with the clock's time."""

    @property
    def counted(self) -> float:
        """The highest rate that may count."""
        is_first = not self.told or self.clock - self.told[0][0] < self.doubted
        return max([self.base] * is_first + [rate for _, rate in self.told])

    def see(self, rate: float, passed: float) -> None:
        """See the rate that is charged, and that the listing shows it, so long after the listing before."""
        self.clock += passed
        if not self.told and rate >= self.base:
            self.base = rate
            return
        self.told = [each for each in self.told if self.clock - each[0] <= 2 * self.doubted] + [(self.clock, rate)]
        is_over = self.clock - self.told[0][0] >= self.doubted
        if is_over and all(each == rate for _, each in self.told):
            self.base, self.told = rate, []

    def mislead(self) -> None:
        """See that a listing showed another rate: what counts now may count on."""
        self.told.append((self.clock, self.counted))


class Falls:
    """Knows for each contract of Vast which rate below the agreed one is still doubted."""

    def __init__(self, truth: Truth, poll: float) -> None:
        self._truth = truth
        self._poll = poll
        self._falls: dict[str, Fall] = {}
        self._was_listed = False
        """Whether the cycle before listed Vast truly."""

    def counted(self, box: Box) -> float:
        """Return the hourly price at which a contract's GPUs count: a fall of it that is doubted counts for nothing."""
        fall = self._falls.get(box.instance_id)
        return fall.counted if fall is not None and fall.agreed == agreed(box) else agreed(box)

    def grow(self, sight: Sight, passed: float) -> float:
        """Return the dollars by which the bound of what is counted too high has grown."""
        is_listed = sight.saw_truly("vast")
        # In calm weather polls are minutes apart. Between two true listings a doubt goes on; else that is not known.
        seen = min(passed, MOST_APART_SECONDS if self._was_listed else self._poll)
        self._was_listed = is_listed
        is_priced_falsely = any(each.market == "vast" and each.fault == "price" for each in sight.struck)
        grown = 0.0
        for box in self._truth.live:
            rate = self._truth.gpu_rate(box)
            if box.market != "vast" or box.label is None or not 0 < rate <= agreed(box):
                continue
            fall = self._falls.get(box.instance_id)
            if fall is None or fall.agreed != agreed(box):
                doubted = price_doubt.SECONDS + (price_doubt.LISTINGS + 1) * self._poll
                fall = self._falls[box.instance_id] = Fall(agreed(box), doubted, agreed(box))
            # Believing it changes nothing of the time before.
            grown += max(fall.counted - rate, 0.0) * passed / 3600
            if is_listed:
                fall.see(rate, seen)
            if is_priced_falsely:
                fall.mislead()
        return grown
