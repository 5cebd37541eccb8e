"""The cost since the last metering, by the UTC days and months in which it came about.

What was unclear for days would spend today's budget for all of them, and work that is well would be stopped for it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from agent.decide.accounting import meter
from agent.decide.accounting.volume_metering import Burden
from agent.domain import money
from agent.domain.money import Usd
from agent.domain.record.lease import Lease

_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Owed:
    """A cost that began at `since` and goes on: what was not metered of a lease, a volume or a doubt."""

    since: datetime
    amount: Usd

    def after(self, first: datetime, now: datetime) -> Usd:
        """Return the part that came about from `first` to `now`, rounded up."""
        if self.since >= first:
            return self.amount
        # A product of money and a timedelta has no room for more than some thousand years.
        late, whole = (now - first) // _MICROSECOND, (now - self.since) // _MICROSECOND
        return Usd(-(-self.amount.micros * late // whole))


@dataclass(frozen=True, slots=True)
class Sums:
    """A cost so far, in the present UTC day, the present month, and altogether."""

    today: Usd
    month: Usd
    total: Usd


def sums(owed: Iterable[Owed], now: datetime) -> Sums:
    """Return the sums at `now`."""
    day, parts = datetime(now.year, now.month, now.day, tzinfo=UTC), tuple(owed)
    today = money.total(each.after(day, now) for each in parts)
    month = money.total(each.after(day.replace(day=1), now) for each in parts)
    return Sums(today, month, money.total(each.amount for each in parts))


def of(leases: Iterable[Lease], volumes: Iterable[Burden], now: datetime) -> Sums:
    """Return the cost of open leases and of volumes since their last metering, at their present rates."""
    owed = [Owed(lease.accrued_until, meter.outstanding([lease], now)) for lease in leases]
    return sums([*owed, *(Owed(burden.since, burden.owed) for burden in volumes)], now)
