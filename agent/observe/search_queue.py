"""One market's searches for offers: for workloads with a choice to make, for the price history, and why nothing fits.

Invariants:
1. A search that the market would not take yet is left to a later cycle, and so are those that come after
   `MOST_SECONDS` of answers: no search delays listings and endings for long.
2. All questions for one workload are asked in one cycle: a half of the answers would hide the cheaper offers.
3. Of the searches that are due, those with a deadline near go first, and then the one whose last is longest ago.
4. While a market has told us to wait, no search is sent and none is counted: the first cycle after that sends it.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta

import structlog

from agent.clock import Clock
from agent.decide.needs import Need
from agent.domain.market.offer import Offer
from agent.domain.work.workload import Workload
from agent.markets import market_errors, port
from agent.observe import search_questions
from agent.observe.search_interval import SearchInterval
from agent.observe.wide_sample import WideSample

log = structlog.get_logger("gpubid.poller")

OFFERS_KEPT = timedelta(minutes=2)
"""Offers go stale in seconds; older ones are not used."""
MOST_SECONDS = 20.0
"""After so long no further search begins in a cycle. The one that is under way ends by its own deadline."""
SURVEY_EVERY = 3600.0
"""Seconds between small searches without a need: for the price history, and to see whether there is a better offer."""
SURVEY_OF_DEAR_EVERY = 900.0
"""Seconds between such searches for a workload that pays for on-demand capacity: at most 1,152 rows a day for each."""
SURVEY_AGAIN = 600.0
"""Seconds until a small search without a need that failed is sent again."""
ROWS = 16
ROWS_OF_SURVEY = 12


class SearchQueue:
    """Searches one market."""

    def __init__(self, market: port.Market, clock: Clock) -> None:
        """Begin without offers."""
        self.found: tuple[Offer, ...] = ()
        """The offers of the last cycle's searches."""
        self.delay: float | None = None
        """Seconds until the market takes the first search that the last cycle left; None if it left none."""
        self.is_patient = False
        """Whether searches wait for their turn, because no later cycle comes."""
        self._market = market
        self._clock = clock
        self._pace = SearchInterval()
        self._surveyed: dict[str, float] = {}
        self._kept: dict[str, Offer] = {}
        self._wide = WideSample(market, clock, self._may_ask)
        self._closed_until: datetime | None = None
        self._began = clock.monotonic()

    @property
    def offers(self) -> tuple[Offer, ...]:
        """The offers that are fresh enough to be used, by id."""
        return tuple(self._kept[key] for key in sorted(self._kept))

    @property
    def answered(self) -> tuple[str, ...]:
        """The workloads, by name, whose search was answered so lately that its offers may be used, or with none."""
        since = self._clock.monotonic() - OFFERS_KEPT.total_seconds()
        return tuple(sorted(name for name, at in self._surveyed.items() if at >= since))

    def pass_over(self) -> None:
        """Do without searches in this cycle."""
        self.delay = None
        self._keep(())

    async def ask(self, needs: Sequence[Need], workloads: Sequence[Workload], dear: Collection[str]) -> None:
        """Search for each need whose turn it is, then for workloads of which no price was seen for a while."""
        self.delay, self._began = None, self._clock.monotonic()
        fresh = await self._choices([need for need in needs if need.workload.may_use(self._market.name)])
        asked = {need.workload.name for need in needs}
        self._pace.keep(asked)
        others = [work for work in workloads if work.slots > 0 and work.name not in asked]
        fresh += await self._surveys([work for work in others if work.may_use(self._market.name)], dear)
        self._keep(fresh)

    async def sample(self, lacking: Iterable[Workload]) -> tuple[Offer, ...] | None:
        """Ask now and then for any offers, for workloads that lack something: the answer shows why nothing fits."""
        mine = [work for work in lacking if work.may_use(self._market.name)]
        return None if self._is_closed() else await self._wide.ask(mine)

    async def _choices(self, needs: Iterable[Need]) -> list[Offer]:
        now = self._clock.monotonic()
        found: list[Offer] = []
        for need in sorted(needs, key=lambda need: (not need.is_pressed, self._pace.last(need.workload.name))):
            name, bars = need.workload.name, need.bars_at(self._market.name)
            if not self._pace.is_due(name, need.key, bars, now):
                continue
            questions = search_questions.of(need.workload, (), ROWS)
            held_here = tuple(host for market, host in need.held_hosts if market == self._market.name)
            questions += search_questions.of(need.workload, held_here, ROWS) if held_here else []
            if not self._may_ask(len(questions)):
                break
            self._pace.count(name, need.key, bars, now)
            if await self._ask_all(questions, found):
                self._surveyed[name] = now
            else:
                self._pace.fail(name)
        return found

    async def _surveys(self, workloads: Iterable[Workload], dear: Collection[str]) -> list[Offer]:
        now = self._clock.monotonic()
        found: list[Offer] = []
        for work in sorted(workloads, key=lambda work: self._surveyed.get(work.name, float("-inf"))):
            every = SURVEY_OF_DEAR_EVERY if work.name in dear else SURVEY_EVERY
            if now - self._surveyed.get(work.name, now - every) < every:
                continue
            questions = search_questions.of(work, (), ROWS_OF_SURVEY)
            if self.delay is not None or not self._may_ask(len(questions)):
                break
            is_whole = await self._ask_all(questions, found)
            self._surveyed[work.name] = now if is_whole else now - every + SURVEY_AGAIN
        return found

    def _may_ask(self, questions: int) -> bool:
        """Return whether the market takes so many questions now, and note the delay if it does not."""
        if self._is_closed():
            return False
        if self.is_patient:
            return True
        is_slow = self._clock.monotonic() - self._began >= MOST_SECONDS
        delay = self._market.search_delay(questions)
        if delay > 0 or is_slow:
            self.delay = delay if self.delay is None else min(self.delay, delay)
            return False
        return True

    async def _ask_all(self, questions: Iterable[port.OfferQuery], found: list[Offer]) -> bool:
        """Add the offers of the answers to `found`, and return whether every question was answered."""
        try:
            for query in questions:
                found += await self._market.offers(query)
        except market_errors.Throttled as error:
            self._closed_until = error.until
            log.warning("search.throttled", market=self._market.name, until=str(error.until))
            return False
        except market_errors.MarketError as error:
            log.warning("search.failed", market=self._market.name, code=error.code)
            return False
        return True

    def _is_closed(self) -> bool:
        return self._closed_until is not None and self._clock.now() < self._closed_until

    def _keep(self, fresh: Iterable[Offer]) -> None:
        self.found = tuple(fresh)
        since = self._clock.now() - OFFERS_KEPT
        kept = self._kept | {offer.offer_id: offer for offer in self.found}
        self._kept = {key: offer for key, offer in kept.items() if offer.seen_at >= since}
