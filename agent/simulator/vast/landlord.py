"""The hosts' own actions on their renters: raise a price, plan maintenance, and take a deposit for a discount.

1. A rise is an offer to one on-demand contract. Accepted, it sets the new price and extends the contract. Rejected or
   unanswered, price and end stay as they are. A contract that ended has no rise.
2. Maintenance is announced when it is planned, and again an hour before. Then the host is silent, and costs nothing,
   until it is over.
3. A deposit leaves the credit at once, and its remainder comes back. While it lasts, GPUs cost less: the discount grows
   with the months that it covers, up to the host's limit.
"""

import dataclasses

from agent.simulator import recorded_figures
from agent.simulator.event_queue import Timeline
from agent.simulator.market_model import Refusal
from agent.simulator.vast.contract_desk import Desk
from agent.simulator.vast.model import Contract, NoticeKind
from agent.simulator.vast.volume_store import Storeroom
from agent.simulator.vast.world_interface import Stage

HOUR = 3600.0
DAY = 86_400.0
MONTH_HOURS = 720.0
DOWNTIME_NOTICE_SECONDS = HOUR
EXTENDS_SECONDS = 30 * DAY
"""An accepted rise extends its contract by this time."""


@dataclasses.dataclass(slots=True)
class Rise:
    """A host's offer of a higher price to one contract. Prices are $/h of one GPU."""

    rise_id: int
    contract: Contract
    old_price: float
    new_price: float
    end_time: float  # of the contract, if it is accepted
    created: float


class Landlord:
    """Act for the hosts of one world."""

    def __init__(self, world: Stage, timeline: Timeline, desk: Desk) -> None:
        """Start without rises."""
        self._world = world
        self._timeline = timeline
        self._desk = desk
        self._rises: dict[int, Rise] = {}
        self._count = 0
        self.storeroom = Storeroom(world, timeline, desk)

    def pending(self) -> list[Rise]:
        """Return the rises that are neither accepted nor rejected, the oldest first."""
        now = self._timeline.now
        return [each for each in self._rises.values() if each.contract.ended is None and now < each.contract.end_time]

    def raise_price(self, machine_id: int, factor: float) -> list[Rise]:
        """Multiply a host's price by `factor`; return the rises for the contracts that hold it on demand."""
        host = self._world.hosts.get(machine_id)
        if host is None:
            raise Refusal(Refusal.NO_SUCH_HOST, f"There is no host {machine_id}.")
        host.ask_per_gpu *= factor
        asked = []
        for contract in self._desk.live.values():
            if contract.host is host and contract.bid is None and contract.slice.num_gpus:
                self._count += 1
                old = contract.locked_ask / contract.slice.num_gpus
                end = contract.end_time + EXTENDS_SECONDS
                asked.append(Rise(self._count, contract, old, old * factor, end, self._timeline.now))
        # A later rise of a contract takes the place of the earlier.
        ours = {each.contract.contract_id for each in asked}
        self._rises = {key: each for key, each in self._rises.items() if each.contract.contract_id not in ours}
        self._rises |= {each.rise_id: each for each in asked}
        return asked

    def answer(self, rise_id: int, *, is_accepted: bool) -> Rise | None:
        """Settle a pending rise and return it; None if none has that id."""
        rise = next((each for each in self.pending() if each.rise_id == rise_id), None)
        if rise is None:
            return None
        del self._rises[rise_id]
        if is_accepted:
            contract = rise.contract
            self._desk.renew(contract, rise.new_price * contract.slice.num_gpus, rise.end_time)
        return rise

    def plan_maintenance(self, machine_id: int, after: float, seconds: float) -> None:
        """Announce that a host will be silent for `seconds`, from `after` seconds on."""
        if machine_id not in self._world.hosts:
            raise Refusal(Refusal.NO_SUCH_HOST, f"There is no host {machine_id}.")
        begin = self._timeline.now + after
        self._notify(machine_id, NoticeKind.MAINTENANCE)
        if after > DOWNTIME_NOTICE_SECONDS:
            before = begin - DOWNTIME_NOTICE_SECONDS
            self._timeline.put(before, lambda: self._notify(machine_id, NoticeKind.UPCOMING_DOWNTIME))
        self._timeline.put(begin, lambda: self._world.set_host_offline(machine_id, begin + seconds))

    def prepay(self, contract: Contract, dollars: float) -> tuple[float, float]:
        """Take a deposit for a contract on demand; give the months it covers and the discount it buys."""
        if contract.bid is not None:
            raise Refusal(Refusal.NOT_A_BID, "Only an on-demand instance can be prepaid.")
        if dollars > self._world.credit:
            raise Refusal(Refusal.INSUFFICIENT_CREDIT, "The account lacks credit.")
        deposit = self._desk.till.deposit(contract, dollars, self._timeline.now)
        months = deposit / (contract.locked_ask * MONTH_HOURS)
        share = min(months / recorded_figures.PREPAID_MONTHS_OF_FULL_DISCOUNT, 1.0)
        self._desk.discount(contract, contract.host.credit_discount * share)
        self._watch(contract)
        return months, contract.discount

    def left_of_deposit(self, contract: Contract) -> float:
        """Return the remaining deposit of a contract, dollars."""
        self._desk.till.settle(self._timeline.now)
        return self._desk.till.left_of_deposit(contract)

    def _watch(self, contract: Contract) -> None:
        """End the discount when the deposit is used up."""
        if contract.ended is not None or not contract.discount:
            return
        left = self.left_of_deposit(contract)
        if left <= 0:
            self._desk.discount(contract, 0.0)
            return
        rate = self._desk.gpu_rate(contract) + self._desk.disk_rate(contract)
        self._timeline.put(self._timeline.now + max(left / rate * HOUR, 1.0), lambda: self._watch(contract))

    def _notify(self, machine_id: int, kind: NoticeKind) -> None:
        for contract in self._desk.live.values():
            if contract.host.machine_id == machine_id:
                self._desk.notify(kind, contract)
