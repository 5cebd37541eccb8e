"""Judges what cockpits show by the versions that the ledger had at the instants that they name."""

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agent.config.settings import Config
from tests.cockpit import recent, savings
from tests.cockpit.expected import Expected, expected
from tests.cockpit.ledger_versions import LedgerVersions
from tests.cockpit.recent import Recent, RecentVersions

LOOK_SECONDS = 0.1
PATIENCE_SECONDS = 30.0
"""A version that is not read by then is unjudged; versions are kept longer than this and the minute before."""
CARD_SECONDS = 10.0
"""A card is unjudged if the feed has not shown its savings by then."""
Comparison = Callable[[Expected, Expected, Recent], list[str]]
"""Returns what differs from the ledger at the first and the last instant of a span, and in the minute before."""


@dataclasses.dataclass(slots=True)
class Verdicts:
    """The judgements of each cockpit: their number, the differences, and the figures that could not be judged."""

    versions: LedgerVersions
    config: Config
    judged: Counter[str] = dataclasses.field(default_factory=Counter)
    unjudged: Counter[str] = dataclasses.field(default_factory=Counter)
    wrong: list[str] = dataclasses.field(default_factory=list)
    rated: set[tuple[datetime, str]] = dataclasses.field(default_factory=set)
    """The instants and slots of which a sentence's rate was compared with the leases of that slot."""
    _recent: RecentVersions = dataclasses.field(init=False)
    _savings: dict[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self._recent = RecentVersions(self.config, self.rated)

    async def judge(
        self, who: str, first: datetime, last: datetime, comparisons: Sequence[Comparison], *, is_whole: bool = True
    ) -> None:
        """Judge figures that are as of an instant between two: one comparison has to hold for one version.

        Several comparisons are of the same figures, drawn in several steps; where they may never have been whole,
        `is_whole` is false. A version that came and went unread might be the one that was shown.
        """
        await self._read_up_to(last)
        span = self.versions.at(first, last)
        found: list[list[str]] = []
        minute = self._recent.of(self.versions.at(first - recent.SPAN, last), last)
        for version in span.versions:
            ledger = expected(version, first, self.config), expected(version, last, self.config)
            found += [compare(*ledger, minute) for compare in comparisons]
            if not all(found):
                self.judged[who] += 1
                return
        if not found or not span.is_whole or not is_whole:
            self.unjudged[who] += 1
            return
        self.judged[who] += 1
        self.wrong.append(f"{who} of {first.isoformat()}: " + "; ".join(min((len(each), each) for each in found)[1]))

    async def _read_up_to(self, last: datetime) -> None:
        """Wait until the versions up to an instant have been read, but not for ever."""
        for _ in range(round(PATIENCE_SECONDS / LOOK_SECONDS)):
            if self.versions.is_past(last):
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def judge_savings(self, shown: Mapping[str, Any] | None, came: datetime) -> None:
        """Judge the savings of a message by their own date: the first of each date by the ledger, the others by it.

        They were read of the ledger between their date and the instant at which their first message `came`.
        """
        if shown is None:
            return
        first = self._savings.setdefault(shown["as_of"], shown)
        if first is not shown:
            self.wrong += [] if first == shown else [f"savings: shown {dict(shown)}, before {dict(first)}"]
            return
        await self._read_up_to(came)
        at = datetime.fromisoformat(shown["as_of"])
        span = self.versions.at(at, came)
        samples = await asyncio.to_thread(self.versions.samples)
        # It does not say which version it read, and lines and prices may be of two.
        cuts = sorted({each.newest_price for each in span.versions if each.newest_price is not None})
        asks = [savings.Asks.up_to(cut, samples) for cut in cuts] or [savings.Asks({})]
        figures = {key: value for key, value in shown.items() if key not in {"as_of", "since"}}
        lines = [each.lines for each in span.versions]
        is_right = any(savings.saved(mine, each, at) == figures for mine in lines for each in asks)
        if not is_right and not span.is_whole:
            self.unjudged["savings"] += 1
            return
        self.judged["savings"] += 1
        if not is_right:
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
