"""The problem `recorded`: stretches of a ledger's recorded searches, each replayed on paper under a strategy.

Invariants:
1. Stretches do not overlap, and each begins with nothing rented, so held-out stretches share no instant with the fit.
2. A process reads the ledger once, and the problem takes the records along to other processes and machines. A daemon
   that writes meanwhile only adds stretches, until it deletes old searches. A search of days therefore needs a copy, as
   `gpubid tune` makes.
"""

import asyncio
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Self

from agent import strategy_files
from agent.decide.limits.limits import Limits
from agent.decide.strategy import Params, Tuned
from agent.domain.record.account import HOUR
from agent.domain.work.workload import Workload
from agent.lab.bench import comparison, split
from agent.lab.bench.comparison import Case, Score
from agent.lab.bench.split import Split, half_of_windows
from agent.lab.bids import own_workload
from agent.lab.engine import own_replay
from agent.lab.traces import ledger_history
from agent.lab.traces.ledger_history import History
from agent.ledger.reader import open_reader
from agent.ledger.tables.search_history import Seen

OPTIMUM = "hindsight"
OURS = ("patient", "hedged", "ondemand")
UNIT = "dollars of a stretch, each hour without useful work at the workload's max_price"


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of recorded time."""

    since: datetime
    until: datetime

    @property
    def key(self) -> str:
        """Its beginning."""
        return f"{self.since:%Y-%m-%dT%H:%M}"

    @property
    def cluster(self) -> str:
        """The UTC day on which it begins."""
        return f"{self.since:%Y-%m-%d}"

    @property
    def span(self) -> tuple[datetime, datetime]:
        """Its beginning and end."""
        return self.since, self.until


@dataclass(frozen=True)
class RecordedProblem:
    """A workload over a ledger's searches, in stretches of `hours`. `numbers` replace a strategy's own."""

    ledger: Path
    work: Workload
    caps: Limits
    hours: float = 24.0
    numbers: Mapping[str, Params] = field(default_factory=dict)
    split: Split | None = None

    name = "recorded"
    baseline = "patient"
    optimum = OPTIMUM

    def cases(self) -> Sequence[Stretch]:
        """Return every stretch in which a search was recorded.

        Raises:
            ValueError: the ledger has fewer than two of them.
        """
        looks, length = [look.at for look in self._known.looks], timedelta(hours=self.hours)
        found: list[Stretch] = []
        begins = looks[0] if looks else None
        while begins is not None and begins + length <= looks[-1]:
            found.append(Stretch(begins, begins + length))
            begins = next((at for at in looks if at >= found[-1].until), None)
        if len(found) < 2:  # noqa: PLR2004 - one to fit, one to hold out
            span = f"{(looks[-1] - looks[0]) / timedelta(hours=1):.1f} h" if looks else "no"
            raise ValueError(
                f"{self.ledger} has {span} of recorded searches, and two stretches of {self.hours:g} h are needed: let "
                "`gpubid run` search for longer, or name shorter --hours"
            )
        return half_of_windows(found, self.split)

    @cached_property
    def _known(self) -> History:
        """Return the ledger's records."""
        return _history(self.ledger)

    def strategies(self) -> Sequence[str]:
        """Return ours and the bound."""
        return (*OURS, *comparison.own(self.numbers, OURS), OPTIMUM)

    def params(self, strategy: str) -> Params | None:
        """Return the numbers of a strategy, or None for the bound."""
        return None if strategy == OPTIMUM else self._tuned[strategy].params

    def with_params(self, strategy: str, params: Params) -> Self:
        """Return the same stretches with the strategy on these numbers."""
        other = replace(self, numbers={**self.numbers, strategy: params})
        vars(other)["_known"] = self._known
        return other

    def score(self, strategy: str, case: Case) -> Score:
        """Return the cost of a stretch on paper."""
        if not isinstance(case, Stretch):
            raise TypeError("recorded runs stretches")
        part = _part(self._known, case)
        worth = self.work.max_price.dollars * self.work.slots
        if strategy == OPTIMUM:
            return Score(_least(part, case, self.work.slots, worth), is_priced=True)
        work = replace(self.work, strategy=strategy, shadow=())
        lived = own_replay.replay(part, work, self._tuned[strategy], self.caps)
        if lived is None:
            raise TypeError("a stretch has a search")
        counted, useful = lived.paper.counted, lived.paper.counted.useful / HOUR
        idle = max(self.hours - useful / self.work.slots, 0.0)
        figures = {"$": counted.spent.dollars, "useful h": useful, "losses": float(lived.paper.interruptions)}
        return Score(counted.spent.dollars + worth * idle, is_late=useful <= 0, figures=figures, is_priced=True)

    def about(self) -> Mapping[str, object]:
        """Return the facts of the recording, and the meaning of a stretch's cost."""
        looks, cases = self._known.looks, self.cases()
        return {
            "traces": f"{len(looks)} recorded searches of {self.ledger.name}",
            "span": [cases[0].since.isoformat(), cases[-1].until.isoformat()],
            "unit": f"{UNIT}; 'late' counts stretches without useful work",
            **split.about(self.split),
            "hours": self.hours,
            "workload": [*own_workload.as_facts(self.work), *self._also()],
            "caps": _caps(self.caps),
            "bound": f"{OPTIMUM}: the cheapest offer so far in the stretch, where that costs less than no work",
            "paper": "a recorded floor at or below a bid keeps the lease; a floor above the bid interrupts it",
        }

    def _also(self) -> list[str]:
        """Return the properties of the workload that change a recorded stretch but not a rehearsed day."""
        wants = self.work.requirements
        return [
            f"slots {self.work.slots}",
            f"markets {', '.join(self.work.markets) or 'any'}",
            f"regions {', '.join(wants.regions) or 'any'}",
            f"query {wants.query or 'none'}",
        ]

    def digests(self) -> Mapping[str, str]:
        """Return the digests of the numbers."""
        return {name: self._tuned[name].digest for name in self.strategies() if name != OPTIMUM}

    @cached_property
    def _tuned(self) -> dict[str, Tuned]:
        shipped = {name: one for name, one in strategy_files.load().items() if name in OURS}
        return shipped | {name: self._numbered(shipped, name, params) for name, params in self.numbers.items()}

    def _numbered(self, shipped: Mapping[str, Tuned], name: str, params: Params) -> Tuned:
        of = next(each for each, one in shipped.items() if type(one.params) is type(params))
        return replace(shipped[of], name=name, params=params, digest=strategy_files.digest(of, params))


def _caps(caps: Limits) -> list[str]:
    """Return every limit that is set."""
    none = Limits()
    set_ = [each.name for each in fields(Limits) if getattr(caps, each.name) != getattr(none, each.name)]
    return [f"{name} {getattr(caps, name)}" for name in set_]


def _part(known: History, case: Stretch) -> History:
    """Return the records of a stretch, plus a last look that finds no offers: leases that run then run to the end."""
    looks = [look for look in known.looks if case.since <= look.at < case.until]
    return replace(known, looks=[*looks, Seen(looks[-1].market, case.until, ())])


def _least(part: History, case: Stretch, slots: int, worth: float) -> float:
    """Return the least cost of a stretch: at the cheapest offer so far, or without work.

    A lease continues at its bid if offers are dearer or no search is recorded.
    """
    found, before, rate = 0.0, case.since, worth
    for moment in part.moments(own_replay.STEP):
        found += rate * (moment.now - before) / timedelta(hours=1)
        asked = [price.dollars for offer in moment.offers for price in (offer.floor, offer.ask) if price is not None]
        before, rate = moment.now, min([rate, *(price * slots for price in asked)])
    return found + rate * (case.until - before) / timedelta(hours=1)


@functools.lru_cache(maxsize=1)
def _history(ledger: Path) -> History:
    """Return a ledger's records, read once in a process."""

    async def read() -> History:
        reader = await open_reader(ledger)
        try:
            return await ledger_history.read(reader)
        finally:
            await reader.close()

    return asyncio.run(read())
