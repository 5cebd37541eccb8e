"""The runway: how long caps and credit last at the running rate.

A daily or monthly cap that lasts until the end of its window is no end, because the next window begins with it unused.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

from agent.decide.limits.committed_spend import CommittedSpend
from agent.decide.limits.credit_watch import Outlook
from agent.decide.limits.limits import Limits
from agent.domain.money import UsdPerHour
from agent.domain.record import budget
from agent.domain.record.budget import EVERYTHING, SUMS, Window

NAMES = {Window.DAY: "the cap per day", Window.MONTH: "the cap per month", Window.TOTAL: "the cap in all"}


def runway(
    standing: CommittedSpend, caps: Limits, credit: Iterable[Outlook], rate: UsdPerHour, now: datetime
) -> tuple[float | None, str]:
    """Return (hours until the first cap or credit is used up at `rate`, its name), or (None, "")."""
    ends = [*_of_caps(standing, caps, rate, now)]
    ends += [
        (each.lasts.total_seconds() / 3600, f"the credit of {each.market}") for each in credit if each.lasts is not None
    ]
    return min(ends) if ends else (None, "")


def _of_caps(standing: CommittedSpend, caps: Limits, rate: UsdPerHour, now: datetime) -> Iterator[tuple[float, str]]:
    hard = caps.hard(EVERYTHING)
    for window in SUMS:
        cap = hard.amount(window)
        if cap is None or rate.micros <= 0:
            continue
        hours = max((cap - standing.spent(window)).micros, 0) / rate.micros
        end = budget.end(window, now)
        if end is None or hours <= (end - now).total_seconds() / 3600:
            yield hours, NAMES[window]
