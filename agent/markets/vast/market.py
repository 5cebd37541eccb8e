"""The port over Vast.ai: questions become searches and pages, orders become one request each.

Invariants: those of the port. Beyond them:
1. A listing is complete, counted against the market's own totals and free of duplicates, or it is no listing.
2. In a bid search the price shown is the floor, so a second search asks for the asks of interruptible offers.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import msgspec
import structlog

from agent import clock as clocks
from agent.domain.market.instance import Instance
from agent.domain.market.interruption import MarketEvent
from agent.domain.market.market_rules import MarketRules
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.markets import hints, http_exchange, market_errors, pace, text, transport
from agent.markets.port import Account, Capability, Charge, OfferQuery, Terms
from agent.markets.vast import (
    bill,
    client,
    events,
    instance_keys,
    names,
    optional_route,
    orders,
    parse,
    query,
    refusals,
    rises,
    rules,
    search,
    states,
)

MOST_PAGES = 400
"""Pages after which a listing or a bill counts as endless: 10,000 instances."""


LOG_LOOKS, LOG_LOOK_SECONDS = 10, 0.5
"""The market's own client asks 30 times, every 0.3 s."""
MOST_LOG_BYTES = 2**20
MOST_LINE = 2000


log = structlog.get_logger("gpubid.vast")


class _Where(msgspec.Struct):
    result_url: str


class _Names(msgspec.Struct):
    gpu_names: list[str]


class VastMarket:
    """One account at Vast.ai."""

    name = parse.MARKET

    def __init__(self, endpoints: client.VastClient, rows: pace.RowBudget, clock: clocks.Clock) -> None:
        self._client = endpoints
        self._rows = rows
        self._clock = clock
        self._names = names.GpuNames()
        self._has_asked_names = False
        self._looks = states.Looks()
        self._inbox_route = optional_route.OptionalRoute(clock)
        self._rises_route = optional_route.OptionalRoute(clock)
        self._pending_rises: Sequence[MarketEvent] = ()

    @property
    def rows_today(self) -> int:
        """Search rows returned since 00:00 UTC; the market rations them by the day."""
        return self._rows.rows_today

    async def offers(self, query: OfferQuery) -> Sequence[Offer]:
        """Return offers that may fit; a sample, so absence proves nothing."""
        await self._learn_names(query)
        if query.is_sample or Tenure.INTERRUPTIBLE not in query.tenures:
            rows = self._rows.grant(query.max_rows, least=1 + query.spared_rows)
            return await self._search(query, Tenure.ON_DEMAND, rows)
        # Both searches together stay within today's remaining rows.
        rows = self._rows.grant(2 * query.max_rows, least=2) // 2
        offers = await self._search(query, Tenure.INTERRUPTIBLE, rows)
        return await self._with_asks(offers, query.disk_gb)

    def search_delay(self, questions: int) -> float:
        """Return the seconds until so many questions are asked without a wait: each needs two searches."""
        return self._client.search_delay(2 * questions)

    async def instances(self) -> Sequence[Instance]:
        """Return every instance of the account, or raise."""
        found: dict[int, parse.InstanceRow] = {}
        token, total = "", None
        for _ in range(MOST_PAGES):
            page = parse.page(await self._client.page(token))
            fresh = {row.id: row for row in page.instances}
            if len(fresh) != len(page.instances) or fresh.keys() & found.keys():
                raise market_errors.Malformed("vast listed an instance twice; the listing moved while it was read.")
            if page.instances_found is not None and page.instances_found < len(fresh):
                raise market_errors.Malformed("vast listed more instances than it says it found.")
            found |= fresh
            total = page.total_instances if page.total_instances is not None else total
            if not page.next_token:
                return self._seen(_complete(found, total))
            if page.next_token == token or not page.instances:
                raise market_errors.Malformed("vast's listing repeats a page mark; it is refused.")
            token = page.next_token
        raise market_errors.Malformed(f"vast's listing has more than {MOST_PAGES} pages; it is refused.")

    async def instance(self, instance_id: str) -> Instance:
        """Return one instance."""
        row = parse.one(await self._client.one(instance_id), instance_id)
        return self._look(row)

    async def rent(self, offer: Offer, terms: Terms, label: str) -> str:
        """Rent and return the instance id."""
        body = orders.create(terms, label)
        said = await self._client.create(offer.offer_id, body)
        instance_id = refusals.instance_id(said)
        if not instance_id:
            raise market_errors.Ambiguous(
                f"vast accepted the order and named no instance ({said}); its listing shows what was done."
            )
        return instance_id

    async def rebid(self, instance_id: str, bid: UsdPerHour) -> None:
        """Change the bid."""
        await self._client.change_bid(instance_id, orders.bid_dollars(bid))

    async def resume(self, instance_id: str) -> bool:
        """Start again; False if the market queued the start, which may then happen, and bill, hours later."""
        said = await self._client.set_state(instance_id, "running")
        return said.success is True

    async def pause(self, instance_id: str) -> None:
        """Stop, keep the disk, cancel a queued start."""
        said = await self._client.set_state(instance_id, "stopped", is_urgent=True)
        if said.success is not True:
            raise market_errors.Ambiguous(f"vast answered a stop with {said}; its listing shows what was done.")

    async def release(self, instance_id: str, *, is_gone: bool = False, is_gentle: bool = False) -> None:
        """End for good; also returns if the market's code says that the instance is already gone."""
        del is_gone, is_gentle
        try:
            await self._client.destroy(instance_id)
        except market_errors.NotFound:
            return
        except market_errors.Unreachable as error:
            raise market_errors.Ambiguous(str(error)) from None

    async def account(self) -> Account:
        """Return the account."""
        reply = await self._client.account()
        account_id, credit = bill.holder(reply.body)
        return Account(account_id, credit, hints.market_time(reply))

    async def charges(self, since: datetime, until: datetime) -> Sequence[Charge]:
        """Return the market's bill by instance and UTC day."""
        found: list[Charge] = []
        token = ""
        for _ in range(MOST_PAGES):
            raw = await self._client.charges(int(since.timestamp()), int(until.timestamp()), token)
            page = bill.page(raw)
            found += [charge for line in page.results if (charge := bill.charge(line, since)) is not None]
            if not page.next_token:
                return found
            if page.next_token == token or not page.results:
                break
            token = page.next_token
        raise market_errors.Malformed("vast's bill does not end; it is refused.")

    async def events(self, since: datetime) -> Sequence[MarketEvent]:
        """Return the inbox about our instances and all pending price rises, however old they are.

        The inbox is undocumented and may be gone; so may the list of rises. While the list cannot be read, the rises of
        its last answer are still pending.

        Raises:
            Unreachable: the inbox was not found, and it is too early to believe that the market has none.
        """
        return (*await self._inbox(since), *await self._rises())

    async def _inbox(self, since: datetime) -> Sequence[MarketEvent]:
        if self._inbox_route.is_gone:
            return ()
        raw = await self._client.inbox()
        if raw is not None:
            self._inbox_route.answered()
            return events.inbox(raw, since)
        self._inbox_route.missed()
        if not self._inbox_route.is_gone:
            raise market_errors.Unreachable("vast found no inbox this time; it is asked for again.")
        return ()

    async def _rises(self) -> Sequence[MarketEvent]:
        if self._rises_route.is_gone:
            return ()
        raw = await self._client.pending_rises()
        if raw is None:
            self._rises_route.missed()
            return self._pending_rises
        self._rises_route.answered()
        try:
            self._pending_rises = rises.rises(raw, self._clock.now())
        except market_errors.Malformed as error:
            log.warning("rises.unread", market=self.name, code=error.code, reason=str(error)[:200])
        return self._pending_rises

    async def logs(self, instance_id: str, lines: int) -> Sequence[str]:
        """Return the last lines that the container printed; the market first writes them to a file."""
        try:
            where = msgspec.json.decode(await self._client.request_logs(instance_id, lines), type=_Where).result_url
        except msgspec.DecodeError:
            raise market_errors.Malformed("vast answered a request for logs with no address.") from None
        for attempt in range(LOG_LOOKS):
            if attempt:
                await self._clock.sleep(LOG_LOOK_SECONDS)
            body = await self._client.file(where, MOST_LOG_BYTES)
            if body is not None:
                return tuple(
                    text.clean(line, MOST_LINE) for line in body.decode("utf-8", "replace").splitlines()[-lines:]
                )
        return ()

    def instance_keys(self) -> instance_keys.InstanceKeys:
        """Return the registration of ssh keys with instances."""
        return instance_keys.InstanceKeys(self._client)

    def capabilities(self) -> frozenset[Capability]:
        """Return the present abilities; without the inbox, causes are inferred."""
        common = {Capability.INTERRUPTIBLE, Capability.REBID, Capability.CREDIT}
        return frozenset(common | {Capability.EVENTS} if not self._inbox_route.is_gone else common)

    def rules(self) -> MarketRules:
        """Return what is different here from other markets."""
        return rules.RULES

    def not_sold(self) -> Mapping[Tenure, str]:
        """Return nothing: the market sells both tenures to every account."""
        return {}

    def server_time(self) -> datetime | None:
        """Return the time of the market's clock in its last answer."""
        return hints.server_time(self._client.last_date())

    async def close(self) -> None:
        """Close connections."""
        await self._client.close()

    async def _search(self, asked: OfferQuery, tenure: Tenure, rows: int) -> list[Offer]:
        try:
            filters = search.operators(asked, self._names)
            body = search.body(asked, tenure, self._names, rows)
        except query.BadQuery as error:
            raise market_errors.Malformed(f"The workload's query cannot be asked: {error}") from None
        raw = await self._client.search(body)
        loose = parse.loose_rows(raw) if filters else {}
        harvest = self._harvest(
            raw,
            is_bid_search=tenure is Tenure.INTERRUPTIBLE,
            keep=(lambda row_id: query.matches(filters, loose.get(row_id, {}))) if filters else None,
        )
        return [offer for offer in harvest.offers if search.fits(offer, asked, tenure)]

    async def _with_asks(self, offers: list[Offer], disk_gb: float) -> list[Offer]:
        if not offers:
            return offers
        raw = await self._client.search(search.body_for_asks((offer.offer_id for offer in offers), disk_gb))
        asks = {offer.offer_id: offer.ask for offer in self._harvest(raw).offers}
        return [msgspec.structs.replace(offer, ask=asks.get(offer.offer_id)) for offer in offers]

    def _harvest(
        self, raw: bytes, *, is_bid_search: bool = False, keep: Callable[[int], bool] | None = None
    ) -> parse.Harvest:
        harvest = parse.harvest(raw, self._clock.now(), is_bid_search=is_bid_search, keep=keep)
        self._rows.count(harvest.rows)
        return harvest

    def _seen(self, rows: Sequence[parse.InstanceRow]) -> Sequence[Instance]:
        self._looks.keep({str(row.id) for row in rows})
        return [self._look(row) for row in rows]

    def _look(self, row: parse.InstanceRow) -> Instance:
        return self._looks.settled(parse.instance(row), parse.words(row), self._clock.monotonic())

    async def _learn_names(self, asked: OfferQuery) -> None:
        """Learn how the market spells its models, once, if a question names a model that no table has."""
        models = asked.gpu_models or asked.requirements.gpu_models
        if self._has_asked_names or all(self._names.is_known(model) for model in models):
            return
        self._has_asked_names = True
        try:
            self._names.learn(msgspec.json.decode(await self._client.gpu_names(), type=_Names).gpu_names)
        except (market_errors.MarketError, msgspec.DecodeError):
            # Most models are spelled as we spell them, so the search also uses our spelling.
            return


def connect(
    url: str,
    key: transport.Key,
    clock: clocks.Clock,
    jitter: Callable[[], float],
    *,
    daily_rows: int = pace.DAILY_ROWS,
    deadline: float = transport.DEADLINE_SECONDS,
    through: http_exchange.Exchange | None = None,
) -> VastMarket:
    """Return the market at `url`; `key` returns the credential for each request."""
    lanes = pace.Pace(clock, client.LANES)
    rows = pace.RowBudget(clock, daily_rows)
    link = transport.Transport(url, key, clock, lanes, jitter, bounds=transport.Bounds(deadline), through=through)
    return VastMarket(client.VastClient(link, lanes, rows, clock), rows, clock)


def _complete(rows: dict[int, parse.InstanceRow], total: int | None) -> Sequence[parse.InstanceRow]:
    if total is not None and total != len(rows):
        raise market_errors.Malformed(f"vast listed {len(rows)} of {total} instances; the listing is refused.")
    return tuple(rows.values())
