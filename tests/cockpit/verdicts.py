"""Judges what cockpits show by the versions that the ledger had at the instants that they name."""

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime

from agent.config.settings import Config
from tests.cockpit.expected import Expected, expected
from tests.cockpit.ledger_versions import LedgerVersions

SETTLED_SECONDS = 0.5
"""After this time the versions of an instant have been read."""
Comparison = Callable[[Expected, Expected], list[str]]
"""Returns what differs from the ledger at the first and the last instant of a span."""


@dataclasses.dataclass(slots=True)
class Verdicts:
    """How often each cockpit was judged, what differed, and what could not be judged."""

    versions: LedgerVersions
    config: Config
    judged: Counter[str] = dataclasses.field(default_factory=Counter)
    unjudged: Counter[str] = dataclasses.field(default_factory=Counter)
    wrong: list[str] = dataclasses.field(default_factory=list)

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
        for version in versions:
            ledger = expected(version, first, self.config), expected(version, last, self.config)
            found += [compare(*ledger) for compare in comparisons]
            if not all(found):
                self.judged[who] += 1
                return
        if not found or not are_all or not is_whole:
            self.unjudged[who] += 1
            return
        self.judged[who] += 1
        self.wrong.append(f"{who} of {first.isoformat()}: " + "; ".join(min((len(each), each) for each in found)[1]))
