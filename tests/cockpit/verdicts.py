"""Judges what cockpits show by the versions that the ledger had at the instants that they name."""

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from agent.config.settings import Config
from tests.cockpit import recent, savings
from tests.cockpit.expected import Expected, expected
from tests.cockpit.ledger_versions import LedgerVersions
from tests.cockpit.recent import Recent, RecentVersions

SETTLED_SECONDS = 0.5
"""After this time the versions of an instant have been read."""
READING = timedelta(seconds=10)
"""Savings are read within this time after their date. Assumed."""
CYCLE = timedelta(seconds=30)
"""A price is in the ledger within this time after it was seen. Assumed."""
CARD_SECONDS = 10.0
"""The feed has the savings that the page shows within this time."""
Comparison = Callable[[Expected, Expected, Recent], list[str]]
"""Returns what differs from the ledger at the first and the last instant of a span, and in the minute before."""


@dataclasses.dataclass(slots=True)
class Verdicts:
    """How often each cockpit was judged, what differed, and what could not be judged."""

    versions: LedgerVersions
    config: Config
    judged: Counter[str] = dataclasses.field(default_factory=Counter)
    unjudged: Counter[str] = dataclasses.field(default_factory=Counter)
    wrong: list[str] = dataclasses.field(default_factory=list)
    _recent: RecentVersions = dataclasses.field(init=False)
    _savings: dict[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self._recent = RecentVersions(self.config)

    async def judge(
        self, who: str, first: datetime, last: datetime, comparisons: Sequence[Comparison], *, is_whole: bool = True
    ) -> None:
        """Judge figures that are as of an instant between two: one comparison has to hold for one version.

        Several comparisons are of the same figures, drawn in several steps; where they may never have been whole,
        `is_whole` is false. A version that came and went unread might be the one that was shown.
        """
        await asyncio.sleep(SETTLED_SECONDS)
        versions, are_all = self.versions.at(first, last)
        found: list[list[str]] = []
        minute = self._recent.of(*self.versions.at(first - recent.SPAN, last), last)
        for version in versions:
            ledger = expected(version, first, self.config), expected(version, last, self.config)
            found += [compare(*ledger, minute) for compare in comparisons]
            if not all(found):
                self.judged[who] += 1
                return
        if not found or not are_all or not is_whole:
            self.unjudged[who] += 1
            return
        self.judged[who] += 1
        self.wrong.append(f"{who} of {first.isoformat()}: " + "; ".join(min((len(each), each) for each in found)[1]))

    async def judge_savings(self, shown: Mapping[str, Any] | None) -> None:
        """Judge the savings of a message by their own date: the first of each date by the ledger, the others by it."""
        if shown is None:
            return
        first = self._savings.setdefault(shown["as_of"], shown)
        if first is not shown:
            self.wrong += [] if first == shown else [f"savings: shown {dict(shown)}, before {dict(first)}"]
            return
        await asyncio.sleep(SETTLED_SECONDS + READING.total_seconds())
        at = datetime.fromisoformat(shown["as_of"])
        samples = await asyncio.to_thread(self.versions.samples)
        # Neither the version nor the last prices that it read are told.
        cuts = {at, *(each.at for each in samples if at - CYCLE <= each.at <= at + READING)}
        asks = [savings.Asks.up_to(cut, samples) for cut in sorted(cuts)]
        lines = [version.lines for version in self.versions.at(at, at + READING)[0]]
        figures = {key: value for key, value in shown.items() if key not in {"as_of", "since"}}
        self.judged["savings"] += 1
        if not any(savings.saved(mine, each, at) == figures for mine in lines for each in asks):
            wanted = [savings.saved(mine, asks[-1], at) for mine in lines[-1:]]
            self.wrong.append(f"savings of {at.isoformat()}: shown {figures}, ledger {wanted}")
        month = datetime(at.year, at.month, 1, tzinfo=UTC)
        if datetime.fromisoformat(shown["since"]) != month:
            self.wrong.append(f"savings: since {shown['since']}, the month began {month.isoformat()}")

    async def judge_card(self, shown: Sequence[str], dates: Sequence[str]) -> None:
        """Judge the page's card of savings by the feed's of the same date, which the ledger judges."""
        if not dates:
            return
        _, at = (datetime.fromisoformat(each) for each in dates)
        await asyncio.sleep(CARD_SECONDS)
        same = [each for date, each in self._savings.items() if datetime.fromisoformat(date) == at]
        if not same:
            self.unjudged["card"] += 1
            return
        self.judged["card"] += 1
        wanted = list(savings.card(same[0]))
        if list(shown[:2]) != wanted:
            self.wrong.append(f"card of {at.isoformat()}: shown {list(shown)}, feed {wanted}")
