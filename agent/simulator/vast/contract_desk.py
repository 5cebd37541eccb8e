"""The contracts of our account, from the first create to the last charge.

1. A contract is charged for GPUs only while it holds them and its container is past loading. Its disk is charged
   always, except while its host is silent. Traffic is charged while the image is pulled.
2. Outbid, displaced, stopped by hand and out of credit leave the same traces in a contract, save for StopCause, which
   only the truth shows.
3. A contract never changes its tenure.
"""

import hashlib
import math
from collections.abc import Callable

from agent.simulator import recorded_figures
from agent.simulator.climate import Climate
from agent.simulator.event_queue import Timeline
from agent.simulator.instances.billing import Rates, Till
from agent.simulator.instances.container_state import Container
from agent.simulator.instances.containers import Containers
from agent.simulator.market_model import Refusal
from agent.simulator.vast.host_auction import Yard
from agent.simulator.vast.model import Contract, EndCause, Notice, NoticeKind, StopCause
from agent.simulator.vast.prices import Prices

_SETTLED = frozenset({Container.RUNNING, Container.EXITED, Container.REBOOTING, Container.RECYCLING})


class Desk:
    """Keeps the contracts. The host auctions report to it, and it sends notices to the renter."""

    def __init__(
        self,
        timeline: Timeline,
        climate: Climate,
        prices: Prices,
        *,
        seed: str,
        credit: float,
        yard_of: Callable[[Contract], Yard],
    ) -> None:
        """Open with that credit, dollars, and no contract."""
        self.till = Till(credit)
        self.inbox: list[Notice] = []
        self.contracts: dict[int, Contract] = {}
        self.live: dict[int, Contract] = {}
        self.containers = Containers(
            timeline,
            climate,
            seed,
            on_turn=self._rerate,
            on_first_run=self._notify_started,
            on_failure=self._give_up,
        )
        self._timeline = timeline
        self._climate = climate
        self._prices = prices
        self._seed = seed
        self._yard_of = yard_of
        self._promised: set[int] = set()
        self._credit_watch = 0

    # --- the renter's calls -----------------------------------------------------------------------------------------
    def open(self, contract: Contract) -> None:
        """Add a new contract and let it bid for its GPUs."""
        self.contracts[contract.contract_id] = contract
        self.live[contract.contract_id] = contract
        yard = self._yard_of(contract)
        yard.contracts.append(contract)
        self._rerate(contract)
        self.notify(NoticeKind.CREATED, contract)
        self._plan_end(contract)
        if contract.host.is_online:
            yard.settle(self._timeline.now, at_once=contract)
        if not contract.holds_gpu:
            contract.is_underbid = True
            contract.stop_cause = StopCause.UNDERBID
            contract.stopped_since = self._timeline.now
        elif self.containers.rng(contract).random() < self._climate.race_probability:
            self._plan_race(contract)

    def start(self, contract: Contract) -> bool:
        """Bid for the GPUs again. Return False while they are taken: the start then waits in the queue."""
        if contract.holds_gpu:
            return True
        if self._timeline.now >= contract.end_time:
            raise Refusal(Refusal.EXPIRED, f"Contract {contract.contract_id} has expired and cannot be started.")
        self.require_credit()
        contract.wants_gpu = True
        self._yard_of(contract).settle(self._timeline.now, at_once=contract)
        if not contract.holds_gpu:
            contract.is_queued = True
        return contract.holds_gpu

    def stop(self, contract: Contract, cause: StopCause = StopCause.USER) -> None:
        """Take the GPUs, or the place in the queue, from a contract."""
        was_active = contract.holds_gpu or contract.is_queued or contract.wants_gpu
        contract.wants_gpu = False
        contract.is_queued = False
        if was_active:
            contract.stop_cause = cause
        if contract.holds_gpu:
            self._release(contract)
            self.notify(NoticeKind.STOPPED, contract)
            self._yard_of(contract).settle(self._timeline.now)
        elif was_active:
            self._yard_of(contract).settle(self._timeline.now)

    def end(self, contract: Contract, cause: EndCause) -> None:
        """End a contract for good."""
        now = self._timeline.now
        yard = self._yard_of(contract)
        held = contract.holds_gpu
        contract.wants_gpu = contract.is_queued = contract.holds_gpu = contract.is_intended = False
        self.containers.forget(contract)
        contract.ended, contract.end_cause = now, cause
        del self.live[contract.contract_id]
        yard.contracts.remove(contract)
        self.till.close(contract, now)
        self._watch_credit()
        self.notify(NoticeKind.DELETED, contract)
        if held and not contract.host.is_gone:
            yard.settle(now)

    def change_bid(self, contract: Contract, price: float | None) -> float:
        """Set the standing bid and hold the auction."""
        if contract.bid is None:
            raise Refusal(Refusal.NOT_A_BID, f"Contract {contract.contract_id} is rented on demand and has no bid.")
        yard = self._yard_of(contract)
        if price is None:
            price = contract.bid if contract.holds_gpu else yard.price_to_win(contract.slice, self._timeline.now)
            price = contract.bid if price is None else price
        contract.bid = price
        self._rerate(contract)
        yard.settle(self._timeline.now)
        return price

    def require_credit(self) -> None:
        """Raise Refusal if the account has no credit."""
        if self.till.credit(self._timeline.now) <= 0:
            raise Refusal(Refusal.INSUFFICIENT_CREDIT, "The account lacks credit.")

    def grant(self, dollars: float) -> None:
        """Change the credit. Contracts stopped for lack of credit stay stopped; those that only lost GPUs may start."""
        self.till.grant(dollars)
        self._watch_credit()
        if self.till.credit(self._timeline.now) > 0:
            for contract in [each for each in self.live.values() if each.wants_gpu and not each.holds_gpu]:
                self._yard_of(contract).settle(self._timeline.now)

    def renew(self, contract: Contract, ask: float, end_time: float) -> None:
        """Set the price and the end of an on-demand contract."""
        contract.locked_ask, contract.end_time = ask, end_time
        self._rerate(contract)
        self._plan_end(contract)

    def discount(self, contract: Contract, share: float) -> None:
        """Reduce the price of a contract's GPUs by a share."""
        contract.discount = share
        self._rerate(contract)

    # --- reports of the host auctions (see host_auction.Tenant) ---
    def lose(self, contract: Contract, cause: StopCause, new_floor: float, now: float) -> None:
        """Take the GPUs from a contract that was beaten; it goes on bidding for them."""
        del now
        contract.stop_cause = cause
        self._release(contract, is_evicted=True)
        self.notify(NoticeKind.OUTBID, contract, price=contract.bid, new_floor=round(new_floor, 2))

    def promise(self, contract: Contract, now: float) -> None:
        """Let a contract start soon on GPUs that came free."""
        if contract.contract_id in self._promised or self.till.credit(now) <= 0:
            return
        self._promised.add(contract.contract_id)
        lag = self.containers.rng(contract).uniform(*self._climate.resume_lag_seconds)
        self._timeline.put(now + lag, lambda: self._keep_promise(contract))

    def gain(self, contract: Contract, now: float) -> None:
        """Give a contract its GPUs."""
        is_resuming = contract.stop_cause is not None
        contract.holds_gpu = contract.is_intended = True
        contract.is_queued = False
        contract.stop_cause = None
        contract.held_since, contract.stopped_since = now, None
        self.containers.begin(contract)
        self._rerate(contract)
        if contract.is_bid:
            self._yard_of(contract).contest(contract.slice, now)
        if is_resuming:
            self.notify(NoticeKind.RESUMED, contract, price=self.gpu_rate(contract))

    def fall_silent(self, contract: Contract, now: float) -> None:
        """Stop charging a contract whose host does not answer."""
        del now
        contract.is_offline = True
        self.containers.freeze(contract)
        self._rerate(contract)
        self.notify(NoticeKind.OFFLINE, contract)

    def speak_again(self, contract: Contract, now: float) -> None:
        """Go on with a contract whose host answers again."""
        del now
        contract.is_offline = False
        self.containers.thaw(contract)
        self._rerate(contract)
        self.notify(NoticeKind.ONLINE, contract)

    def vanish(self, contract: Contract, now: float) -> None:
        """End a contract whose host is gone."""
        del now
        self.end(contract, EndCause.HOST_GONE)

    def reprice(self, contract: Contract, now: float) -> None:
        """Charge the new prices."""
        del now
        self._rerate(contract)

    # --- rates ------------------------------------------------------------------------------------------------------
    def gpu_rate(self, contract: Contract) -> float:
        """Return the price of its GPUs while it runs, $/h."""
        if contract.bid is None:
            return contract.locked_ask * (1.0 - contract.discount)
        if not self._climate.is_bid_capped:
            return contract.bid
        return min(contract.bid, self._prices.ask(contract.slice, self._timeline.now))

    def disk_rate(self, contract: Contract) -> float:
        """Return the price of its disk, $/h."""
        running = contract.host.storage_price * contract.disk_gb / 720.0
        return running if contract.holds_gpu else running * self._climate.stopped_disk_factor

    def _rerate(self, contract: Contract) -> None:
        if contract.ended is None:
            self.till.rate(contract, self._rates(contract), self._timeline.now)
            self._watch_credit()

    def _rates(self, contract: Contract) -> Rates:
        if contract.is_offline:
            return Rates()
        gpu = self.gpu_rate(contract) if contract.holds_gpu and contract.container in _SETTLED else 0.0
        down_gb = 0.0
        if recorded_figures.PULLS_ARE_BILLED and self.containers.is_pulling(contract):
            down_gb = self.containers.pull_gb_per_hour(contract)
        return Rates(gpu, self.disk_rate(contract), down_gb, contract.host.down_price if down_gb else 0.0)

    # --- credit -----------------------------------------------------------------------------------------------------
    def _watch_credit(self) -> None:
        """Plan the stop of everything for shortly after the credit ends at the present burn."""
        self._credit_watch += 1
        watch = self._credit_watch
        empty = self.till.empty_at(self._timeline.now)
        if empty < math.inf and self._has_active():

            def due() -> None:
                if watch == self._credit_watch:
                    self._stop_all()

            self._timeline.put(empty + recorded_figures.CREDIT_STOP_SECONDS, due)

    def _has_active(self) -> bool:
        return any(contract.holds_gpu or contract.wants_gpu for contract in self.live.values())

    def _stop_all(self) -> None:
        if self.till.credit(self._timeline.now) > 0:
            self._watch_credit()
            return
        self.notify(NoticeKind.LOW_CREDIT, None)
        for contract in list(self.live.values()):
            self.stop(contract, StopCause.CREDIT)

    # --- the rest ---------------------------------------------------------------------------------------------------
    def _release(self, contract: Contract, *, is_evicted: bool = False) -> None:
        contract.holds_gpu = contract.is_intended = False
        contract.held_since, contract.stopped_since = None, self._timeline.now
        self.containers.halt(contract, is_evicted=is_evicted)
        self._rerate(contract)

    def _keep_promise(self, contract: Contract) -> None:
        self._promised.discard(contract.contract_id)
        if contract.ended is not None or contract.holds_gpu or not contract.wants_gpu:
            return
        yard = self._yard_of(contract)
        if yard.wins(contract) and self.till.credit(self._timeline.now) > 0:
            self.gain(contract, self._timeline.now)

    def _plan_race(self, contract: Contract) -> None:
        def due() -> None:
            if contract.holds_gpu and contract.first_started is None:
                container = contract.container
                self.stop(contract, StopCause.RACE)
                contract.container = container  # it goes on showing that it loads

        seconds = self.containers.rng(contract).uniform(*recorded_figures.RACE_SECONDS)
        self._timeline.put(self._timeline.now + seconds, due)

    def _give_up(self, contract: Contract) -> None:
        """Stop a contract whose image could not be pulled."""
        contract.wants_gpu = False
        contract.stop_cause = StopCause.PULL_FAILED
        contract.holds_gpu = contract.is_intended = False
        contract.held_since, contract.stopped_since = None, self._timeline.now
        self._rerate(contract)
        self.notify(NoticeKind.CONTAINER_ERROR, contract)
        self._yard_of(contract).settle(self._timeline.now)

    def _plan_end(self, contract: Contract) -> None:
        end = contract.end_time
        if (warned := end - recorded_figures.END_NOTICE_SECONDS) > self._timeline.now:
            self._timeline.put(warned, lambda: self._warn(contract, end))
        self._timeline.put(end, lambda: self._expire(contract))

    def _warn(self, contract: Contract, end: float) -> None:
        if contract.ended is None and contract.end_time == end:
            self.notify(NoticeKind.NEAR_END, contract)

    def _expire(self, contract: Contract) -> None:
        if contract.ended is None and self._timeline.now >= contract.end_time:
            self.stop(contract, StopCause.EXPIRED)
            contract.stop_cause = StopCause.EXPIRED
            self._timeline.put(
                contract.end_time + recorded_figures.EXPIRED_KEPT_SECONDS, lambda: self._delete(contract)
            )

    def _delete(self, contract: Contract) -> None:
        if contract.ended is None:
            self.end(contract, EndCause.EXPIRED)

    def _notify_started(self, contract: Contract) -> None:
        self.notify(NoticeKind.STARTED, contract, price=self.gpu_rate(contract))

    def notify(
        self, kind: NoticeKind, contract: Contract | None, *, price: float | None = None, new_floor: float | None = None
    ) -> None:
        """Put a notice into the inbox."""
        digest = hashlib.blake2b(f"{self._seed}/notice/{len(self.inbox)}".encode(), digest_size=16)
        self.inbox.append(
            Notice(
                event_id=digest.hexdigest(),
                kind=kind,
                at=self._timeline.now,
                contract_id=contract.contract_id if contract else None,
                machine_id=contract.slice.machine_id if contract else None,
                image=contract.image if contract else "",
                price=price,
                new_floor=new_floor,
            )
        )
