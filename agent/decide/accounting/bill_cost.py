"""The cost of GPUs by the market's own bill: the price of each of its periods, and outside of them nothing.

Invariants:
1. The bill decides for the time that it covers. Before that time the lease's own rate counts while it runs, and after
   it the present price.
2. No period counts at more than `most`: no winner of an auction pays more than its limit.
"""

from dataclasses import dataclass
from datetime import datetime

from agent.domain import money
from agent.domain.market.price import PaidBill
from agent.domain.money import UsdPerHour


@dataclass(frozen=True, slots=True)
class Billed:
    """A bill, the most that a period of it may cost per hour, and the present price."""

    bill: PaidBill
    most: UsdPerHour
    present: UsdPerHour

    def cost(self, start: datetime, end: datetime, rate: UsdPerHour | None) -> money.Usd:
        """Return the cost of a span; `rate` is the lease's own while it runs as far as looks show, else None."""
        begin = min(max(self.bill.since or start, start), end)
        stop = max(min(self.bill.until, end), begin)
        own = money.ZERO
        if rate is not None:
            own = rate.over((begin - start).total_seconds()) + self.present.over((end - stop).total_seconds())
        return own + money.total(self._periods(begin, stop))

    def _periods(self, begin: datetime, stop: datetime) -> list[money.Usd]:
        return [
            min(period.rate, self.most).over((min(period.end or stop, stop) - max(period.start, begin)).total_seconds())
            for period in self.bill.periods
            if max(period.start, begin) < min(period.end or stop, stop)
        ]
