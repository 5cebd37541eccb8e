"""The market itself: hosts, rivals, contracts and billing. Events move it, and only when time is moved.

1. The same climate, seed, start and calls give the same answers. Each host, each contract and the account has a random
   stream of its own, so the order in which hosts are read changes nothing.
2. Time moves only in advance_to. A host costs no work until somebody reads it.
3. Nothing here knows the vendor's field names or HTTP.
"""

import random
from collections.abc import Iterator
from typing import Any

from agent.simulator import demand
from agent.simulator.climate import Climate
from agent.simulator.event_queue import Timeline
from agent.simulator.instances import billing, images
from agent.simulator.instances.container_state import Container
from agent.simulator.market_model import Charge, Refusal
from agent.simulator.vast import landlord, prices, scenario_events, truth
from agent.simulator.vast.contract_desk import Desk
from agent.simulator.vast.host_auction import Opening, Yard
from agent.simulator.vast.hosts import draw_hosts, draw_slices
from agent.simulator.vast.model import Contract, EndCause, Host, Notice, RentTerms, Rival, Slice

LOWEST_BID = 0.001
HIGHEST_BID = 128.0  # of a create
HIGHEST_REBID_PER_GPU = 32.0


class World:
    """The market, for one account."""

    hosts: dict[int, Host]
    slices: dict[int, Slice]
    rivals: dict[int, Rival]  # those put there by hand; the market's own come and go unseen

    def __init__(
        self, climate: Climate, *, seed: int, start: float, hosts: int | None = None, credit: float | None = None
    ) -> None:
        """Draw the hosts and start at `start` (epoch seconds). `hosts` and `credit` override the climate's."""
        self.climate = climate
        self.seed = seed
        self.start_time = start
        self._timeline = Timeline(start)
        self._prices = prices.Prices(climate, start)
        drawing = random.Random(f"{seed}/hosts")
        drawn = draw_hosts(drawing, climate.hosts if hosts is None else hosts, start)
        self.hosts = {host.machine_id: host for host in drawn}
        self.slices = draw_slices(drawing, drawn)
        self._slices_of: dict[int, list[Slice]] = {machine_id: [] for machine_id in self.hosts}
        for slice_ in self.slices.values():
            self._slices_of[slice_.machine_id].append(slice_)
        churning = random.Random(f"{seed}/churn")
        for host in drawn:
            host.churn = demand.churn(churning, climate)
        self._residents = scenario_events.draw_residents(random.Random(f"{seed}/residents"), drawn, climate, start)
        self._yards: dict[int, Yard] = {}
        self.rivals = {}
        self._rival_count = 0
        self._account = random.Random(f"{seed}/account")
        self.account_id = self._account.randrange(100_000, 999_999)
        self.next_contract = self._account.randrange(48_000_000, 60_000_000)
        self._desk = Desk(
            self._timeline,
            climate,
            self._prices,
            seed=str(seed),
            credit=climate.credit if credit is None else credit,
            yard_of=self.yard_of,
        )
        self.containers = self._desk.containers
        self.landlord = landlord.Landlord(self, self._timeline, self._desk)
        scenario_events.plan(self, self._timeline, self._prices, random.Random(f"{seed}/strikes"))

    # --- time -------------------------------------------------------------------------------------------------------
    @property
    def now(self) -> float:
        """Return the market's time, epoch seconds."""
        return self._timeline.now

    def advance_to(self, now: float) -> None:
        """Let everything due until `now` happen, in order. Going back is ignored; microseconds when nothing is due."""
        self._timeline.advance_to(now)

    # --- looking ----------------------------------------------------------------------------------------------------
    @property
    def contracts(self) -> dict[int, Contract]:
        """Return every contract there ever was, by id, in order of creation."""
        return self._desk.contracts

    @property
    def inbox(self) -> list[Notice]:
        """Return every notice, the oldest first."""
        return self._desk.inbox

    @property
    def credit(self) -> float:
        """Return the credit of the account at this moment, dollars."""
        return self._desk.till.credit(self.now)

    def listed(self) -> Iterator[Slice]:
        """Yield every slice of a host that is online and not gone, in a fixed order, each host brought up to now."""
        now = self.now
        for machine_id, host in self.hosts.items():
            self._yard(machine_id).sync(now)
            if host.is_online and now < host.end_time:
                yield from self._slices_of[machine_id]

    def is_listed(self, slice_: Slice) -> bool:
        """Return whether listed() would yield the slice."""
        self._looked_at(slice_.machine_id)
        return slice_.host.is_online and self.now < slice_.host.end_time

    def resident_until(self, slice_: Slice) -> float:
        """Return until when the on-demand renter that held the host at the start stays; -inf where there was none."""
        return self._residents.get(slice_.machine_id, float("-inf"))

    def ask(self, slice_: Slice) -> float:
        """Return the on-demand price of the whole slice, $/h as a renter pays it, without disk."""
        self._looked_at(slice_.machine_id)
        return self._prices.ask(slice_, self.now)

    def host_floor(self, slice_: Slice) -> float:
        """Return the host's own lowest bid for the slice, whoever holds it now."""
        self._looked_at(slice_.machine_id)
        return self._prices.floor(slice_, self.now)

    def true_floor(self, slice_: Slice) -> float | None:
        """Return the lowest bid that would run now; None while an on-demand renter is there or the host is silent."""
        yard = self._looked_at(slice_.machine_id)
        if not slice_.gpus or not slice_.host.is_online:
            return None
        return yard.price_to_win(slice_, self.now)

    def quoted_floor(self, slice_: Slice) -> float | None:
        """Return the floor that a search shows: late, and the holder's own bid while it is held (the echo trap).

        None for disk-only slices, while an on-demand renter holds any of its GPUs, and for minutes after a rival took
        it.
        """
        return self._looked_at(slice_.machine_id).quote(slice_, self.now)

    def is_rentable(self, slice_: Slice) -> bool:
        """Return whether a search shows the slice as free to rent."""
        return self.is_listed(slice_) and (not slice_.gpus or self.quoted_floor(slice_) is not None)

    def is_rented_by_us(self, slice_: Slice) -> bool:
        """Return whether a contract of this account holds the GPUs of exactly this slice."""
        return any(contract.holds_gpu and contract.slice is slice_ for contract in self._desk.live.values())

    def gpu_rate(self, contract: Contract) -> float:
        """Return the $/h its GPUs cost while it runs: the bid, capped at the ask, or the ask agreed at the start."""
        return self._desk.gpu_rate(contract)

    def disk_rate(self, contract: Contract) -> float:
        """Return the $/h its disk costs."""
        return self._desk.disk_rate(contract)

    def running_seconds(self, contract: Contract) -> float:
        """Return how long its container has run since it last started, 0 when it does not."""
        return 0.0 if contract.running_since is None else self.now - contract.running_since

    def log_lines(self, contract_id: int, tail: int = 1000) -> list[str]:
        """Return the last lines its container printed."""
        return truth.log_lines(self.contract(contract_id), self.now)[-tail:]

    # --- the renter's calls -----------------------------------------------------------------------------------------
    def create(
        self, offer_id: int, terms: RentTerms, *, bid: float | None, cancel_unavailable: bool | None = None
    ) -> Contract:
        """Rent a slice, on demand without a bid. Raises Refusal; a bid below the floor makes a stopped contract.

        Such a contract has `is_underbid`, bills its disk, and runs later if the floor comes down to its bid.
        """
        slice_ = self._rentable_slice(offer_id, bid, cancels=bool(cancel_unavailable))
        if bid is not None and not LOWEST_BID <= bid <= HIGHEST_BID:
            raise Refusal(Refusal.BAD_PRICE, f"The bid must lie between {LOWEST_BID} and {HIGHEST_BID}.")
        if not 0 < terms.disk_gb <= slice_.host.disk_gb:
            raise Refusal(Refusal.BAD_DISK, f"The host has {slice_.host.disk_gb:g} GB of disk.")
        self._desk.require_credit()
        self.next_contract += self._account.randrange(1, 40)
        contract = Contract(
            contract_id=self.next_contract,
            slice=slice_,
            host=slice_.host,
            bid=bid,
            locked_ask=self.ask(slice_),
            disk_gb=terms.disk_gb,
            image=terms.image,
            image_gb=images.size_gb(terms.image),
            label=terms.label,
            created=self.now,
            end_time=slice_.host.end_time,
            onstart=terms.onstart,
            env=dict(terms.env),
            args=terms.args,
            runtype=terms.runtype,
            template=terms.template,
        )
        self._attend(self._yard(slice_.machine_id))
        self._desk.open(contract)
        return contract

    def contract(self, contract_id: int) -> Contract:
        """Return a contract that still exists, or raise Refusal."""
        contract = self._desk.live.get(contract_id)
        if contract is None:
            raise Refusal(Refusal.NO_SUCH_CONTRACT, f"There is no contract {contract_id}.")
        return contract

    def live_contracts(self) -> list[Contract]:
        """Return the contracts that exist now, in order of creation."""
        return list(self._desk.live.values())

    def start(self, contract_id: int) -> bool:
        """Start it; False means that its GPUs are taken and the start is queued."""
        return self._desk.start(self.contract(contract_id))

    def stop(self, contract_id: int) -> None:
        """Stop it and cancel a queued start; the disk stays and bills."""
        self._desk.stop(self.contract(contract_id))

    def destroy(self, contract_id: int) -> None:
        """End it and its disk."""
        contract = self.contract(contract_id)
        self._desk.end(contract, EndCause.DESTROYED)
        self._neglect(self._yard(contract.slice.machine_id))

    def change_bid(self, contract_id: int, price: float | None) -> float:
        """Set the bid at once and return it; None sets one that wins now."""
        contract = self.contract(contract_id)
        highest = HIGHEST_REBID_PER_GPU * max(contract.slice.num_gpus, 1)
        if price is not None and not LOWEST_BID <= price <= highest:
            raise Refusal(Refusal.BAD_PRICE, f"Please set a bid price >= {LOWEST_BID} and <= {highest:g}.")
        return self._desk.change_bid(contract, price)

    def set_label(self, contract_id: int, text: str) -> None:
        """Put another label on it."""
        self.contract(contract_id).label = text

    def reboot(self, contract_id: int) -> None:
        """Restart its container without giving up the GPUs."""
        self._desk.containers.restart(self.contract(contract_id), Container.REBOOTING)

    def recycle(self, contract_id: int) -> None:
        """Make its container anew from the image without giving up the GPUs."""
        self._desk.containers.restart(self.contract(contract_id), Container.RECYCLING)

    # --- forced events ---
    def add_rival(
        self, machine_id: int, gpus: int | None = None, bid: float | None = None, *, on_demand: bool = False
    ) -> int:
        """Put a competitor on a host until it is removed: on our slice where the size fits, else on the cheapest.

        `bid` is $/h for the slice of `gpus` cards; without `gpus` it wants the whole host.
        """
        if on_demand != (bid is None) or (bid is not None and bid <= 0):
            raise Refusal(Refusal.BAD_PRICE, "A rival either bids more than nothing or rents on demand.")
        yard = self._looked_at(machine_id)
        slice_ = scenario_events.rivals_slice(self, yard, gpus or yard.host.gpu_count)
        self._rival_count += 1
        rival = Rival(self._rival_count, slice_, bid, self.now, float("inf"), is_ours=True)
        self.rivals[rival.rival_id] = rival
        self._attend(yard)
        yard.add(rival, self.now)
        return rival.rival_id

    def remove_rival(self, rival_id: int) -> bool:
        """Remove a competitor; False if there is none of that id."""
        rival = self.rivals.pop(rival_id, None)
        if rival is None:
            return False
        yard = self._looked_at(rival.slice.machine_id)
        yard.remove(rival, self.now)
        self._neglect(yard)
        return True

    def set_host_offline(self, machine_id: int, until: float | None) -> None:
        """Let a host fall silent until a time (None: until set_host_online). Its contracts cost nothing meanwhile."""
        self._looked_at(machine_id).fall_silent(self.now, until)

    def set_host_online(self, machine_id: int) -> None:
        """Let a silent host answer again."""
        self._looked_at(machine_id).speak(self.now)

    def set_host_gone(self, machine_id: int) -> None:
        """Remove a host for good, with every contract on it."""
        self._looked_at(machine_id).die(self.now)

    def set_credit(self, dollars: float) -> None:
        """Set the credit, dollars. At zero or below everything stops; it does not start again by itself."""
        self._desk.grant(dollars - self.credit)

    def fail_pull(self, contract_id: int | None = None, *, probability: float = 1.0) -> None:
        """Let image pulls fail, of one contract or of all, until calm_pulls. A pull of the one named fails at once."""
        self._desk.containers.fail(self._maybe(contract_id), probability)

    def stick_loading(self, contract_id: int | None = None, *, probability: float = 1.0) -> None:
        """Let image pulls hang, of one contract or of all, until calm_pulls. A pull of the one named hangs at once."""
        self._desk.containers.stick(self._maybe(contract_id), probability)

    def calm_pulls(self) -> None:
        """End fail_pull and stick_loading; a pull that hangs goes on."""
        self._desk.containers.calm(self.live_contracts())

    # --- money and truth --------------------------------------------------------------------------------------------
    def charges(self, since: float, until: float) -> list[Charge]:
        """Return the charges of the UTC days that touch the span, by day, contract, kind and rate."""
        return self._desk.till.charges(since, until, self.now)

    def turns(self) -> list[billing.Turn]:
        """Return every change of a contract's rates, in order."""
        return self._desk.till.turns

    def settle(self) -> None:
        """Bring every contract's charges, and the traffic charged, up to now."""
        self._desk.till.settle(self.now)

    def charged_total(self) -> float:
        """Return every dollar charged so far."""
        return self._desk.till.charged(self.now)

    def billing_now(self) -> list[int]:
        """Return the ids of the contracts that cost money this second."""
        return self._desk.till.billing()

    def truth(self) -> dict[str, Any]:
        """Return everything as it really is, in JSON shapes: the control API's GET /truth without the calls."""
        return truth.as_json(self)

    # --- host auctions ---
    def yard_of(self, contract: Contract) -> Yard:
        """Return the host auction of a contract, as it was last looked at."""
        return self._yard(contract.slice.machine_id)

    def attended(self) -> list[Yard]:
        """Return the host auctions in which something of ours may happen, brought up to now."""
        watched = [yard for yard in self._yards.values() if yard.alarm is not None]
        for yard in watched:
            yard.sync(self.now)
        return watched

    def _yard(self, machine_id: int) -> Yard:
        yard = self._yards.get(machine_id)
        if yard is None:
            host = self.hosts.get(machine_id)
            if host is None:
                raise Refusal(Refusal.NO_SUCH_HOST, f"There is no host {machine_id}.")
            yard = self._yards[machine_id] = Yard(
                host,
                self._slices_of[machine_id],
                climate=self.climate,
                prices=self._prices,
                tenant=self._desk,
                opening=Opening(f"{self.seed}/{machine_id}", self.start_time, self._residents.get(machine_id)),
            )
        return yard

    def _looked_at(self, machine_id: int) -> Yard:
        yard = self._yard(machine_id)
        yard.sync(self.now)
        return yard

    def _attend(self, yard: Yard) -> None:
        """Follow a host event by event from now on: something of ours is there."""
        if yard.alarm is None:
            yard.attend(lambda at: self._timeline.put(at, lambda: yard.sync(self.now)))

    def _neglect(self, yard: Yard) -> None:
        if not yard.contracts and not any(rival.is_ours for rival in yard.rivals):
            yard.alarm = None

    def _maybe(self, contract_id: int | None) -> Contract | None:
        return None if contract_id is None else self.contract(contract_id)

    def _rentable_slice(self, offer_id: int, bid: float | None, *, cancels: bool) -> Slice:
        """Return the slice of an offer if it may be rented on these terms, or raise Refusal."""
        slice_ = self.slices.get(offer_id)
        if slice_ is None or not slice_.gpus or not self.is_listed(slice_):
            raise Refusal(Refusal.NO_SUCH_ASK, f"Offer {offer_id} is not available.")
        price = self._looked_at(slice_.machine_id).price_to_win(slice_, self.now)
        is_beyond = price is None or (cancels and bid is not None and bid < price)
        if is_beyond or self.is_rented_by_us(slice_):
            raise Refusal(Refusal.ASK_TAKEN, f"Offer {offer_id} is no longer available.")
        return slice_
