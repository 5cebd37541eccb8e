"""One host with its renters, the stream of rivals that come to it, and the quotes of its slices.

1. A yard moves only when somebody reads it, and then through all its events in order. An early or late read gives the
   same yard.
2. After every event the auction is held again. Losers leave before winners begin.
3. A host that is silent holds no auction.
"""

import dataclasses
import heapq
import math
import random
from collections.abc import Callable, Sequence
from typing import Protocol

from agent.simulator import demand, recorded_figures
from agent.simulator.climate import Climate
from agent.simulator.vast import auction, quotes
from agent.simulator.vast.model import Contract, Host, Rival, Slice, StopCause
from agent.simulator.vast.prices import Prices

WARM_UP = 2 * 3600.0  # rivals come this long before the world begins, or it would begin empty


class Tenant(Protocol):
    """Receives the effects of the auction and the host on a contract of ours."""

    def lose(self, contract: Contract, cause: StopCause, new_floor: float, now: float) -> None:
        """Take the GPUs from it."""

    def promise(self, contract: Contract, now: float) -> None:
        """Report that its GPUs are free, and that it may start soon."""

    def gain(self, contract: Contract, now: float) -> None:
        """Give it its GPUs."""

    def fall_silent(self, contract: Contract, now: float) -> None:
        """Report that its host does not answer."""

    def speak_again(self, contract: Contract, now: float) -> None:
        """Report that its host answers again."""

    def vanish(self, contract: Contract, now: float) -> None:
        """Report that its host is gone for good."""

    def reprice(self, contract: Contract, now: float) -> None:
        """Report that its host's prices changed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Opening:
    """The start of a yard: its seed, its time, and until when a long on-demand renter has the whole host (or None)."""

    seed: str
    start: float
    resident_until: float | None


class Yard:
    """One host's renters and its auctions."""

    def __init__(
        self, host: Host, slices: Sequence[Slice], *, climate: Climate, prices: Prices, tenant: Tenant, opening: Opening
    ) -> None:
        """Begin WARM_UP before the opening's start."""
        self.host = host
        self.slices = [slice_ for slice_ in slices if slice_.gpus]
        self.rivals: list[Rival] = []
        self.contracts: list[Contract] = []
        self._climate = climate
        self._prices = prices
        self._tenant = tenant
        self._comers = random.Random(f"{opening.seed}/comers")
        self._fate = random.Random(f"{opening.seed}/fate")
        self._seed = opening.seed
        self._fights: random.Random | None = None
        self._due: list[tuple[float, int, str, Rival | Slice | None]] = []
        self._count = 0
        self._quotes = {slice_.offer_id: quotes.Quote(slice_.offer_id) for slice_ in self.slices}
        self._won: list[auction.Claim] = []
        self.alarm: Callable[[float], None] | None = None  # set while something of ours is here
        self._open(opening.start - WARM_UP, opening.start, opening.resident_until)

    def _open(self, begin: float, start: float, resident_until: float | None) -> None:
        if resident_until is not None and self.slices:
            self._admit(Rival(0, self.slices[0], None, begin, resident_until), begin)
        self._put(begin + demand.gap(self._comers, self.host.churn), "comer")
        self._put(begin + demand.gap(self._fate, demand.residents_per_hour(self._climate)), "resident")
        self._put(start + demand.gap(self._fate, self._climate.price_walks_per_day / 24), "reprice")
        per_hour = demand.outages_per_hour(self.host.true_reliability, self._climate)
        self._put(start + demand.gap(self._fate, per_hour), "outage")

    # --- time -------------------------------------------------------------------------------------------------------
    @property
    def wake(self) -> float:
        """Return when something is due here next."""
        return self._due[0][0] if self._due else math.inf

    def sync(self, now: float) -> None:
        """Let everything due here until now happen."""
        while self._due and self._due[0][0] <= now:
            at, _, kind, what = heapq.heappop(self._due)
            self._happen(kind, what, at)

    def attend(self, alarm: Callable[[float], None]) -> None:
        """Call `alarm` with the time of every event due here, known now or later."""
        self.alarm = alarm
        for at in sorted(due[0] for due in self._due):
            alarm(at)

    def _put(self, at: float, kind: str, what: Rival | Slice | None = None) -> None:
        if at < math.inf:
            self._count += 1
            heapq.heappush(self._due, (at, self._count, kind, what))
            if self.alarm is not None:
                self.alarm(at)

    def _happen(self, kind: str, what: Rival | Slice | None, at: float) -> None:
        if kind == "comer":
            self._come(demand.wish(self._comers, self._climate), at)
            self._put(at + demand.gap(self._comers, self.host.churn), "comer")
        elif kind == "resident":
            self._reside(demand.residence(self._fate), at)
            self._put(at + demand.gap(self._fate, demand.residents_per_hour(self._climate)), "resident")
        elif kind == "contest" and isinstance(what, Slice):
            self._come(demand.wish(self._fighting(), self._climate), at, what)
        elif kind == "leave" and isinstance(what, Rival):
            self.remove(what, at)
        elif kind == "return" and isinstance(what, Rival):
            self._admit(what, at)
        else:
            self._befall(kind, at)

    def _befall(self, kind: str, at: float) -> None:
        if kind == "reprice":
            self._walk(at)
        elif kind == "outage":
            self._fail(at)
        elif self.host.offline_until is not None and self.host.offline_until <= at:
            self.speak(at)

    # --- rivals -----------------------------------------------------------------------------------------------------
    def contest(self, slice_: Slice, at: float) -> None:
        """Draw whether and when another renter wants the slice that a bidder of ours has just taken."""
        after = demand.contest(self._fighting(), self._climate)
        if after is not None:
            self._put(at + after, "contest", slice_)

    def _fighting(self) -> random.Random:
        """Return the random stream of renters that our own moves provoke; most hosts never need one."""
        if self._fights is None:
            self._fights = random.Random(f"{self._seed}/fights")
        return self._fights

    def _come(self, wish: demand.Wish, at: float, slice_: Slice | None = None) -> None:
        if not self.slices or not self.host.is_online:
            return
        if slice_ is None:
            slice_ = self.slices[min(int(wish.which * len(self.slices)), len(self.slices) - 1)]
        bid: float | None = None
        if not wish.is_on_demand:
            floor = self._prices.floor(slice_, at)
            bid = round(
                max(min(wish.over_floor * floor, recorded_figures.BID_LIMIT * self._prices.ask(slice_, at)), floor), 4
            )
            if bid < floor:
                bid += auction.TICK
        self._admit(Rival(0, slice_, bid, at, at + wish.stay), at)

    def _reside(self, stay: float, at: float) -> None:
        if self.slices and self.host.is_online:
            self._admit(Rival(0, self.slices[0], None, at, at + stay), at)

    def _admit(self, rival: Rival, at: float) -> None:
        """Admit one of the market's own rivals if it can run at once; else it goes elsewhere."""
        if rival.until <= at or not self.host.is_online:
            return
        price = self.price_to_win(rival.slice, at)
        if price is None or (rival.bid is not None and rival.bid < price):
            return
        self._put(rival.until, "leave", rival)
        self.add(rival, at)

    def add(self, rival: Rival, at: float) -> None:
        """Admit a rival, whether it can run or not."""
        self.rivals.append(rival)
        self.settle(at)

    def remove(self, rival: Rival, at: float) -> None:
        """Remove a rival."""
        if rival in self.rivals:
            self.rivals.remove(rival)
            self.settle(at)

    def _displace(self, rival: Rival, at: float) -> None:
        """Send a beaten rival away; now and then it comes back with a higher bid."""
        rival.is_running = False
        if rival.is_ours:
            return
        self.rivals.remove(rival)
        if rival.bid is None:
            return
        rng = self._fighting()
        again, wait, times = rng.random(), rng.random(), rng.random()
        price = self.price_to_win(rival.slice, at)
        if price is None or again >= self._climate.demand.fight_back:
            return
        raised = round(price * _between(recorded_figures.FIGHT_BACK_RAISE, times), 4)
        back = at + _between(recorded_figures.FIGHT_BACK_SECONDS, wait)
        if raised <= recorded_figures.FIGHT_BACK_LIMIT * self._prices.ask(rival.slice, at) and back < rival.until:
            self._put(back, "return", Rival(0, rival.slice, raised, back, rival.until))

    # --- the host ---------------------------------------------------------------------------------------------------
    def _walk(self, at: float) -> None:
        step = math.exp(self._climate.price_step * self._fate.gauss(0.0, 1.0))
        self.host.price_factor = min(max(self.host.price_factor * step, 0.6), 1.7)
        self.reprice(at)
        self._put(at + demand.gap(self._fate, self._climate.price_walks_per_day / 24), "reprice")

    def reprice(self, at: float) -> None:
        """Charge our contracts the new prices, and hold the auction again."""
        for contract in self.contracts:
            self._tenant.reprice(contract, at)
        self.settle(at)

    def _fail(self, at: float) -> None:
        seconds = demand.outage(self._fate)
        per_hour = demand.outages_per_hour(self.host.true_reliability, self._climate)
        until = at + (seconds if seconds < math.inf else 0.0)
        self._put(until + demand.gap(self._fate, per_hour), "outage")
        if not self.host.is_online:
            return
        if seconds == math.inf:
            self.die(at)
        else:
            self.fall_silent(at, until)

    def fall_silent(self, at: float, until: float | None) -> None:
        """Stop answering until that time; None: until `speak`."""
        if self.host.is_gone:
            return
        was_online = self.host.is_online
        self.host.offline_until = math.inf if until is None else until
        if until is not None:
            self._put(until, "online")
        if was_online:
            for contract in list(self.contracts):
                self._tenant.fall_silent(contract, at)
            self._requote(at)

    def speak(self, at: float) -> None:
        """Answer again."""
        if self.host.is_gone or self.host.offline_until is None:
            return
        self.host.offline_until = None
        for contract in list(self.contracts):
            self._tenant.speak_again(contract, at)
        self.settle(at)

    def die(self, at: float) -> None:
        """Leave for good, with every contract."""
        self.host.is_gone = True
        for contract in list(self.contracts):
            self._tenant.vanish(contract, at)
        self.rivals.clear()
        self._due.clear()

    # --- the auction ------------------------------------------------------------------------------------------------
    def settle(self, now: float, at_once: Contract | None = None) -> None:
        """Hold the auction: take from the losers, then give to the winners; `at_once` gets its GPUs without a delay."""
        if not self.host.is_online:
            return
        self._won = auction.winners(self._claims(now))
        standing = {id(claim.holder) for claim in self._won}
        for contract in [held for held in self.contracts if held.holds_gpu and id(held) not in standing]:
            self._take(contract, now)
        for rival in list(self.rivals):
            if id(rival) in standing:
                rival.is_running = True
            elif rival.is_running:
                self._displace(rival, now)
        for contract in [won for won in self.contracts if not won.holds_gpu and id(won) in standing]:
            give = self._tenant.gain if contract is at_once else self._tenant.promise
            give(contract, now)
        self._requote(now)

    def wins(self, contract: Contract) -> bool:
        """Return whether a contract won the last auction."""
        return self.host.is_online and any(claim.holder is contract for claim in self._won)

    def price_to_win(self, slice_: Slice, now: float) -> float | None:
        """Return the lowest bid that would run now; None while an on-demand renter has one of its GPUs."""
        return auction.price_to_win(slice_.gpus, self._prices.floor(slice_, now), self._won)

    def _claims(self, now: float) -> list[auction.Claim]:
        claims = [
            auction.Claim(rival, rival.slice.gpus, _per_gpu(rival.bid, rival.slice), rival.is_running, rival.since)
            for rival in self.rivals
        ]
        for contract in self.contracts:
            if contract.wants_gpu and self._is_admitted(contract, now):
                per_gpu = _per_gpu(contract.bid, contract.slice)
                since = contract.held_since or contract.stopped_since or contract.created
                claims.append(auction.Claim(contract, contract.slice.gpus, per_gpu, contract.holds_gpu, since))
        return claims

    def _is_admitted(self, contract: Contract, now: float) -> bool:
        return contract.bid is None or contract.bid >= self._prices.floor(contract.slice, now) - 1e-9

    def _take(self, contract: Contract, now: float) -> None:
        """Take the GPUs from a contract that lost, with the cause and the price that it would have to bid."""
        winner = auction.in_the_way(contract.slice.gpus, self._won)
        floor = self._prices.floor(contract.slice, now)
        if winner is None or not self._is_admitted(contract, now):
            cause, price = StopCause.FLOOR_RAISED, floor
        elif winner.per_gpu == auction.ALWAYS:
            cause, price = StopCause.DISPLACED, self._prices.ask(contract.slice, now)
        else:
            cause, price = StopCause.OUTBID, winner.per_gpu * len(contract.slice.gpus)
        self._tenant.lose(contract, cause, price, now)

    # --- quotes -----------------------------------------------------------------------------------------------------
    def quote(self, slice_: Slice, now: float) -> float | None:
        """Return the floor that a search shows for one of its slices."""
        if not slice_.gpus or not self.host.is_online:
            return None
        shown = self._quotes[slice_.offer_id].read(now)
        return self._prices.floor(slice_, now) if shown == quotes.FREE else shown

    def _requote(self, now: float) -> None:
        for slice_ in self.slices:
            holder = auction.in_the_way(slice_.gpus, self._won)
            level: float | None = quotes.FREE
            if holder is not None:
                level = None if holder.per_gpu == auction.ALWAYS else holder.per_gpu * len(slice_.gpus)
            self._quotes[slice_.offer_id].update(
                now,
                level,
                is_taken_by_rival=holder is not None and isinstance(holder.holder, Rival),
                lag=self._climate.echo_lag_seconds,
                lowered=self._climate.lowered_echo_factor,
            )


def _per_gpu(bid: float | None, slice_: Slice) -> float:
    return auction.ALWAYS if bid is None else bid / len(slice_.gpus)


def _between(bounds: tuple[float, float], share: float) -> float:
    return bounds[0] + (bounds[1] - bounds[0]) * share
