"""Point 6, too: no market is held at fault for instances that we ourselves ended (rule 4)."""

from collections.abc import Iterator

from agent.decide.facts import Alert
from tests.disasters.sight import Broken, Sight
from tests.disasters.story import Strike

LATELY_SECONDS = 3600.0
"""So long before an instance ended a listing may have hidden it already."""
HIDING = frozenset({"empty", "missing_row", "stale", "id", "twice", "label", "state"})
"""Lies of a listing after which instances may count as vanished."""


class Faults:
    """Remembers when a listing last lied and when a ledger last failed. All else is read from the truth."""

    def __init__(self) -> None:
        self._lied: dict[str, float] = {}
        self._shared = -LATELY_SECONDS
        self._unwritten = -LATELY_SECONDS

    def hear(self, now: float, strike: Strike) -> None:
        """Take in a fault of an answer or a commit."""
        if strike.market == "ledger":
            self._unwritten = now
        elif strike.place == "listing" and strike.fault in HIDING:
            self._lied[strike.market] = now

    def share(self, now: float) -> None:
        """See that another daemon ended something: to ours that is no release of its own."""
        self._shared = now

    def judge(self, sight: Sight) -> Iterator[Broken]:
        """Yield every market that was just called faulty for instances all of which our own releases ended."""
        if sight.is_shared:
            self._shared = sight.now
        if not sight.has_ended or sight.app.seen is None:
            return
        for fact in sight.app.seen.facts:
            if not isinstance(fact, Alert) or fact.code != "market_fault":
                continue
            names = fact.sentence.partition("instances ")[2].partition(" vanished")[0].split(", ")
            boxes = [sight.truth.boxes.get((fact.key, name)) for name in names]
            ends = [box.thing.ended for box in boxes if box is not None and box.was_destroyed and box.thing.ended]
            if len(ends) < len(names):
                continue
            # An ending while the ledger cannot be written is recorded nowhere, so it looks like a loss.
            amiss = max(self._lied.get(fact.key, -LATELY_SECONDS), self._shared, self._unwritten)
            if amiss < min(ends) - LATELY_SECONDS:
                sentence = f"{fact.sentence}: and our own releases ended them all, and no listing lied"
                yield Broken(6, sight.cycle, sentence)
