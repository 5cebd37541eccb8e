"""The Market port over the simulated auctions' world, in memory: no HTTP, no faults of the network, no pace to keep."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from agent.domain.market.instance import Instance
from agent.domain.market.interruption import MarketEvent
from agent.domain.market.market_rules import MarketRules
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import MICROS, UsdPerHour
from agent.lab.bids.auctions import auction_rows
from agent.markets import market_errors, port
from agent.simulator.mithril.model import Bid, Refused, Terms
from agent.simulator.mithril.pool_auction import PoolAuction
from agent.simulator.mithril.world import World

CAPABILITIES = frozenset({port.Capability.INTERRUPTIBLE, port.Capability.REBID, port.Capability.EVENTS})
_MICROS_A_CENT = MICROS // 100
_PRICE_REFUSED = 422


class AuctionMarket:
    """One project on the simulated market. `requirements.query` and regions are ignored: the bench sets none."""

    name = auction_rows.MARKET

    def __init__(self, world: World) -> None:
        """Answer from `world`, which its owner steps."""
        self.world = world
        self.stops: set[tuple[int, float]] = set()
        """Bids that we ourselves stopped or ended while they held a machine, and when."""
        self._disks: dict[str, float] = {}

    # --- looking ------------------------------------------------------------------------------------------------------
    async def offers(self, query: port.OfferQuery) -> Sequence[Offer]:
        """Return the pools that may fit, the cheapest first and those of unknown price last."""
        if Tenure.INTERRUPTIBLE not in query.tenures:
            return ()
        found = [
            auction_rows.offer(auction.pool, self.world.told(auction), self.world.now)
            for auction in fitting(self.world, query)
        ]
        found = [each for each in found if _is_asked(each, query)]
        found.sort(key=lambda each: (each.floor is None, each.floor or UsdPerHour(0), each.offer_id))
        return found[: query.max_rows]

    async def instances(self) -> Sequence[Instance]:
        """Return every bid that has not ended."""
        return [self._row(bid) for bid in self.world.live_contracts()]

    async def instance(self, instance_id: str) -> Instance:
        """Return one bid."""
        return self._row(self._bid(instance_id))

    def _row(self, bid: Bid) -> Instance:
        auction = self.world.pools[bid.pool.kind.fid, bid.pool.region]
        return auction_rows.instance(bid, auction.spot_cents, self._disks[bid.fid])

    async def account(self) -> port.Account:
        """Return the organisation and its project. It pays in arrears, so there is no credit."""
        at = datetime.fromtimestamp(self.world.now, UTC)
        return port.Account(f"{self.world.organization}/{self.world.project}", None, at)

    async def charges(self, since: datetime, until: datetime) -> Sequence[port.Charge]:
        """Return nothing: the bench reads the simulator's billing itself."""
        del since, until
        return ()

    async def events(self, since: datetime) -> Sequence[MarketEvent]:
        """Return what happened to our live bids, oldest first."""
        found = (auction_rows.event(bid, each) for bid in self.world.live_contracts() for each in bid.history)
        return sorted((each for each in found if each is not None and each.at >= since), key=lambda each: each.at)

    async def logs(self, instance_id: str, lines: int) -> Sequence[str]:
        """Return nothing: the market keeps no log of a machine."""
        del instance_id, lines
        return ()

    # --- writing ------------------------------------------------------------------------------------------------------
    async def rent(self, offer: Offer, terms: port.Terms, label: str) -> str:
        """Place a bid, which the next auction judges."""
        if terms.bid is None:
            raise market_errors.Rejected("invalid_args", "nothing is sold on demand")
        pool = next(
            each.pool for each in self.world.pools.values() if auction_rows.offer_id(each.pool) == offer.offer_id
        )
        script = f"docker run {terms.image}"
        order = Terms(label, self.world.project, pool, _cents(terms.bid), 1, script=script)
        try:
            bid = self.world.desk.place(order)
        except Refused as refused:
            raise _rejected(refused) from None
        self._disks[bid.fid] = terms.disk_gb
        return bid.fid

    async def rebid(self, instance_id: str, bid: UsdPerHour) -> None:
        """Change the limit; the next auction judges it."""
        try:
            self.world.desk.reprice(self._bid(instance_id), _cents(bid))
        except Refused as refused:
            raise _rejected(refused) from None

    async def resume(self, instance_id: str) -> bool:
        """Let a paused bid take part again; an auction starts it, never this call."""
        self.world.desk.resume(self._bid(instance_id))
        return False

    async def pause(self, instance_id: str) -> None:
        """Stop the machine, or take the bid out of the auction."""
        bid = self._bid(instance_id)
        self._note_stop(bid)
        self.world.desk.pause(bid)

    async def release(self, instance_id: str, *, is_gone: bool = False, is_gentle: bool = False) -> None:
        """End for good."""
        del is_gone, is_gentle
        bid = self.world.bids.get(instance_id)
        if bid is not None:
            self._note_stop(bid)
            self.world.desk.terminate(bid)

    # --- the rest -----------------------------------------------------------------------------------------------------
    def search_delay(self, questions: int) -> float:  # noqa: ARG002 - as in the port
        """Return 0: it takes any number of questions."""
        return 0.0

    def instance_keys(self) -> None:
        """Return nothing: nobody logs in."""

    def capabilities(self) -> frozenset[port.Capability]:
        """Return the market's capabilities."""
        return CAPABILITIES

    def rules(self) -> MarketRules:
        """Return the rules of a uniform second-price auction over pools."""
        return auction_rows.RULES

    def not_sold(self) -> Mapping[Tenure, str]:
        """Return nothing: that on demand is not sold is no news."""
        return {}

    def server_time(self) -> datetime | None:
        """Return nothing: its clock is ours."""

    async def close(self) -> None:
        """Close nothing."""

    def _note_stop(self, bid: Bid) -> None:
        if bid.holds_gpu:
            self.stops.add((bid.contract_id, self.world.now))

    def _bid(self, instance_id: str) -> Bid:
        bid = self.world.bids.get(instance_id)
        if bid is None or bid.ended is not None:
            raise market_errors.NotFound(f"bid {instance_id} has ended")
        return bid


def fitting(world: World, query: port.OfferQuery) -> list[PoolAuction]:
    """Return the pools whose machines meet a query, apart from prices."""
    wants = query.requirements
    models = query.gpu_models or wants.gpu_models
    return [
        auction
        for auction in world.pools.values()
        if auction.pool.kind.gpu_count == wants.gpus
        and (not models or auction_rows.model(auction.pool) in models)
        and auction.pool.kind.gpu_memory_gb * 1024 >= (wants.min_vram_mb or 0)
        and (wants.min_reliability or 0.0) <= auction_rows.RELIABILITY
        and (wants.min_inet_down_mbps or 0.0) <= auction_rows.INET_MBPS
    ]


def _is_asked(offer: Offer, query: port.OfferQuery) -> bool:
    is_named = not query.host_ids or offer.host_id in query.host_ids
    is_named = is_named and (not query.offer_ids or offer.offer_id in query.offer_ids)
    return is_named and (query.max_price is None or offer.floor is None or offer.floor <= query.max_price)


def _cents(rate: UsdPerHour) -> int:
    return rate.micros // _MICROS_A_CENT


def _rejected(refused: Refused) -> market_errors.Rejected:
    code = "invalid_price" if refused.status == _PRICE_REFUSED else "invalid_args"
    return market_errors.Rejected(code, refused.sentence)
