"""Point 1: what exists under our label is a lease, an open doubt or a recorded orphan after three complete listings."""

from collections.abc import Iterator

from agent.domain.record.intent import IntentKind
from tests.disasters.sight import Broken, Sight
from tests.disasters.story import Strike

LISTINGS = 3
SILENCE_SECONDS = 60.0
"""So long one answer may forbid to ask for an instance by its id, without which nothing is ours (rules 18 and 20)."""


class Known:
    """Counts, for every instance that the ledger does not know, the complete listings that showed it."""

    def __init__(self) -> None:
        self._shown: dict[tuple[str, str], int] = {}
        self._closed_until: dict[str, float] = {}
        self.judged = 0

    def hear(self, now: float, strike: Strike) -> None:
        """See that a market is asked too often for instances by their ids."""
        if (strike.place, strike.fault) == ("look", "throttled"):
            seconds = min(strike.amount, SILENCE_SECONDS) if strike.amount >= 0 else SILENCE_SECONDS
            self._closed_until[strike.market] = max(now + seconds, self._closed_until.get(strike.market, now))

    def may_look(self, market: str, began: float) -> bool:
        """Return whether a cycle that began then might ask a market for instances by their ids."""
        return self._closed_until.get(market, began) <= began

    def forget(self) -> None:
        """Begin anew: the process that counted is gone."""
        self._shown.clear()
        self._closed_until.clear()

    def judge(self, sight: Sight) -> Iterator[Broken]:
        """Yield the instances that nobody knows."""
        if not sight.has_ended:
            return
        leases = {(lease.market, lease.instance_id) for lease in sight.leases}
        doubts = {each.intent_id for each in sight.intents if each.kind is IntentKind.RENT}
        shown: dict[tuple[str, str], int] = {}
        for box in sight.truth.live:
            label = box.label if box.is_ours else None
            if label is None:
                continue
            self.judged += 1
            key = (box.market, box.instance_id)
            if key in leases or label.intent_id in doubts:
                continue
            may_look = self.may_look(box.market, sight.began)
            shown[key] = self._shown.get(key, 0) + (may_look and sight.saw_truly(box.market))
            if shown[key] > LISTINGS:
                yield Broken(
                    1,
                    sight.cycle,
                    f"{box.market} {box.instance_id} ({label.slot}) exists under our label, {shown[key]} complete "
                    f"listings have shown it, and the ledger knows no lease, doubt or orphan of it",
                )
        self._shown = shown
