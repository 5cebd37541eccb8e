"""Billing: the cost of every contract, as exact sums over the stretches with constant rates.

1. A rate changes only through `rate`; between two changes cost is rate times time, split at midnight UTC.
2. Credit is the sum of grants less the sum of charges; it runs below zero, as the vendor's does.
"""

import dataclasses
import math

from agent.simulator.instances.container_state import Container
from agent.simulator.instances.rented import Rented
from agent.simulator.market_model import Charge

DAY = 86_400.0
HOUR = 3600.0
_GROUP = {"gpu": "gpu", "disk": "disk", "download": "bandwidth", "upload": "bandwidth"}


@dataclasses.dataclass(frozen=True, slots=True)
class Rates:
    """The present rates of a contract: $/h for GPUs and disk; GB/h and $/GB for its downloads."""

    gpu: float = 0.0
    disk: float = 0.0
    down_gb: float = 0.0
    down_price: float = 0.0

    @property
    def per_hour(self) -> float:
        """Return the sum, $/h."""
        return self.gpu + self.disk + self.down_gb * self.down_price


@dataclasses.dataclass(frozen=True, slots=True)
class Turn:
    """A rate from an instant on, and whether the container ran then. `is_end`: the contract has ended."""

    at: float
    contract_id: int
    rates: Rates
    is_running: bool
    holds_gpu: bool
    is_end: bool = False


@dataclasses.dataclass(slots=True)
class _Line:
    quantity: float
    amount: float
    start: float
    end: float


@dataclasses.dataclass(slots=True)
class _Meter:
    contract: Rented
    rates: Rates
    since: float
    lines: dict[tuple[float, str, float], _Line] = dataclasses.field(default_factory=dict)


class Till:
    """Charges contracts and knows the account's credit."""

    def __init__(self, credit: float, *, span: float = DAY) -> None:
        """Grant the first credit. `span` is the length of the UTC period that one charge covers, seconds."""
        self._span = span
        self._granted = credit
        self._closed = 0.0  # charged to contracts that ended
        self._deposits: dict[
            int, tuple[float, float]
        ] = {}  # by contract: the dollars charged at its last deposit, and the deposit left then
        self._meters: dict[int, _Meter] = {}
        self._ended: dict[int, _Meter] = {}
        self.turns: list[Turn] = []

    def rate(self, contract: Rented, rates: Rates, now: float) -> None:
        """Set a contract's rates from now on."""
        self._note(contract, rates, now)
        meter = self._meters.get(contract.contract_id)
        if meter is None:
            self._meters[contract.contract_id] = _Meter(contract, rates, now)
            return
        if meter.rates != rates:
            _settle(meter, now, self._span)
            meter.rates = rates

    def close(self, contract: Rented, now: float) -> None:
        """Charge a contract for the last time."""
        self.turns.append(Turn(now, contract.contract_id, Rates(), is_running=False, holds_gpu=False, is_end=True))
        self._deposits.pop(contract.contract_id, None)
        meter = self._meters.pop(contract.contract_id)
        _settle(meter, now, self._span)
        self._ended[contract.contract_id] = meter
        self._closed += math.fsum(contract.charged.values())

    def _note(self, contract: Rented, rates: Rates, now: float) -> None:
        holds = contract.holds_gpu
        is_running = holds and contract.container is Container.RUNNING and not contract.is_offline
        self.turns.append(Turn(now, contract.contract_id, rates, is_running=is_running, holds_gpu=holds))

    def charged(self, now: float) -> float:
        """Return every dollar charged so far."""
        self.settle(now)
        return self._closed + math.fsum(sum(meter.contract.charged.values()) for meter in self._meters.values())

    def credit(self, now: float) -> float:
        """Return the credit that is left."""
        charged = self.charged(now)
        held = sum(self.left_of_deposit(meter.contract) for meter in self._meters.values()) if self._deposits else 0.0
        return self._granted - charged - held

    def deposit(self, contract: Rented, dollars: float, now: float) -> float:
        """Reserve dollars of the credit for one contract; return its whole deposit."""
        self.settle(now)
        left = self.left_of_deposit(contract) + dollars
        self._deposits[contract.contract_id] = (math.fsum(contract.charged.values()), left)
        return left

    def left_of_deposit(self, contract: Rented) -> float:
        """Return the remaining deposit of a contract, as of the last settling."""
        before, paid = self._deposits.get(contract.contract_id, (0.0, 0.0))
        return max(paid - (math.fsum(contract.charged.values()) - before), 0.0)

    def grant(self, dollars: float) -> None:
        """Add to the credit, or take from it."""
        self._granted += dollars

    def empty_at(self, now: float) -> float:
        """Return when the credit is gone if nothing changes; inf if never."""
        burn = math.fsum(meter.rates.per_hour for meter in self._meters.values())
        return now + max(self.credit(now), 0.0) / burn * HOUR if burn > 0 else math.inf

    def settle(self, now: float) -> None:
        """Bring every contract's charges up to now."""
        for meter in self._meters.values():
            if meter.since < now:
                _settle(meter, now, self._span)

    def billing(self) -> list[int]:
        """Return the ids of the contracts that cost something this second."""
        return [contract_id for contract_id, meter in self._meters.items() if meter.rates.per_hour > 0]

    def charges(self, since: float, until: float, now: float) -> list[Charge]:
        """Return the charges of the UTC days that touch the span, by day, contract and kind."""
        self.settle(now)
        found = [
            Charge(
                contract_id=contract_id,
                label=meter.contract.label,
                machine_id=meter.contract.host.machine_id,
                day=day,
                kind=kind,
                rate=rate,
                quantity=line.quantity,
                amount=line.amount,
                start=line.start,
                end=line.end,
            )
            for contract_id, meter in (*self._ended.items(), *self._meters.items())
            for (day, kind, rate), line in meter.lines.items()
            if day + self._span > since and day <= until and line.amount > 0
        ]
        return sorted(found, key=lambda charge: (charge.day, charge.contract_id, charge.kind, charge.start))


def _settle(meter: _Meter, now: float, span: float) -> None:
    """Charge a meter up to now, one UTC day, or other span, at a time."""
    while meter.since < now:
        day = math.floor(meter.since / span) * span
        until = min(now, day + span)
        hours = (until - meter.since) / HOUR
        rates = meter.rates
        _add(meter, day, "gpu", rates.gpu, hours, until)
        _add(meter, day, "disk", rates.disk, hours, until)
        if rates.down_gb:
            meter.contract.down_gb += rates.down_gb * hours
            _add(meter, day, "download", rates.down_price, rates.down_gb * hours, until)
        meter.since = until


def _add(meter: _Meter, day: float, kind: str, rate: float, quantity: float, until: float) -> None:
    if rate <= 0.0 or quantity <= 0.0:
        return
    line = meter.lines.get((day, kind, rate))
    if line is None:
        line = meter.lines[day, kind, rate] = _Line(0.0, 0.0, meter.since, until)
    amount = rate * quantity
    line.quantity += quantity
    line.amount += amount
    line.end = until
    meter.contract.charged[_GROUP[kind]] += amount
