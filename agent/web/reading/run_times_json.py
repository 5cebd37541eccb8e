"""When each workload may run, how long it has run, and how long it may, as JSON and as sentences."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from agent.decide.accounting import running_time
from agent.decide.run_times import running_limits
from agent.domain.work.run_times.running_limit import LimitOf
from agent.domain.work.workload import Workload
from agent.ledger.memory import Recollection


def rows(workloads: Iterable[Workload], known: Recollection, now: datetime) -> list[dict[str, Any]]:
    """Return a row for each workload whose running time is limited."""
    return [_row(work, known, now) for work in workloads if work.max_running]


def _row(work: Workload, known: Recollection, now: datetime) -> dict[str, Any]:
    whole = running_limits.limit_of(work, LimitOf.WORKLOAD)
    each = running_limits.limit_of(work, LimitOf.LEASE)
    ran = running_time.of_workload(work, known.leases, known.ran_micros, lambda _: now)
    sentences = [] if whole is None else [running_limits.Ran(whole, ran).sentence]
    sentences += [] if each is None else [f"each lease may run {running_limits.spoken(each.most)}"]
    return {
        "workload": work.name,
        "ran_seconds": int(ran.total_seconds()),
        "max_running_seconds": None if whole is None else int(whole.most.total_seconds()),
        "max_running_of_a_lease_seconds": None if each is None else int(each.most.total_seconds()),
        "sentence": "; ".join(sentences),
    }
