"""Point 5, too: an ending waits for a last checkpoint no longer than it may, and not at all where it is ordered."""

from collections.abc import Iterator

from agent.app import App
from agent.decide.moves.last_checkpoint import Asked
from agent.decide.operators import operator_holds
from agent.domain.record.hold import Word
from tests.disasters.guards.guard_world import GuardWorld
from tests.disasters.sight import Broken, Sight

SPARE_SECONDS = 1.0
"""Orders name their time in whole seconds."""
_OF_A_PERSON = (Word.PAUSE, Word.DONE, Word.KILL)
AT_ONCE = frozenset({"ordered", "over_budget", "over_rate", *(operator_holds.PAST[word] for word in _OF_A_PERSON)})
"""Codes of endings that a person or a hard cap orders."""


class Waits:
    """Remembers since when each lease is asked for a last checkpoint: another order for it begins no new wait."""

    def __init__(self, guards: GuardWorld | None) -> None:
        self._guards = guards
        self._since: dict[tuple[App, str], float] = {}
        self.judged = 0

    def judge(self, sight: Sight, *, must_stop: str) -> Iterator[Broken]:
        """Yield every wait of the last plan that is too long, or that must not be; `must_stop` says why all has to."""
        seen = sight.app.seen
        if self._guards is None or not sight.has_ended or seen is None:
            return
        # The wait of a lease ends with the first plan that does not ask it at all.
        asked = {(sight.app, each.lease.lease_id): each for each in seen.plan.asked}
        self._since = {key: self._since.get(key, sight.now) for key in asked}
        is_written = not any(strike.market == "ledger" for strike in sight.struck)
        for key, each in asked.items():
            self.judged += 1
            too_long = self._too_long(sight, self._since[key], each)
            why = too_long or self._forbidden(sight, each, must_stop if is_written else "")
            if why:
                lease = each.lease
                yield Broken(5, sight.cycle, f"{lease.market} {lease.instance_id} waits for its guard {why}")

    def _too_long(self, sight: Sight, since: float, each: Asked) -> str:
        """Return how long a lease has waited, where that is longer than its guard has for a checkpoint."""
        work = next((work for work in sight.app.rules.workloads if work.name == each.lease.slot.workload), None)
        if work is None or work.guard is None or self._guards is None:
            return ""
        within = work.guard.final_within.total_seconds()
        written = self._guards.bucket.ordered.get(each.order, since)
        until = min(max(written, since), since + within) + within + SPARE_SECONDS
        return f"{sight.began - since:.0f} s and longer, and it has {within:.0f} s" if sight.began > until else ""

    def _forbidden(self, sight: Sight, each: Asked, must_stop: str) -> str:
        """Return why a lease must not wait at all, or nothing."""
        if must_stop == "a kill" or each.ending.reason.code in AT_ONCE:
            return f"after {must_stop or each.ending.reason.code}"
        box = sight.truth.boxes.get((each.lease.market, each.lease.instance_id))
        if box is None or not sight.saw_truly(box.market):
            return ""
        # What stops after its listing nobody has seen stop.
        is_stopped = not box.thing.holds_gpu and box.thing.ran is not None and box.thing.ran[1] < sight.began
        return "and does not run" if is_stopped else ""
