"""The cost since the last metering counts in the days and months in which it came about, in whatever is shown."""

import pytest

from agent.decide.accounting import unmetered_cost
from agent.decide.accounting.volume_metering import Burden
from agent.domain.money import FREE
from agent.domain.record.lease import Bills
from tests.support import builders
from tests.support.builders import NOW


@pytest.mark.parametrize(("days", "today", "month"), [(0.25, 6, 6), (3, 12, 72), (30, 12, 468)])
def test_each_day_and_month_counts_its_part(days: float, today: int, month: int) -> None:
    """It is noon of the twentieth."""
    rate, since = builders.per_hour(1), builders.ago(days=days)
    lease = builders.lease(bills=Bills.GPU_AND_DISK, gpu_rate=rate, disk_rate=FREE, accrued_until=since)
    volume = Burden("train", "vast", rate, since, rate.over(days * 86_400))
    for sums in (unmetered_cost.of([lease], [], NOW), unmetered_cost.of([], [volume], NOW)):
        assert (sums.today, sums.month) == (builders.usd(today), builders.usd(month))
        assert sums.total == rate.over(days * 86_400)
