"""Money by workload: its present rate, its spend today, and the cost of a useful hour today."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

from agent.decide.accounting import unmetered_cost, volume_metering
from agent.domain import money
from agent.domain.record.account import HOUR
from agent.domain.record.lease import Lease
from agent.domain.record.shadow_account import Counted
from agent.ledger.memory import Recollection
from agent.markets.text import clean
from agent.web.feed.money_model import WorkloadMoney

NOTHING = Counted()


def by_workload(known: Recollection, metered: Mapping[str, Counted], now: datetime) -> list[WorkloadMoney]:
    """Return a row for each workload that bills now or spent today. `metered` is today's spend in the ledger."""
    leases: dict[str, list[Lease]] = defaultdict(list)
    for lease in known.leases:
        leases[lease.slot.workload].append(lease)
    volumes: dict[str, list[volume_metering.Burden]] = defaultdict(list)
    for burden in volume_metering.burdens(known.volumes, now):
        volumes[burden.workload].append(burden)
    return [
        _row(name, leases.get(name, []), volumes.get(name, []), metered.get(name, NOTHING), now)
        for name in sorted({*leases, *volumes, *metered})
    ]


def _row(
    name: str, leases: list[Lease], volumes: list[volume_metering.Burden], metered: Counted, now: datetime
) -> WorkloadMoney:
    hours = metered.useful / HOUR
    rates = [*(lease.billing_rate for lease in leases), *(burden.rate for burden in volumes)]
    owed = unmetered_cost.of(leases, volumes, now)
    return WorkloadMoney(
        workload=clean(name),
        dollars_per_hour=money.total_rate(rates).dollars,
        today_dollars=(metered.spent + owed.today).dollars,
        useful_hours=round(hours, 4),
        dollars_per_useful_hour=round(metered.spent.dollars / hours, 6) if hours > 0 else None,
    )
