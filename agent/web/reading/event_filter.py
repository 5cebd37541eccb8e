"""The page's filter of events, with the words and the errors of `gpubid ledger events`."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from multidict import MultiMapping

from agent.config import problems, time_words
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.work.workload import Workload
from agent.ledger.reader import Reader


class FilterError(Exception):
    """A filter has an unknown value. The text says what to write instead."""


@dataclass(frozen=True, slots=True)
class EventFilter:
    """The parts of a filter, as they were written. An empty part selects everything."""

    workload: str = ""
    """A workload, or a slot of it: NAME/SLOT."""
    kinds: tuple[str, ...] = ()
    market: str = ""
    since: str = ""

    def query(self) -> str:
        """Return the filter as the query of an address."""
        parts = [("workload", self.workload), *(("kind", each) for each in self.kinds)]
        parts += [("market", self.market), ("since", self.since)]
        return urlencode([(name, value) for name, value in parts if value], errors="replace")

    async def events(self, reader: Reader, now: datetime, until: datetime | None, limit: int) -> list[Event]:
        """Return the last events before `until`, newest first.

        Raises:
            FilterError: `since` is no instant.
        """
        since = time_words.instant(self.since, now) if self.since else None
        if self.since and since is None:
            raise FilterError(time_words.refusal("since", self.since))
        return await reader.events(since, until, self.workload or None, self.kinds, limit, market=self.market or None)

    def refuse_unknown(self, rows: Sequence[Event], workloads: Collection[Workload], markets: Collection[str]) -> None:
        """Refuse a filter with a word that neither gpubid knows nor any event has.

        Raises:
            FilterError: its text has the known words.
        """
        if rows:
            return
        for kind in self.kinds:
            if kind not in set(EventKind):
                raise FilterError(problems.no_kind("kind", kind, EventKind))
        names = [work.name for work in workloads]
        places = {str(place) for work in workloads for place in work.places}
        if self.workload and self.workload not in {*names, *places}:
            raise FilterError(problems.no_workload(self.workload, names))
        if self.market and self.market not in markets:
            raise FilterError(f"market: there is no market {self.market!r}; {problems.nearest(self.market, markets)}")


def read(asked: MultiMapping[str]) -> EventFilter:
    """Return the filter in a query. An empty field filters nothing."""
    kinds = tuple(each.strip() for each in asked.getall("kind", []) if each.strip())
    one = {name: asked.get(name, "").strip() for name in ("workload", "market", "since")}
    return EventFilter(one["workload"], kinds, one["market"], one["since"])
