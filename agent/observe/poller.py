"""One market's poller: a complete listing each cycle, requests by id when something is wrong, offers when asked.

Invariants:
1. The last good listing is kept with its age; a failed read makes it stale, never empty.
2. Failure is logged once when it begins and once when it ends.
3. If the market does not show the account, no listing becomes stale unless it refuses our key. The account's facts grow
   old; nothing is paid for once they are older than `ACCOUNT_KEPT`.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
import structlog

from agent.clock import CLOSE, SteadyClock
from agent.decide.needs import Need
from agent.decide.reconcile.probes.probing import Target
from agent.domain import span_text
from agent.domain.fleet import MarketView
from agent.domain.market.account_refusal import Refusal
from agent.domain.market.instance import Instance
from agent.domain.market.interruption import MarketEvent, MarketEventKind
from agent.domain.market.label import Label
from agent.domain.money import Usd
from agent.domain.record.event_kind import LoggedKind
from agent.domain.work.workload import Workload
from agent.markets import labels, market_errors, port
from agent.observe import market_time
from agent.observe.credit_readings import CreditReadings
from agent.observe.prober import Prober
from agent.observe.search_queue import SearchQueue

log = structlog.get_logger("gpubid.poller")

ACCOUNT_EVERY = 300.0
"""Seconds between readings of credit, account id and the market's clock when nothing is wrong."""
ACCOUNT_KEPT = 900.0
"""Seconds for which credit, account id and clock are believed while the market does not show the account."""
EVENTS_KEPT = timedelta(hours=6)
RECALLS = 3
"""Failed readings of the event record in a row that are tolerated: the market must stay usable without its inbox."""
LOOKS_AT_ONCE = 16
"""Instances asked for by id in one cycle to see their labels: after an upgrade every lease needs one request."""


class Poller:
    """Asks one market, and keeps its answers."""

    def __init__(
        self, market: port.Market, clock: SteadyClock, no_spend_because: str, is_ours: Callable[[str], str]
    ) -> None:
        """Read from `market`; `is_ours(account id)` returns why that account may not pay, or an empty text."""
        self.market = market
        self._clock = clock
        self._no_spend = no_spend_because
        self._is_ours = is_ours
        self._is_down = False
        self._refused_since: float | None = None
        """Since when every listing was answered by a refusal of our key, in seconds of the monotonic clock."""
        self._account_at: float | None = None
        """When the account was last read, in seconds of the monotonic clock."""
        self._is_account_usual = False
        """Whether that answer was as usual: an odd one is read again with every listing."""
        self._is_account_unread = False
        self._asked_at: dict[str, float] = {}
        """When each instance whose label is not proven was last asked for, in seconds of the monotonic clock."""
        self.searches = SearchQueue(market, clock)
        self._credit = CreditReadings()
        self._events_since: datetime | None = None
        self._records_unread = 0
        unread = "the account has not been read yet"
        self.view = MarketView(market=market.name, no_spend_because=unread, is_clock_read=False, rules=market.rules())
        self.prober: Prober | None = None
        """Set by the composition root, if instances themselves can be probed."""

    def recall_credit(self, recorded: Usd | None) -> None:
        """Take the credit that an earlier process recorded, so that one wrong first reading ends nothing."""
        self._credit = CreditReadings(recorded)

    def forbid(self, because: str) -> None:
        """Show from the next look on that nothing may be paid for there; an empty text allows it again."""
        self._no_spend = because

    async def look(self) -> MarketView:
        """Read the complete listing, and the account when it is due; return the view, stale if either read failed."""
        skew = self._clock.heed(self.market.name, None)
        self.view = msgspec.structs.replace(
            self.view,
            is_fresh=False,
            trouble="",
            absent_ids=frozenset(),
            looked_up=frozenset(),
            unlisted_ids=frozenset(),
            looks={},
            looked_rows={},
            is_key_proven=False,
            is_record_read=False,
            events=(),
            offers=(),
            answered=(),
            clock_skew_seconds=skew,
        )
        try:
            self._see(await self._listing())
            if not self._is_account_usual or self._account_age() >= ACCOUNT_EVERY:
                await self._look_at_account()
                await self._read_announced()
            else:
                why_not = self._no_spend or self._is_ours(self.view.account_id)
                self.view = msgspec.structs.replace(self.view, no_spend_because=why_not)
        except market_errors.MarketError as error:
            self._failed(error)
        else:
            self._recovered()
        self._see_tenures()
        return self.view

    async def sight(self, targets: Sequence[Target]) -> MarketView:
        """Probe the instances that need it; return the view with the results."""
        if self.prober is not None:
            sightings = await self.prober.look(targets)
            if sightings != self.view.sightings:
                self.view = msgspec.structs.replace(self.view, sightings=sightings)
        return self.view

    async def look_closer(self, instance_ids: Iterable[str]) -> MarketView:
        """Read the account, the market's own record of events, and each instance that the listing lacks."""
        try:
            await self._look_at_account()
            await self._read_record()
            for instance_id in (asked := sorted(instance_ids)):
                await self._probe(instance_id)
            denied = self.view.absent_ids if self.view.is_key_proven else self.view.denied_ids & {*asked}
            self.view = msgspec.structs.replace(self.view, denied_ids=denied)
        except market_errors.MarketError as error:
            self._failed(error)
        return self.view

    async def recall(self, since: datetime) -> MarketView:
        """Read the market's own record of events since `since`: there was no listing for a while."""
        self._events_since = since
        try:
            await self._read_record()
        except market_errors.MarketError as error:
            self._failed(error)
        return self.view

    async def look_at(self, instance_ids: Iterable[str]) -> MarketView:
        """Ask for instances by their ids, to see their labels; a failed request shows nothing.

        At most `LOOKS_AT_ONCE` are asked for: those that were never asked for, then those asked for longest ago. So
        none waits for ever for others whose requests fail.
        """
        self._asked_at = {each: self._asked_at.get(each, -math.inf) for each in instance_ids}
        for instance_id in sorted(self._asked_at, key=lambda each: (self._asked_at[each], each))[:LOOKS_AT_ONCE]:
            self._asked_at[instance_id] = self._clock.monotonic()
            try:
                row = await self.market.instance(instance_id)
            except market_errors.MarketError as error:
                log.debug("label.unread", market=self.market.name, instance=instance_id, code=error.code)
                continue
            if row.instance_id == instance_id:
                self._shown(row)
        return self.view

    async def ask(self, needs: Sequence[Need], workloads: Sequence[Workload], dear: Collection[str] = ()) -> MarketView:
        """Search for offers if there is a choice to make, and sometimes for the price history.

        Workloads named in `dear` pay for on-demand, so cheaper offers are searched for them more often.
        """
        if not self.view.is_fresh:
            # Nothing may be rented on a stale view. A search now would cost rows, and its back-off would outlast the
            # time without listings.
            self.searches.pass_over()
            self._see_offers()
            return self.view
        await self.searches.ask(needs, workloads, dear)
        self._see_offers()
        sampled = await self.searches.sample([need.workload for need in needs])
        if sampled is not None:
            self.view = msgspec.structs.replace(self.view, sample=sampled, sampled_at=self._clock.now())
        # A search may be the first to show that something is not sold. `gpubid explain` runs one pass alone.
        self._see_tenures()
        return self.view

    def _see_offers(self) -> None:
        """Take in the offers of the searches, and for which workloads they were made."""
        self.view = msgspec.structs.replace(self.view, offers=self.searches.offers, answered=self.searches.answered)

    def _see_tenures(self) -> None:
        """Take in which tenures the market does not sell, and why."""
        not_sold = self.market.not_sold()
        if not_sold != self.view.not_sold:
            self.view = msgspec.structs.replace(self.view, not_sold=dict(not_sold))

    @property
    def refusal(self) -> Refusal | None:
        """The refusal of our key, if the last listing was answered by one. A market that is away refuses nothing."""
        if self._refused_since is None:
            return None
        lasts = timedelta(seconds=self._clock.monotonic() - self._refused_since)
        return Refusal(lasts, is_since_start=self.view.listings == 0)

    async def _listing(self) -> Sequence[Instance]:
        """Return the complete listing, and note whether the market refuses our key; any other failure is doubt."""
        before, self._refused_since = self._refused_since, None
        try:
            return await market_time.listing(self.market, self._clock)
        except market_errors.Unauthorized as error:
            if error.is_proven:
                self._refused_since = self._clock.monotonic() if before is None else before
            raise

    def _see(self, rows: Sequence[Instance]) -> None:
        self.view = msgspec.structs.replace(
            self.view,
            instances=tuple(rows),
            labels=_labels(rows),
            listed_at=self._clock.now(),
            listed_monotonic=self._clock.monotonic(),
            is_fresh=True,
            listings=self.view.listings + 1,
            denied_ids=self.view.denied_ids.difference(row.instance_id for row in rows),
        )

    async def _look_at_account(self) -> None:
        """Read the account; if the market does not show it, use the last answer.

        Raises:
            Unauthorized: the market refuses our key.
        """
        try:
            await self._read_account()
            self._is_account_unread = False
        except market_errors.Unauthorized:
            raise
        except market_errors.MarketError as error:
            if not self._is_account_unread:
                log.warning("account.unread", market=self.market.name, code=error.code)
            self._is_account_unread = True
            if self._account_at is not None and self._account_age() > ACCOUNT_KEPT:
                silence = span_text.minutes(timedelta(seconds=self._account_age()))
                why = f"the market has not shown the account for {silence} ({error.code})"
                self.view = msgspec.structs.replace(self.view, no_spend_because=self._no_spend or why)

    def _account_age(self) -> float:
        """Return the seconds since the account was last read; inf if it never was."""
        return float("inf") if self._account_at is None else self._clock.monotonic() - self._account_at

    async def _read_account(self) -> None:
        account = await self.market.account()
        why_not = self._is_ours(account.account_id)
        believed = await market_time.believed(self.market, self._clock, account.market_time)
        skew = self._clock.heed(self.market.name, believed)
        before_fall = self._credit.take(account.credit, self._clock.monotonic())
        # A wrong clock, another account, or a sudden fall of the credit is read again with every listing: one wrong
        # answer must not stop paying for long.
        is_same = self.view.account_id in {"", account.account_id}
        self._is_account_usual = abs(skew) <= CLOSE.total_seconds() and before_fall is None and is_same
        self._account_at = self._clock.monotonic()
        self.view = msgspec.structs.replace(
            self.view,
            # A key of another account would deny every instance of ours.
            is_key_proven=not why_not,
            account_id=account.account_id,
            credit=account.credit,
            credit_before_fall=before_fall,
            clock_skew_seconds=skew,
            is_clock_read=self.view.is_clock_read or believed is not None or account.market_time is None,
            no_spend_because=self._no_spend or why_not,
        )

    async def _read_record(self) -> None:
        """Read the record of events; after `RECALLS` failures in a row the listing is judged without it.

        Raises:
            MarketError: it could not be read, and may be asked for again.
        """
        try:
            await self._read_events()
            self._records_unread = 0
        except market_errors.MarketError as error:
            self._records_unread += 1
            log.warning("events.unread", market=self.market.name, code=error.code)
            if self._records_unread < RECALLS:
                raise

    async def _read_events(self) -> None:
        since = min(self._clock.now() - EVENTS_KEPT, self._events_since or self._clock.now())
        events = await self.market.events(since)
        has_record = port.Capability.EVENTS in self.market.capabilities()
        self.view = msgspec.structs.replace(self.view, events=tuple(events), is_record_read=has_record)
        self._keep_announced(events)

    async def _read_announced(self) -> None:
        """Read what hosts announce, rises and maintenance, if there are leases; a failure makes no listing stale."""
        if not self.view.instances:
            return
        try:
            self._keep_announced(await self.market.events(self._clock.now() - EVENTS_KEPT))
        except market_errors.MarketError as error:
            log.warning("rises.unread", market=self.market.name, code=error.code)

    def _keep_announced(self, events: Sequence[MarketEvent]) -> None:
        rises, notices = _of(MarketEventKind.PRICE_RISE, events), _of(MarketEventKind.MAINTENANCE, events)
        self.view = msgspec.structs.replace(self.view, rises=rises, notices=notices)

    async def _probe(self, instance_id: str) -> None:
        """Ask for one instance by its id: a listing may be wrong, and two endpoints are rarely wrong alike."""
        try:
            row = await self.market.instance(instance_id)
        except market_errors.NotFound:
            self.view = msgspec.structs.replace(self.view, absent_ids=self.view.absent_ids | {instance_id})
            return
        if row.instance_id != instance_id:
            return
        self._shown(row)
        unlisted = self.view.unlisted_ids
        if self.view.instance(instance_id) is None:
            unlisted |= {instance_id}
        self.view = msgspec.structs.replace(
            self.view,
            instances=(*self.view.instances, row),
            # The listing's label stays: the request by id is the second answer, and never counts as both.
            labels={**_labels((row,)), **self.view.labels} if instance_id in unlisted else self.view.labels,
            looked_up=self.view.looked_up | {instance_id},
            unlisted_ids=unlisted,
        )

    def _shown(self, row: Instance) -> None:
        looks = {**self.view.looks, row.instance_id: labels.parse(row.label)}
        self.view = msgspec.structs.replace(
            self.view, looks=looks, looked_rows={**self.view.looked_rows, row.instance_id: row}
        )

    def _failed(self, error: market_errors.MarketError) -> None:
        self.view = msgspec.structs.replace(self.view, is_fresh=False, trouble=str(error)[:200])
        if not self._is_down:
            log.warning(
                LoggedKind.MARKET_UNAVAILABLE, market=self.market.name, code=error.code, reason=str(error)[:200]
            )
        self._is_down = True

    def _recovered(self) -> None:
        if self._is_down:
            log.info(LoggedKind.MARKET_AVAILABLE, market=self.market.name)
        self._is_down = False


def refusals(pollers: Iterable[Poller]) -> Mapping[str, Refusal]:
    """Return the markets that refuse our key, by name."""
    by_market = {poller.market.name: poller.refusal for poller in pollers}
    return {name: refusal for name, refusal in by_market.items() if refusal is not None}


def _of(kind: MarketEventKind, events: Iterable[MarketEvent]) -> tuple[MarketEvent, ...]:
    return tuple(event for event in events if event.kind is kind)


def _labels(rows: Iterable[Instance]) -> dict[str, Label]:
    parsed = ((row.instance_id, labels.parse(row.label)) for row in rows)
    return {instance_id: label for instance_id, label in parsed if label is not None}
