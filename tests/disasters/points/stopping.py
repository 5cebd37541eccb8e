"""Point 5: after a kill or a crossed cap no GPU bills longer than five minutes in which the market takes an ending."""

from collections.abc import Callable, Iterator

from tests.disasters.sight import Broken, Sight
from tests.disasters.truth import Box

ALLOWED_SECONDS = 300.0
MOST_OF_A_CYCLE = 90.0
"""Time in which no cycle ran is time without a daemon."""
BETWEEN_ATTEMPTS_SECONDS = 90.0
"""An ending that failed is tried again so much later at most."""
WRITES = frozenset({"release", "state"})
ENDING = frozenset({"listing", "look", "release", "state", "account", "commit"})


class Stopping:
    """Counts, for every instance of ours, how long it has billed its GPU since it had to stop.

    `may_look` says whether a cycle that began at a time might ask a market for instances by their ids.
    """

    def __init__(self, may_look: Callable[[str, float], bool] = lambda *_: True) -> None:
        self._may_look = may_look
        self._billed: dict[tuple[str, str], float] = {}
        self._last = 0.0
        self._failed_at: dict[str, float] = {}
        self.judged = 0

    def judge(self, sight: Sight, *, must_stop: str, of: Callable[[Box], bool] = lambda _: True) -> Iterator[Broken]:
        """Yield what still bills; `must_stop` says why all of it has to stop, and is empty where nothing has to."""
        self._failed_at |= {each.market: sight.now for each in sight.struck if each.place in WRITES}
        passed, self._last = min(sight.now - self._last, MOST_OF_A_CYCLE), sight.now
        if not must_stop or sight.is_shared:
            self._billed.clear()
            return
        self.judged += 1
        proven = {(lease.market, lease.instance_id) for lease in sight.leases if lease.is_proven}
        stopped: dict[tuple[str, str], float] = {}
        for box in sight.truth.live:
            # What waits for an auction may bill after each.
            # What is told to end at dstack's server bills until its cloud takes it back: no further order hastens it.
            is_idle = (sight.truth.gpu_rate(box) <= 0 and not box.is_waiting) or box.is_ending
            if box.label is None or not box.is_ours or is_idle or not of(box):
                continue
            key = (box.market, box.instance_id)
            is_hindered = any(each.market in {box.market, "ledger"} and each.place in ENDING for each in sight.struck)
            is_hindered |= sight.now - self._failed_at.get(box.market, -ALLOWED_SECONDS) <= BETWEEN_ATTEMPTS_SECONDS
            # What no look by its id has shown may not be written to (rule 18), and one answer may forbid looks a while.
            is_hindered |= key not in proven and not self._may_look(box.market, sight.began)
            before = self._billed.get(key, 0.0)
            stopped[key] = before + (0.0 if is_hindered or not sight.has_ended else passed)
            if stopped[key] > ALLOWED_SECONDS:
                what = "waits for an auction" if box.is_waiting else "bills its GPU"
                sentence = (
                    f"{box.market} {box.instance_id} ({box.label.slot}) {what} {stopped[key]:.0f} s after "
                    f"{must_stop}, with the market taking every call"
                )
                yield Broken(5, sight.cycle, sentence)
        self._billed = stopped
