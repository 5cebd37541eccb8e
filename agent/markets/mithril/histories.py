"""The market's histories of each bid: the prices that it paid, its events, and the notice of its end.

Each history is a request of its own, so a listing requests a few of them, the oldest first. The others stay as they
were last read. A history that cannot be read changes no listing: the present price of the pool takes its place.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
import structlog

from agent import clock as clocks
from agent.domain.market.interruption import MarketEvent, MarketEventKind
from agent.domain.market.price import PaidBill, PaidPeriod
from agent.domain.money import UsdPerHour
from agent.markets import market_errors
from agent.markets.mithril import bill, client, events, rules

log = structlog.get_logger("gpubid.mithril")

PAID_KEPT_SECONDS = 120.0
"""A price paid changes only at an auction."""
MOST_ASKED = 20
"""The most histories that one listing, or one reading of events, requests."""
UNSEEN_SECONDS = rules.RULES.notice.total_seconds()
"""After a gap this long between two listings, a bid may have won a machine and lost it in between."""
MOST_PAGES = 100
MOST_PERIODS = 300
"""The most periods of a bill that a listing shows, the youngest ones: ten hours of auctions."""


class _Price(msgspec.Struct):
    read_at: float
    periods: Sequence[PaidPeriod]
    is_billing: bool
    """Whether the bid had a machine by its status when the bill was read."""

    @property
    def period(self) -> PaidPeriod | None:
        """The period that has no end yet, or None if the bill has none."""
        return bill.present(self.periods)


class Histories:
    """The histories of a project's bids, by bid."""

    def __init__(self, endpoints: client.MithrilClient, clock: clocks.Clock) -> None:
        self._client = endpoints
        self._clock = clock
        self._prices: dict[str, _Price] = {}
        self._notices: dict[str, datetime] = {}
        self._events: dict[str, Sequence[MarketEvent]] = {}
        self._seen: dict[str, str] = {}
        self._due: dict[str, None] = {}
        self._unread: set[str] = set()
        self._looked: tuple[float, datetime] | None = None

    def look(self, statuses: Mapping[str, str]) -> None:
        """Note the present statuses of all bids: the history of a changed bid is due, that of a vanished bid is not."""
        self._unread = set(statuses) if self._has_gap() else self._unread & statuses.keys()
        changed = [fid for fid, status in statuses.items() if self._seen.get(fid) != status]
        self._due |= dict.fromkeys(changed)
        self._seen = dict(statuses)
        for known in (self._due, self._prices, self._notices, self._events):
            for fid in [fid for fid in known if fid not in statuses]:
                del known[fid]

    def paid(self, bid_fid: str) -> UsdPerHour | None:
        """Return the last known price that a bid's machine paid, or None."""
        period = self.period(bid_fid)
        return period.rate if period is not None else None

    def period(self, bid_fid: str) -> PaidPeriod | None:
        """Return the present period of the bill of a bid's machine, or None."""
        known = self._prices.get(bid_fid)
        return known.period if known is not None else None

    def last_paid(self, bid_fid: str) -> UsdPerHour | None:
        """Return the youngest price that a bid's machine paid, also after its end, or None."""
        known = self._prices.get(bid_fid)
        last = max(known.periods, key=lambda period: period.start, default=None) if known is not None else None
        return last.rate if last is not None else None

    def has_bill(self, bid_fid: str) -> bool:
        """Return whether the bill of a bid was ever read."""
        return bid_fid in self._prices

    def is_bill_over(self, bid_fid: str) -> bool:
        """Return whether the bill shows that a bid's machine does not pay any more."""
        known = self._prices.get(bid_fid)
        return known is not None and bool(known.periods) and known.period is None

    def paid_bill(self, bid_fid: str, *, is_allocated: bool) -> PaidBill | None:
        """Return the bill of a bid as it was last read; without the present machine, up to its last period's end."""
        known = self._prices.get(bid_fid)
        if known is None:
            return None
        # A clock that was put right since then has moved that instant, too.
        read_on = self._clock.now() - timedelta(seconds=self._clock.monotonic() - known.read_at)
        periods = sorted(known.periods, key=lambda period: period.start)
        ends = [read_on if period.end is None else period.end for period in periods]
        if is_allocated and known.period is None:
            return None if not ends else _shown(periods, min(max(ends), read_on))
        return _shown(periods, read_on)

    async def learn_prices(
        self, billing: Iterable[str], stopped: Iterable[str] = (), waiting: Iterable[str] = ()
    ) -> None:
        """Read the bills of bids that have a machine, and those of `stopped` bids until their last period has ended.

        At the first listing and after a gap, the bill of each bid is due, also of `waiting` ones.

        Raises: Unauthorized.
        """
        now = self._clock.monotonic()
        unread = (fid for fid in waiting if fid in self._unread)
        held = dict.fromkeys((*unread, *stopped), False) | dict.fromkeys(billing, True)
        aged = {fid: self._age(fid, now, is_billing=is_billing) for fid, is_billing in held.items()}
        due = sorted((fid for fid, age in aged.items() if age >= PAID_KEPT_SECONDS), key=lambda fid: -aged[fid])
        for fid in due[:MOST_ASKED]:
            try:
                periods = await self.periods(fid)
            except market_errors.Unauthorized:
                raise
            except market_errors.MarketError as error:
                log.debug("price.unread", bid=fid, code=error.code)
                return
            self._prices[fid] = _Price(now, periods, held[fid])
            self._unread.discard(fid)

    def _has_gap(self) -> bool:
        """Note this listing, and return whether the one before it is too old to know what bids won since.

        By both clocks: the monotonic one stands still while the machine sleeps.
        """
        before, self._looked = self._looked, (self._clock.monotonic(), self._clock.now())
        if before is None:
            return True
        passed = max(self._looked[0] - before[0], (self._looked[1] - before[1]).total_seconds())
        return passed >= UNSEEN_SECONDS

    def _age(self, bid_fid: str, now: float, *, is_billing: bool) -> float:
        """Return seconds since a bill was read: infinite if its bid got or lost a machine since, 0 if it has ended."""
        known = self._prices.get(bid_fid)
        if known is None or known.is_billing is not is_billing or bid_fid in self._unread:
            return math.inf
        return now - known.read_at if is_billing or known.period is not None else 0.0

    async def periods(self, bid_fid: str, since: datetime | None = None) -> list[PaidPeriod]:
        """Return what a bid's machines paid, by period, of all pages.

        Raises: as the port's `charges`.
        """
        found: list[PaidPeriod] = []
        mark = ""
        for _ in range(MOST_PAGES):
            rows, next_mark = bill.periods(await self._client.paid(bid_fid, since, mark), bid_fid)
            found += rows
            if not next_mark:
                return found
            if next_mark == mark:
                break
            mark = next_mark
        raise market_errors.Malformed("mithril's history of prices does not end; it is refused.")

    async def notice_at(self, bid_fid: str, *, is_preempting: bool, has_two_words: bool) -> datetime | None:
        """Return when a bid's machine ends, asked once for each notice; None if it was given none.

        The word of a bid alone is no notice if the machine's history, which the market can show, has none: it is asked
        for again with the next listing. `has_two_words` says that the machine's own status is a notice too.
        """
        if not is_preempting:
            self._forget_old_notice(bid_fid)
            return None
        if bid_fid not in self._notices:
            now = self._clock.now()
            try:
                at = events.notice_at(await self._client.statuses(bid_fid), now)
                if at is None and not has_two_words:
                    return None
                self._notices[bid_fid] = at or now + rules.RULES.notice
            except market_errors.Unauthorized:
                raise
            except market_errors.MarketError:
                self._notices[bid_fid] = now + rules.RULES.notice
        return self._notices[bid_fid]

    async def changes(self) -> Sequence[MarketEvent]:
        """Return the known events of all bids, with those of changed bids read again.

        Raises: as the port's `events`.
        """
        for fid in list(self._due)[:MOST_ASKED]:
            try:
                self._events[fid] = events.history(await self._client.history(fid), fid)
            except market_errors.NotFound:
                self._events.pop(fid, None)
            del self._due[fid]
        return [self._dated(fid, event) for fid, found in self._events.items() for event in found]

    def was_allocated(self, bid_fid: str) -> bool:
        """Return whether a bid ever had a machine, as far as its history is known."""
        return events.was_allocated(self._events.get(bid_fid, ()))

    def _dated(self, bid_fid: str, event: MarketEvent) -> MarketEvent:
        """Return a loss dated at the end of its notice: the market may write down the begin or the end of the notice.

        Whether the minutes of a notice are charged is not known either, so they are metered.
        """
        notice = self._notices.get(bid_fid)
        is_of_it = notice is not None and event.at <= notice <= event.at + rules.RULES.notice
        if event.kind is not MarketEventKind.BID_LOST or notice is None or not is_of_it:
            return event
        return MarketEvent(event.event_id, event.market, event.kind, event.instance_id, notice, event.your_bid)

    def _forget_old_notice(self, bid_fid: str) -> None:
        notice = self._notices.get(bid_fid)
        # The event that ends it is dated by it, and may be read some time later.
        if notice is not None and self._clock.now() - notice >= 4 * rules.RULES.notice:
            del self._notices[bid_fid]


def _shown(periods: Sequence[PaidPeriod], until: datetime) -> PaidBill:
    """Return a bill of the youngest periods."""
    youngest = tuple(periods[-MOST_PERIODS:])
    return PaidBill(youngest, until, youngest[0].start if len(youngest) < len(periods) else None)
