"""What the network volumes of the workloads cost: a figure of the operator, counted in every budget that covers it.

A volume bills whether or not anything runs, and no lease has it, so the ledger's sums lack it. When it was made is not
known, so it counts since the day and the month began; a budget over the whole time does not count it.
"""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from agent.domain.fleet import Spend
from agent.domain.money import FREE, UsdPerHour
from agent.domain.record import budget
from agent.domain.record.budget import Scope
from agent.domain.work.workload import Workload


class VolumeCost(msgspec.Struct, frozen=True):
    """One volume's rate per hour, its cost in this day and month, and the market and workloads that it belongs to."""

    rate: UsdPerHour
    spend: Spend
    scopes: tuple[Scope, ...]


def of(workloads: Iterable[Workload], now: datetime) -> list[VolumeCost]:
    """Return the cost of each volume that has a price. One that several workloads name counts once, and whole in each.

    Of two prices the higher one counts.
    """
    named: dict[str, list[Workload]] = {}
    for work in workloads:
        if work.requirements.network_volume and work.network_volume_rate > FREE:
            named.setdefault(work.requirements.network_volume, []).append(work)
    return [_cost(users, now) for users in named.values()]


def _cost(users: list[Workload], now: datetime) -> VolumeCost:
    rate = max(work.network_volume_rate for work in users)
    today, month = (rate.over((now - begin(now)).total_seconds()) for begin in (budget.day, budget.month))
    markets = {market for work in users for market in work.markets if len(work.markets) == 1}
    scopes = [*map(budget.of_market, sorted(markets)), *(budget.of_workload(work.name) for work in users)]
    return VolumeCost(rate, Spend(today, month), tuple(scopes))
