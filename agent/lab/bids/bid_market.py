"""The Market port over the simulated market's world, in memory: no HTTP, no faults of the network, no pace to keep.

Invariants:
1. Equal worlds and calls give equal answers.
2. A search reads only hosts that could ever fit. A host that nobody reads makes the same moves, but later.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice

from agent.domain import money
from agent.domain.market import gpu
from agent.domain.market.instance import Instance
from agent.domain.market.interruption import MarketEvent
from agent.domain.market.market_rules import ASSUMED, MarketRules
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.work.workload import Requirements
from agent.lab.bids import rows
from agent.markets import market_errors, port
from agent.simulator.market_model import Refusal
from agent.simulator.vast.model import Contract, RentTerms, Slice
from agent.simulator.vast.world import World

BID_PLACES = 4
HOURS_A_MONTH = 720.0
MOST_NOTICES = 50
CAPABILITIES = frozenset(
    {port.Capability.INTERRUPTIBLE, port.Capability.REBID, port.Capability.EVENTS, port.Capability.CREDIT}
)
_TAKEN = frozenset({Refusal.ASK_TAKEN, Refusal.NO_SUCH_ASK})
_REASONS = {Refusal.BAD_PRICE: "invalid_price", Refusal.BAD_DISK: "invalid_args"}


class WorldMarket:
    """One account on the simulated market. `requirements.query` and regions are ignored: the bench sets none."""

    def __init__(self, world: World) -> None:
        """Answer from `world`, which its owner steps."""
        self.name = "vast"
        self.world = world
        self._fitting: dict[tuple[Requirements, float], tuple[Slice, ...]] = {}
        self.searches = 0
        self.stops: set[tuple[int, float]] = set()
        """Contracts that we ourselves stopped or ended, and when."""

    # --- looking ------------------------------------------------------------------------------------------------------
    async def offers(self, query: port.OfferQuery) -> Sequence[Offer]:
        """Return offers with floor and ask. More than `max_rows` are sampled, as in the market's own answers."""
        self.searches += 1
        found = [(slice_, floor) for slice_, floor in self._quoted(query) if self._is_affordable(slice_, floor, query)]
        if len(found) > query.max_rows:
            dice = random.Random(f"{self.world.seed}/search/{self.searches}")
            found = [found[place] for place in sorted(dice.sample(range(len(found)), query.max_rows))]
        world = self.world
        return [rows.offer(world, self.name, slice_, floor, world.ask(slice_)) for slice_, floor in found]

    def _quoted(self, query: port.OfferQuery) -> Iterator[tuple[Slice, float]]:
        for slice_ in self._slices(query):
            is_asked = not query.host_ids or str(slice_.machine_id) in query.host_ids
            if not is_asked or (query.offer_ids and str(slice_.offer_id) not in query.offer_ids):
                continue
            if self.world.is_listed(slice_) and (floor := self.world.quoted_floor(slice_)) is not None:
                yield slice_, floor

    def _slices(self, query: port.OfferQuery) -> tuple[Slice, ...]:
        """Return every slice that could ever fit. Models, sizes and advertised figures never change."""
        key = (query.requirements, query.disk_gb)
        if key not in self._fitting:
            self._fitting[key] = tuple(slice_ for slice_ in self.world.slices.values() if fits(slice_, query))
        return self._fitting[key]

    def _is_affordable(self, slice_: Slice, floor: float, query: port.OfferQuery) -> bool:
        if query.max_price is None:
            return True
        disk = slice_.host.storage_price * query.disk_gb / HOURS_A_MONTH
        return floor + disk <= query.max_price.dollars

    async def instances(self) -> Sequence[Instance]:
        """Return every contract."""
        self.world.settle()
        return [rows.instance(self.world, self.name, contract) for contract in self.world.live_contracts()]

    async def instance(self, instance_id: str) -> Instance:
        """Return one contract."""
        self.world.settle()
        return rows.instance(self.world, self.name, self._contract(instance_id))

    async def account(self) -> port.Account:
        """Return the account of the contracts, and its credit."""
        at = datetime.fromtimestamp(self.world.now, UTC)
        return port.Account(str(self.world.account_id), money.usd(self.world.credit), at)

    async def charges(self, since: datetime, until: datetime) -> Sequence[port.Charge]:
        """Return nothing: the bench reads the simulator's billing itself."""
        del since, until
        return ()

    async def events(self, since: datetime) -> Sequence[MarketEvent]:
        """Return the last notices in the inbox, oldest first."""
        shown = (notice for notice in reversed(self.world.inbox) if notice.kind in rows.SHOWN)
        found = (rows.event(self.name, notice) for notice in islice(shown, MOST_NOTICES))
        return sorted((each for each in found if each.at > since), key=lambda each: (each.at, each.event_id))

    async def logs(self, instance_id: str, lines: int) -> Sequence[str]:
        """Return the last lines its container printed."""
        return self.world.log_lines(int(self._contract(instance_id).contract_id), lines)

    # --- writing ------------------------------------------------------------------------------------------------------
    async def rent(self, offer: Offer, terms: port.Terms, label: str) -> str:
        """Rent. A bid below the floor is refused and leaves a stopped contract."""
        try:
            contract = self.world.create(
                int(offer.offer_id),
                RentTerms(terms.disk_gb, terms.image, label),
                bid=None if terms.bid is None else _dollars(terms.bid),
                cancel_unavailable=terms.tenure is Tenure.ON_DEMAND,
            )
        except Refusal as refusal:
            raise _of_create(refusal) from None
        if contract.is_underbid:
            raise market_errors.Rejected("bid_too_low", "the bid is below the floor", str(contract.contract_id))
        return str(contract.contract_id)

    async def rebid(self, instance_id: str, bid: UsdPerHour) -> None:
        """Change the bid."""
        self._contract(instance_id)
        try:
            self.world.change_bid(int(instance_id), _dollars(bid))
        except Refusal as refusal:
            raise market_errors.Rejected("invalid_args", refusal.sentence) from None

    async def resume(self, instance_id: str) -> bool:
        """Start again, or queue the start."""
        self._contract(instance_id)
        try:
            return self.world.start(int(instance_id))
        except Refusal as refusal:
            code = "missing_billing" if refusal.code == Refusal.INSUFFICIENT_CREDIT else "invalid_args"
            raise market_errors.Rejected(code, refusal.sentence) from None

    async def pause(self, instance_id: str) -> None:
        """Stop, keep the disk, cancel a queued start."""
        self._note_stop(self._contract(instance_id))
        self.world.stop(int(instance_id))

    async def release(self, instance_id: str, *, is_gone: bool = False, is_gentle: bool = False) -> None:
        """End for good."""
        del is_gone, is_gentle
        try:
            self._note_stop(self.world.contract(int(instance_id)))
            self.world.destroy(int(instance_id))
        except Refusal:
            return

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
        """Return the rules of a market where each renter pays its bid."""
        return ASSUMED

    def not_sold(self) -> Mapping[Tenure, str]:
        """Return nothing: both tenures are sold."""
        return {}

    def server_time(self) -> datetime | None:
        """Return nothing: there is one clock."""

    async def close(self) -> None:
        """Close nothing."""

    def _note_stop(self, contract: Contract) -> None:
        # A contract that was lost at this same instant was not stopped by us.
        if contract.holds_gpu:
            self.stops.add((contract.contract_id, self.world.now))

    def _contract(self, instance_id: str) -> Contract:
        try:
            return self.world.contract(int(instance_id))
        except Refusal as refusal:
            raise market_errors.NotFound(refusal.sentence) from None


def fits(slice_: Slice, query: port.OfferQuery) -> bool:
    """Return whether a slice meets a query, apart from prices and its present availability."""
    host, wants = slice_.host, query.requirements
    models = query.gpu_models or wants.gpu_models
    return (
        slice_.num_gpus == wants.gpus
        and (not models or gpu.model(host.gpu.name) in models)
        and host.gpu.vram_mb >= (wants.min_vram_mb or 0)
        and host.reliability >= (wants.min_reliability or 0.0)
        and host.inet_down >= (wants.min_inet_down_mbps or 0.0)
        and host.disk_gb * slice_.share >= query.disk_gb
        and (host.verification == "verified" or not wants.verified_only)
        and (host.is_datacenter is True or not wants.datacenter_only)
    )


def _dollars(bid: UsdPerHour) -> float:
    return money.rounded_up(bid, BID_PLACES).dollars


def _of_create(refusal: Refusal) -> market_errors.MarketError:
    if refusal.code in _TAKEN:
        return market_errors.Rejected("no_such_ask", refusal.sentence)
    if refusal.code == Refusal.INSUFFICIENT_CREDIT:
        return market_errors.OutOfFunds("insufficient_credit", refusal.sentence)
    return market_errors.Rejected(_REASONS.get(refusal.code, "invalid_args"), refusal.sentence)
