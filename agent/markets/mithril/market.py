"""The port over Mithril: a bid is the instance, a pool is the offer, and a machine is what an auction gives to a bid.

Invariants: those of the port. Beyond them:
1. A listing has every bid of every page, or it is refused. Histories add prices and instants; they make and remove no
   bid.
2. The price paid is never the bid: it is the price in the machine's bill, else the present price of its pool.
3. A bid whose order got no usable answer is also requested by its name, until the listing shows it.
4. A bid whose end two listings showed is not listed again for one wrong word (`listing.EndedBids`).
5. Nothing is placed before the operator has set the price of a kept disk.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent import clock as clocks
from agent.domain import money
from agent.domain.market.instance import Instance
from agent.domain.market.interruption import MarketEvent
from agent.domain.market.market_rules import MarketRules
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.markets import hints, http_exchange, market_errors, pace, text, tolerant_rows, transport
from agent.markets.mithril import (
    bill,
    catalogue,
    client,
    histories,
    listing,
    orders,
    parse,
    prices,
    rows,
    rules,
    search,
    states,
)
from agent.markets.port import Account, Capability, Charge, OfferQuery, Terms

DOUBT_SECONDS = 1800.0
"""How long a bid is requested by its name after an order without a usable answer: longer than any doubt lasts."""
_BILLING = frozenset({states.ALLOCATED, states.PREEMPTING})


@dataclass(frozen=True, slots=True)
class Terrain:
    """The operator's facts about the account: the project, and the price of a gigabyte of kept disk per month.

    An empty project means the only project of the key.
    """

    project: str = ""
    disk_micros_per_gb_month: int | None = None


class MithrilMarket:
    """One project at Mithril."""

    name = parse.MARKET

    def __init__(self, endpoints: client.MithrilClient, clock: clocks.Clock, terrain: Terrain) -> None:
        self._client = endpoints
        self._clock = clock
        self._terrain = terrain
        self._catalogue = catalogue.Catalogue(endpoints, clock)
        self._histories = histories.Histories(endpoints, clock)
        self._in_doubt: dict[str, float] = {}
        self._had_machine: set[str] = set()
        self._ended = listing.EndedBids()
        self._paused = states.PausedBids()
        self._kinds: Mapping[str, parse.InstanceType] = {}

    async def offers(self, query: OfferQuery) -> Sequence[Offer]:
        """Return the pools that may fit, the cheapest first and those of unknown price last."""
        if Tenure.INTERRUPTIBLE not in query.tenures:
            return ()
        kinds, now, disk = await self._catalogue.types(), self._clock.now(), self._terrain.disk_micros_per_gb_month
        pairs = [
            (pool, kinds[pool.instance_type]) for pool in await self._catalogue.pools() if pool.instance_type in kinds
        ]
        bare = [(pool, search.offer(pool, kind, disk, now)) for pool, kind in pairs]
        fitting = [(pool, offer) for pool, offer in bare if search.fits(offer, query)]
        # Each price is a request of its own, so only prices of offers that are returned are requested.
        # A pool above the question's price is an offer too: a bid may wait there until the price falls.
        found = [
            search.priced(offer, await self._catalogue.prices(pool), self._catalogue.own_limits(pool))
            for pool, offer in fitting[: query.max_rows]
        ]
        found.sort(key=lambda offer: (offer.floor is None, offer.floor or money.FREE, offer.offer_id))
        return found

    def search_delay(self, questions: int) -> float:  # noqa: ARG002 - as in the port
        """Return 0: questions share the prices of a minute, fewer than its lane takes."""
        return 0.0

    async def instances(self) -> Sequence[Instance]:
        """Return every bid of the project that has not ended, or raise."""
        listed = await listing.everything(self._client)
        self._ended.look(listed.bids)
        bids = {bid.fid: bid for bid in listed.bids}
        bids |= {bid.fid: bid for bid in await self._doubted(bids.values()) if bid.fid not in bids}
        standing = self._standing(bids.values(), listed.machines)
        self._histories.look({fid: f"{bids[fid].status} {standing[fid].state.value}" for fid in standing})
        await self._learn([bids[fid] for fid in standing])
        self._had_machine &= standing.keys()
        self._paused.keep(standing.keys())
        return [await self._instance(bids[fid], listed.machines.get(fid, []), standing[fid]) for fid in standing]

    async def instance(self, instance_id: str) -> Instance:
        """Return one bid."""
        bid = parse.bid(await self._client.bid(instance_id))
        if bid.fid != instance_id:
            raise market_errors.Malformed(f"mithril answered another bid than {text.clean(instance_id, 64)}.")
        machines = await listing.machines_of(self._client, bid)
        standing = self._standing([bid], {instance_id: machines})
        if instance_id not in standing:
            raise market_errors.NotFound(f"mithril says that bid {instance_id} was ended.")
        await self._learn([bid])
        return await self._instance(bid, machines, standing[instance_id])

    async def rent(self, offer: Offer, terms: Terms, label: str) -> str:
        """Place a bid for one machine and return its id; the next auction judges it."""
        if self._terrain.disk_micros_per_gb_month is None:
            raise market_errors.Rejected("no_disk_price", orders.NO_DISK_PRICE)
        body = orders.create(await self._project(), offer, terms, label)
        # The name is in doubt until the bid is confirmed or refused, also if the call is cancelled.
        self._in_doubt[body["name"]] = self._clock.monotonic()
        try:
            bid_fid = _placed(await self._client.place(body), body["name"])
        except market_errors.Ambiguous:
            raise
        except market_errors.MarketError:
            del self._in_doubt[body["name"]]
            raise
        del self._in_doubt[body["name"]]
        return bid_fid

    async def rebid(self, instance_id: str, bid: UsdPerHour) -> None:
        """Change the limit price; the next auction judges it."""
        limit = orders.limit(bid)
        changed = await self._change(instance_id, {"limit_price": limit})
        if changed is not None and prices.of_text(changed.limit_price) != prices.of_text(limit):
            sentence = f"mithril answered {text.clean(changed.limit_price or 'no price', 40)} instead of {limit}"
            raise market_errors.Ambiguous(f"{sentence}; its listing shows the price.")

    async def resume(self, instance_id: str) -> bool:
        """Let the bid take part in auctions again; one of them starts it, never this call."""
        self._paused.forget(instance_id)
        await self._change(instance_id, {"paused": False})
        return False

    async def pause(self, instance_id: str) -> None:
        """Stop the machine, keep its boot disk, take part in no auction; also returns if the bid is paused already."""
        await self._change(instance_id, {"paused": True}, meant=states.PAUSED)

    async def release(self, instance_id: str, *, is_gone: bool = False, is_gentle: bool = False) -> None:
        """End for good; also returns if the market says that the bid has ended."""
        del is_gone, is_gentle
        try:
            await self._client.cancel(instance_id)
            self._ended.cancelled(instance_id)
        except market_errors.NotFound:
            return
        except market_errors.Unreachable as error:
            raise market_errors.Ambiguous(str(error)) from None
        except market_errors.Rejected as refusal:
            await self._refused(instance_id, refusal, states.TERMINATED)

    async def account(self) -> Account:
        """Return the organisation that pays and its project. It pays in arrears, so there is no credit."""
        reply = await self._client.me()
        owner = bill.owner(reply.body)
        # A listing is of one project: with another one, every lease would look lost.
        account_id = text.clean(f"{owner.organization_id}/{await self._client.project()}", 160)
        return Account(account_id, None, hints.market_time(reply))

    async def charges(self, since: datetime, until: datetime) -> Sequence[Charge]:
        """Return what the machines of each bid paid, by UTC day. The market has no bill of kept disks."""
        found: list[Charge] = []
        for bid in (await listing.everything(self._client)).bids:
            ended_at = tolerant_rows.moment(bid.deactivated_at)
            if bid.instances == [] or (ended_at is not None and ended_at < since):
                continue
            found += bill.charges(bid.fid, await self._histories.periods(bid.fid, since), since, until)
        return found

    async def events(self, since: datetime) -> Sequence[MarketEvent]:
        """Return the market's history of our bids; a few bids' histories are read at a time."""
        now, changes = self._clock.now(), await self._histories.changes()
        return sorted((one for one in changes if since <= one.at <= now), key=lambda one: one.at)

    async def logs(self, instance_id: str, lines: int) -> Sequence[str]:
        """Return nothing: the market keeps no log of a machine; a guard keeps the workload's."""
        del instance_id, lines
        return ()

    def instance_keys(self) -> None:
        """Return nothing: the market's keys are those of the project; the start script lets a workload's keys in."""

    def capabilities(self) -> frozenset[Capability]:
        """Return the abilities. The market shows no credit, since the account pays in arrears."""
        return frozenset({Capability.INTERRUPTIBLE, Capability.REBID, Capability.EVENTS})

    def rules(self) -> MarketRules:
        """Return what is different here from other markets."""
        return rules.RULES

    async def spot_quotas(self) -> Sequence[parse.Quota]:
        """Return how many machines of each kind may be bid for. Raises: as `account`."""
        return parse.spot_quotas(await self._client.quotas())

    def not_sold(self) -> Mapping[Tenure, str]:
        """Return interruptible while the price of a kept disk is not set.

        On demand is not reported: the market never sells it.
        """
        is_priced = self._terrain.disk_micros_per_gb_month is not None
        return {} if is_priced else {Tenure.INTERRUPTIBLE: orders.NO_DISK_PRICE}

    def server_time(self) -> datetime | None:
        """Return the time of the market's clock in its last answer."""
        return hints.server_time(self._client.last_date())

    async def close(self) -> None:
        """Close connections."""
        await self._client.close()

    def _standing(
        self, bids: Iterable[parse.Bid], machines: Mapping[str, Sequence[parse.Machine]]
    ) -> dict[str, states.Standing]:
        """Return the state of each bid that has not ended, by its id."""
        found = {}
        for bid in bids:
            was_allocated = bid.fid in self._had_machine or self._histories.was_allocated(bid.fid)
            machine = rows.newest(machines.get(bid.fid, ()))
            if self._ended.has(bid, machine):
                continue
            if machine is not None or bid.instances or bid.status in _BILLING:
                self._had_machine.add(bid.fid)
            standing = rows.standing(bid, machine, self._paused, was_allocated=was_allocated)
            if standing is not None:
                found[bid.fid] = standing
        return found

    async def _instance(self, bid: parse.Bid, machines: Sequence[parse.Machine], standing: states.Standing) -> Instance:
        machine = rows.newest(machines)
        notice = await self._histories.notice_at(
            bid.fid,
            is_preempting=bid.status == states.PREEMPTING,
            has_two_words=machine is not None and not states.goes_on(machine.status or ""),
        )
        known = rows.Known(
            kind=self._kinds.get(bid.instance_type or ""),
            paid=self._paid(bid),
            paid_since=period.start if (period := self._histories.period(bid.fid)) is not None else None,
            bill=self._histories.paid_bill(bid.fid, is_allocated=bid.status == states.ALLOCATED),
            notice_at=notice,
            was_allocated=bid.fid in self._had_machine,
            disk_micros=self._terrain.disk_micros_per_gb_month,
        )
        return rows.instance(bid, machine, standing, known)

    def _paid(self, bid: parse.Bid) -> UsdPerHour | None:
        """Return the price that a bid pays: the bill's, else the present price of its pool, at most its limit price.

        Under a notice the present price is paid by the new winners, so only the bill shows what this bid pays.
        """
        known = self._histories.paid(bid.fid)
        if bid.status not in _BILLING:
            known = self._histories.last_paid(bid.fid)
        if known is None and bid.status == states.PREEMPTING:
            return money.FREE if self._histories.is_bill_over(bid.fid) else None
        of_pool, limit = self._catalogue.paid(bid.pool), prices.of_text(bid.limit_price)
        return known or (of_pool if of_pool is None or limit is None else min(of_pool, limit))

    async def _learn(self, bids: Sequence[parse.Bid]) -> None:
        """Read the kinds of machines and the prices paid that the bids need; unknown prices stay unread."""
        self._kinds = await self._catalogue.learn_types(
            frozenset(bid.instance_type for bid in bids if bid.instance_type)
        )
        billing = [bid for bid in bids if bid.status in _BILLING]
        for bid in billing:
            limit = prices.of_text(bid.limit_price)
            if bid.pool is not None and limit is not None:
                self._catalogue.see_own(bid.pool, limit)
        stopped = (bid.fid for bid in bids if bid.fid in self._had_machine or self._histories.has_bill(bid.fid))
        # For a bid in a state that we do not know, only the bill shows whether it is charged.
        charged = (bid.fid for bid in bids if bid.status in _BILLING or bid.status not in states.KNOWN)
        await self._histories.learn_prices(charged, stopped, (bid.fid for bid in bids))
        for pool in dict.fromkeys(bid.pool for bid in billing if self._histories.paid(bid.fid) is None):
            if pool is not None:
                await self._catalogue.learn_price(pool)

    async def _doubted(self, listed: Iterable[parse.Bid]) -> list[parse.Bid]:
        """Return the bids of names in doubt that the listing does not show."""
        shown, now = {bid.name for bid in listed}, self._clock.monotonic()
        self._in_doubt = {
            name: at for name, at in self._in_doubt.items() if name not in shown and now - at < DOUBT_SECONDS
        }
        found = [await listing.named(self._client, name) for name in self._in_doubt]
        return [bid for bids in found for bid in bids]

    async def _change(self, instance_id: str, body: Mapping[str, Any], meant: str = "") -> parse.Bid | None:
        """Change a bid, and return the changed bid; None if the bid already had the status `meant`.

        Raises: as the port's `rebid`.
        """
        try:
            return _changed(await self._client.change(instance_id, body, is_urgent=bool(meant)), instance_id)
        except (market_errors.OutOfFunds, market_errors.Unreachable):
            raise
        except market_errors.Rejected as refusal:
            await self._refused(instance_id, refusal, meant)
            return None

    async def _project(self) -> str:
        """Return the project for an order. Raises: Throttled, Unauthorized, Unreachable (nothing was sent)."""
        try:
            return await self._client.project()
        except (market_errors.Unavailable, market_errors.Malformed) as error:
            raise market_errors.Unreachable(f"nothing was sent to mithril: {error}") from None

    async def _refused(self, instance_id: str, refusal: market_errors.Rejected, meant: str) -> None:
        """Return if a bid has the status that an order meant, although the market refused the order.

        Raises:
            NotFound: the bid has ended.
            Rejected: the bid has another status.
        """
        try:
            bid = parse.bid(await self._client.bid(instance_id))
        except market_errors.MarketError:
            raise refusal from None
        if bid.fid != instance_id or bid.status not in {meant, states.TERMINATED}:
            raise refusal
        if bid.status != meant:
            raise market_errors.NotFound(f"mithril says that bid {instance_id} was ended.")


def connect(
    url: str,
    key: transport.Key,
    clock: clocks.Clock,
    jitter: Callable[[], float],
    *,
    terrain: Terrain,
    deadline: float = transport.DEADLINE_SECONDS,
    through: http_exchange.Exchange | None = None,
) -> MithrilMarket:
    """Return the market at `url` for one project; `key` returns the credential for each request."""
    lanes = pace.Pace(clock, client.LANES)
    link = transport.Transport(url, key, clock, lanes, jitter, bounds=transport.Bounds(deadline), through=through)
    return MithrilMarket(client.MithrilClient(link, lanes, clock, terrain.project), clock, terrain)


def _placed(raw: bytes, name: str) -> str:
    """Return the id of a bid that was just placed.

    Raises:
        Ambiguous: the answer does not show a bid of that name.
    """
    try:
        bid = parse.bid(raw)
    except market_errors.Malformed as error:
        raise market_errors.Ambiguous(f"mithril accepted the bid and named none ({error})") from None
    if bid.name != name:
        raise market_errors.Ambiguous("mithril answered an order with a bid of another name; its listing shows ours.")
    return bid.fid


def _changed(raw: bytes, bid_fid: str) -> parse.Bid:
    """Return a bid as it is after a change.

    Raises:
        Ambiguous: the answer does not show that bid.
    """
    try:
        bid = parse.bid(raw)
    except market_errors.Malformed as error:
        raise market_errors.Ambiguous(f"mithril answered a change with no bid ({error})") from None
    if bid.fid != bid_fid:
        raise market_errors.Ambiguous("mithril answered a change with another bid; its listing shows what was done.")
    return bid
