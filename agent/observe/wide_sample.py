"""Wide questions, now and then, for any offers with the needed numbers of GPUs: they show why nothing fits.

Invariants:
1. A sample is complete: it has the answer for each number of GPUs, or there is none. A part would hide the others.
2. An answer is kept while another question fails or waits: the day's ration of rows is not spent on it twice.
"""

from collections.abc import Callable, Iterable

import structlog

from agent.clock import Clock
from agent.domain.market.offer import Offer
from agent.domain.work.workload import Requirements, Workload
from agent.markets import market_errors, port

log = structlog.get_logger("gpubid.poller")

EVERY = 3600.0
"""Seconds between two wide questions to a market while something is needed of it."""
AGAIN = 600.0
"""Seconds until such a question that failed is asked again."""
ROWS = 256
SPARED_ROWS = 4_500
"""Rows of the day's ration that a wide question leaves to the searches for offers to rent."""


class WideSample:
    """Asks one market."""

    def __init__(self, market: port.Market, clock: Clock, may_ask: Callable[[int], bool]) -> None:
        """Begin without an answer; `may_ask(questions)` returns whether the market takes so many now."""
        self._market = market
        self._clock = clock
        self._may_ask = may_ask
        self._due_at = 0.0
        self._answers: dict[int, tuple[float, tuple[Offer, ...]]] = {}

    async def ask(self, lacking: Iterable[Workload]) -> tuple[Offer, ...] | None:
        """Return a sample for the workloads that lack something; None if it is not due, or not complete yet."""
        counts = sorted({work.requirements.gpus for work in lacking})
        now = self._clock.monotonic()
        if not counts or now < self._due_at:
            return None
        self._answers = {gpus: kept for gpus, kept in self._answers.items() if now - kept[0] < EVERY}
        try:
            for gpus in counts:
                if gpus not in self._answers:
                    if not self._may_ask(1):
                        return None
                    self._answers[gpus] = now, tuple(await self._market.offers(_wide(gpus, ROWS // len(counts))))
        except market_errors.MarketError as error:
            self._due_at = now + AGAIN
            log.debug("sample.failed", market=self._market.name, code=error.code)
            return None
        answers, self._answers, self._due_at = self._answers, {}, now + EVERY
        return tuple(offer for gpus in counts for offer in answers[gpus][1])


def _wide(gpus: int, rows: int) -> port.OfferQuery:
    """Return the question for anything of so many GPUs."""
    return port.OfferQuery(
        requirements=Requirements(gpus=gpus, verified_only=False),
        disk_gb=1.0,
        max_rows=rows,
        is_sample=True,
        spared_rows=SPARED_ROWS,
    )
