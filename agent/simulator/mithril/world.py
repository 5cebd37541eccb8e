"""The market itself: pools, other renters, our bids, volumes and keys. Events move it, and only when time is moved.

1. The same climate, seed, start and calls give the same answers.
2. Time moves only in advance_to.
3. Nothing here knows the vendor's field names or HTTP; times are epoch seconds, prices cents per instance and hour.
4. It is paid in arrears: there is no credit that runs out, and nothing stops for the lack of it.
"""

import math
import random

from agent.simulator.climate import Climate
from agent.simulator.event_queue import Timeline
from agent.simulator.market_model import Refusal
from agent.simulator.mithril import assumed_figures, bid_fleet, places, prices
from agent.simulator.mithril.bid_fleet import Fleet
from agent.simulator.mithril.model import Bid, Happening, Machines, Refused, Status, Terms
from agent.simulator.mithril.other_renters import Crowd
from agent.simulator.mithril.pool_auction import Bidder, PoolAuction

FIRST_NUMBER = 90_000_001  # apart from the numbers of the other markets
FIRST_MACHINE = 19_000_001


class World:
    """The market, for one account with one project."""

    def __init__(self, climate: Climate, *, seed: int, start: float, ids: str = "") -> None:
        """Fill the pools and start at `start` (epoch seconds)."""
        self.climate = climate
        self.start_time = start
        self._timeline = Timeline(start)
        account = random.Random(f"{seed}/mithril/account")
        self.user_id = bid_fleet.fid(account, "user")
        self.organization = bid_fleet.fid(account, "org")
        self.project = bid_fleet.fid(account, "proj")
        # Other ids than those of an earlier world, of the same account.
        self.ids = random.Random(ids) if ids else account
        self.fleet = Fleet(self._timeline, climate, self.ids, str(seed))
        self.containers = self.fleet.containers
        self.bids: dict[str, Bid] = {}
        self.hosts: dict[int, Machines] = {}
        self.pools: dict[tuple[str, str], PoolAuction] = {}
        for pool in places.POOLS:
            auction = self.pools[pool.kind.fid, pool.region] = PoolAuction(self._timeline, pool)
            auction.on_start = lambda bid, auction=auction: self.fleet.start(bid, auction.spot_cents)  # type: ignore[misc]
            auction.on_notice, auction.on_end = self.fleet.warn, self.fleet.shut_down
            auction.on_price = self.fleet.reprice
        self.crowd = Crowd(self._timeline, climate, list(self.pools.values()), f"{seed}/mithril")

    # --- time and looking -------------------------------------------------------------------------------------------
    @property
    def now(self) -> float:
        """Return the market's time, epoch seconds."""
        return self._timeline.now

    def advance_to(self, now: float) -> None:
        """Let everything due until `now` happen, in order. Going back is ignored."""
        self._timeline.advance_to(now)

    def live_contracts(self) -> list[Bid]:
        """Return the bids that have not ended, in order of creation."""
        return [bid for bid in self.bids.values() if bid.ended is None]

    def bid(self, fid: str) -> Bid:
        """Return a bid, also one that has ended, or raise Refused."""
        if fid not in self.bids:
            raise Refused(404, "Bid not found")
        return self.bids[fid]

    def pool(self, kind: str, region: str) -> PoolAuction:
        """Return a pool by the id of its type and its region, or raise Refused."""
        if (kind, region) not in self.pools:
            raise Refused(404, "No current price for this instance type and region")
        return self.pools[kind, region]

    def told(self, pool: PoolAuction, quantity: int = 1) -> prices.Told:
        """Return what the market says of a pool."""
        is_telling = prices.tells(self.climate.mithril.tells_win_price, pool.pool.fid)
        return prices.now(pool, quantity, is_telling=is_telling)

    # --- money ------------------------------------------------------------------------------------------------------
    def price(self, bid: Bid) -> float | None:
        """Return $/h that one instance of a bid pays now; None while it pays nothing."""
        periods = [period for vm in bid.live_vms for period in vm.prices if period.end is None]
        return periods[0].cents / 100.0 if periods else None

    def is_billing(self, bid: Bid) -> bool:
        """Return whether a bid costs something this second."""
        return self.price(bid) is not None

    def charged_total(self) -> float:
        """Return every dollar charged so far."""
        return self.fleet.till.charged(self.now)

    # --- the renter's calls -----------------------------------------------------------------------------------------
    def place(self, terms: Terms) -> Bid:
        """Place a bid, which the next auction judges, or raise Refused."""
        if any(bid.terms.name == terms.name for bid in self.live_contracts()):
            raise Refused(400, "Name already used")
        self._check_limit(terms.pool, terms.limit_cents)
        self._check_quota(terms)
        number = FIRST_NUMBER + len(self.bids)
        host = self.hosts[FIRST_MACHINE + len(self.bids)] = Machines(
            FIRST_MACHINE + len(self.bids), assumed_figures.INET_DOWN
        )
        bid = Bid(
            number,
            bid_fleet.fid(self.ids, "bid"),
            terms,
            terms.name,
            terms.limit_cents,
            terms.volumes,
            self.now,
            host,
        )
        self.bids[bid.fid] = bid
        self.fleet.note(bid, Happening.PLACED)
        self._join(bid)
        return bid

    def reprice(self, bid: Bid, limit_cents: int) -> None:
        """Change the limit of a bid, or raise Refused."""
        self._check_live(bid)
        self._check_limit(bid.pool, limit_cents)
        if limit_cents == bid.limit_cents:
            return
        bid.limit_cents = limit_cents
        self.fleet.note(bid, Happening.LIMIT_CHANGED)
        if bid.status is not Status.PAUSED:
            self._auction(bid).reprice(bid.contract_id, limit_cents)

    def pause(self, bid: Bid) -> None:
        """Stop a bid's machines, or take it out of the auction."""
        self._check_live(bid)
        if bid.status is not Status.PAUSED:
            self._auction(bid).remove(bid.contract_id)
            self.fleet.pause(bid)

    def resume(self, bid: Bid) -> None:
        """Let a paused bid take part again; the next auction judges it."""
        self._check_live(bid)
        if bid.status is Status.PAUSED:
            self.fleet.resume(bid)
            self._join(bid)

    def terminate(self, bid: Bid) -> None:
        """End a bid with its machines and boot disks. One that has ended stays as it is."""
        if bid.ended is None:
            self._auction(bid).remove(bid.contract_id)
            self.fleet.end(bid)

    # --- forced events ------------------------------------------------------------------------------------------------
    @property
    def credit(self) -> float:
        """Return nothing to spend: it is paid in arrears."""
        return 0.0

    def set_credit(self, dollars: float) -> None:
        """Do nothing: it is paid in arrears."""

    def set_host_offline(self, machine_id: int, until: float | None) -> None:
        """Let the machines of a bid fall silent; the market goes on calling them running."""
        bid = self._on(machine_id)
        bid.host.offline_until = math.inf if until is None else until
        bid.is_offline = True
        self.containers.freeze(bid)

    def set_host_online(self, machine_id: int) -> None:
        """Let silent machines answer again."""
        bid = self._on(machine_id)
        bid.host.offline_until, bid.is_offline = None, False
        self.containers.thaw(bid)

    def set_host_gone(self, machine_id: int) -> None:
        """Let the machines of a bid fail for good. The bid is open again, and the next auction gives it others."""
        bid = self._on(machine_id)
        if bid.ended is not None or not bid.holds_gpu:
            return
        self._auction(bid).remove(bid.contract_id)
        self.fleet.fail(bid)
        self._join(bid)

    def fail_pull(self, contract_id: int | None = None, *, probability: float = 1.0) -> None:
        """Let image pulls fail, of one bid (by its number in the truth) or of all, until calm_pulls."""
        self.containers.fail(self._numbered(contract_id), probability)

    def stick_loading(self, contract_id: int | None = None, *, probability: float = 1.0) -> None:
        """Let image pulls hang, of one bid (by its number in the truth) or of all, until calm_pulls."""
        self.containers.stick(self._numbered(contract_id), probability)

    def calm_pulls(self) -> None:
        """End fail_pull and stick_loading; a pull that hangs goes on."""
        self.containers.calm(self.live_contracts())

    # --- inside -----------------------------------------------------------------------------------------------------
    def _auction(self, bid: Bid) -> PoolAuction:
        return self.pools[bid.pool.kind.fid, bid.pool.region]

    def _join(self, bid: Bid) -> None:
        bidder = Bidder(bid.contract_id, bid.limit_cents, bid.quantity, bid.created, owner=bid)
        self._auction(bid).add(bidder)

    def _check_live(self, bid: Bid) -> None:
        if bid.ended is not None:
            raise Refused(400, "Bid is terminated")

    def _check_limit(self, pool: places.Pool, limit_cents: int) -> None:
        if limit_cents < pool.minimum_cents:
            sentence = f"Limit price below minimum of ${pool.minimum_cents / 100:.2f}"
            raise Refused(422, sentence, ("body", "limit_price"))

    def _check_quota(self, terms: Terms) -> None:
        if self.used_quota(terms.pool.kind.fid) + terms.quantity > assumed_figures.QUOTA_INSTANCES:
            raise Refused(400, f"Spot quota exceeded for {terms.pool.kind.name}")

    def used_quota(self, kind: str) -> int:
        """Return for how many instances of a type live bids ask."""
        return sum(bid.quantity for bid in self.live_contracts() if bid.pool.kind.fid == kind)

    def _on(self, machine_id: int) -> Bid:
        for bid in self.bids.values():
            if bid.host.machine_id == machine_id:
                return bid
        raise Refusal(Refusal.NO_SUCH_HOST, f"There is no host {machine_id}.")

    def _numbered(self, contract_id: int | None) -> Bid | None:
        if contract_id is None:
            return None
        for bid in self.live_contracts():
            if bid.contract_id == contract_id:
                return bid
        raise Refusal(Refusal.NO_SUCH_CONTRACT, f"There is no bid of number {contract_id}.")
