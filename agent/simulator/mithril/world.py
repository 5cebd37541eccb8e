"""The market itself: pools, other renters, our bids, volumes and keys. Events move it, and only when time is moved.

1. The same climate, seed, start and calls give the same answers.
2. Time moves only in advance_to.
3. Nothing here knows the vendor's field names or HTTP; times are epoch seconds, prices cents per instance and hour.
4. It is paid in arrears: there is no credit that runs out, and nothing stops for the lack of it.
"""

import math
import random

from agent.simulator.climate import Climate, Strike
from agent.simulator.event_queue import Timeline
from agent.simulator.market_model import Charge, Refusal
from agent.simulator.mithril import identifiers, places, prices
from agent.simulator.mithril.belongings import Belongings
from agent.simulator.mithril.bid_desk import BidDesk
from agent.simulator.mithril.bid_fleet import Fleet
from agent.simulator.mithril.climate_table import Mithril
from agent.simulator.mithril.model import Bid, Refused
from agent.simulator.mithril.other_renters import Crowd
from agent.simulator.mithril.pool_auction import PoolAuction
from agent.simulator.mithril.vms import VmStatus


class World:
    """The market, for one account with one project."""

    def __init__(self, climate: Climate, *, seed: int, start: float, ids: str = "") -> None:
        """Fill the pools and start at `start` (epoch seconds)."""
        self.climate = climate
        self.start_time = start
        self._timeline = Timeline(start)
        account = random.Random(f"{seed}/mithril/account")
        self.user_id = identifiers.fid(account, "user")
        self.organization = identifiers.fid(account, "org")
        self.project = identifiers.fid(account, "proj")
        # Other ids than those of an earlier world, of the same account.
        drawing = random.Random(ids) if ids else account
        self.fleet = Fleet(self._timeline, climate, drawing, str(seed))
        self.containers = self.fleet.containers
        self.belongings = Belongings(drawing)
        self.pools: dict[tuple[str, str], PoolAuction] = {}
        for pool in places.POOLS:
            auction = self.pools[pool.kind.fid, pool.region] = PoolAuction(self._timeline, pool)
            auction.on_start = lambda bid, auction=auction: self.fleet.start(bid, auction.spot_cents)  # type: ignore[misc]
            auction.on_notice, auction.on_end = self.fleet.warn, self.fleet.shut_down
            auction.on_price = self.fleet.reprice
        self.desk = BidDesk(self._timeline, self.pools, self.fleet, self.belongings, drawing)
        self.bids, self.hosts = self.desk.bids, self.desk.hosts
        self.crowd = Crowd(self._timeline, climate, list(self.pools.values()), f"{seed}/mithril")
        dice = random.Random(f"{seed}/mithril/fate")
        for strike in climate.strikes:
            self._timeline.put(start + strike.at_seconds, lambda strike=strike: self._strike(strike, dice))  # type: ignore[misc]

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
        return self.desk.live()

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
        """Return the prices that the market shows of a pool."""
        is_telling = prices.tells(self.climate.table(Mithril).tells_win_price, pool.pool.fid)
        return prices.now(pool, quantity, is_telling=is_telling)

    # --- money ------------------------------------------------------------------------------------------------------
    def charged_total(self) -> float:
        """Return every dollar charged so far, for bids and volumes."""
        return self.fleet.till.charged(self.now) + self.belongings.cost(self.now)

    def charges(self, since: float, until: float) -> list[Charge]:
        """Return the charges of bids on the UTC days that touch the span."""
        return self.fleet.till.charges(since, until, self.now)

    # --- forced events ------------------------------------------------------------------------------------------------
    def add_rival(self, pool_fid: str, limit_cents: int, quantity: int) -> int:
        """Let a rival bid in a pool until it is removed, or raise Refusal."""
        return self.crowd.invite(self._pool(pool_fid), limit_cents, quantity)

    def remove_rival(self, number: int) -> bool:
        """Remove a rival. Return False if none has that number."""
        return self.crowd.dismiss(number)

    def reserve(self, pool_fid: str, quantity: int, seconds: float) -> None:
        """Let a reservation take instances of a pool out of the auction for a while, or raise Refusal."""
        pool = self._pool(pool_fid)
        pool.reserve(quantity)
        self._timeline.put(self.now + seconds, lambda: pool.reserve(-quantity))

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
        if until is not None:
            self._timeline.put(until, lambda: self._speak_again(bid, until))
        bid.is_offline = True
        self.containers.freeze(bid)

    def set_host_online(self, machine_id: int) -> None:
        """Let silent machines answer again."""
        bid = self._on(machine_id)
        bid.host.offline_until, bid.is_offline = None, False
        if bid.image and bid.live_vms and bid.live_vms[0].status is VmStatus.RUNNING:
            self.containers.thaw(bid)

    def set_host_gone(self, machine_id: int) -> None:
        """Let the machines of a bid fail for good. The bid is open again, and the next auction gives it others."""
        self.desk.replace_machines(self._on(machine_id))

    def fail_pull(self, contract_id: int | None = None, *, probability: float = 1.0) -> None:
        """Let image pulls fail, of one bid (by its number in the truth) or of all, until calm_pulls."""
        self.containers.fail(None if contract_id is None else self.numbered(contract_id), probability)

    def stick_loading(self, contract_id: int | None = None, *, probability: float = 1.0) -> None:
        """Let image pulls hang, of one bid (by its number in the truth) or of all, until calm_pulls."""
        self.containers.stick(None if contract_id is None else self.numbered(contract_id), probability)

    def calm_pulls(self) -> None:
        """End fail_pull and stick_loading; a pull that hangs goes on."""
        self.containers.calm(self.live_contracts())

    # --- inside -----------------------------------------------------------------------------------------------------
    def numbered(self, contract_id: int) -> Bid:
        """Return a live bid by its number in the truth, or raise Refusal."""
        for bid in self.live_contracts():
            if bid.contract_id == contract_id:
                return bid
        raise Refusal(Refusal.NO_SUCH_CONTRACT, f"There is no bid of number {contract_id}.")

    def _pool(self, pool_fid: str) -> PoolAuction:
        for pool in self.pools.values():
            if pool.pool.fid == pool_fid:
                return pool
        raise Refusal(Refusal.NO_SUCH_HOST, f"There is no pool {pool_fid}.")

    def _speak_again(self, bid: Bid, until: float) -> None:
        if bid.host.offline_until == until:
            self.set_host_online(bid.host.machine_id)

    def _strike(self, strike: Strike, dice: random.Random) -> None:
        """Let the machines of one of our bids fail as the climate says; a raised price means nothing here."""
        held = [bid.host.machine_id for bid in self.live_contracts() if bid.holds_gpu]
        machine_id = dice.choice(held) if held else None
        if machine_id is None or strike.fault == "price_rise":
            return
        if strike.fault == "host_gone":
            self.set_host_gone(machine_id)
        else:
            self.set_host_offline(machine_id, self.now + strike.seconds)

    def _on(self, machine_id: int) -> Bid:
        for bid in self.bids.values():
            if bid.host.machine_id == machine_id:
                return bid
        raise Refusal(Refusal.NO_SUCH_HOST, f"There is no host {machine_id}.")
