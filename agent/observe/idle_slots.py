"""When each slot with fallback markets was last meant to be empty, from pass to pass of one process."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from agent.decide.moves import fallback_markets
from agent.domain.fleet import Fleet
from agent.domain.slot import Slot
from agent.domain.work.workload import Workload


class IdleSlots:
    """Remembers the slots of the last pass, and since when each is wanted."""

    def __init__(self) -> None:
        """Begin before the first pass."""
        self._known: frozenset[Slot] | None = None
        self._unwanted_at: Mapping[Slot, datetime] = {}

    def at(self, works: Iterable[Workload], now: datetime) -> Mapping[Slot, datetime]:
        """Return when each slot was last meant to be empty. A slot that a reload added was it until now."""
        places = frozenset(place for work in works for place in work.places)
        # How long the slots of the first pass have been there is known by their workloads, also before a restart.
        added = places - self._known if self._known is not None else ()
        self._known = places
        self._unwanted_at = {**self._unwanted_at, **dict.fromkeys(added, now)}
        return self._unwanted_at

    def note(self, fleet: Fleet) -> None:
        """Note which slots are meant to be empty now."""
        self._unwanted_at = fallback_markets.unwanted_at(fleet)
