"""When each workload may run, how long it has run, and how long it may, as JSON and as sentences."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from agent.config.run_times import run_calendar
from agent.decide.accounting import running_time
from agent.decide.operators.notices import Notice
from agent.decide.reconcile.reconcile import METER_EVERY
from agent.decide.run_times import run_windows, running_limits
from agent.domain import span_text
from agent.domain.record.lease import Lease
from agent.domain.work.run_times.run_window import WindowNow
from agent.domain.work.run_times.running_limit import LimitOf
from agent.domain.work.workload import Workload
from agent.ledger.memory import Recollection


def rows(workloads: Iterable[Workload], known: Recollection, now: datetime) -> list[dict[str, Any]]:
    """Return a row for each workload with windows, a first start or a limit of its running time."""
    return [_row(work, known, now) for work in workloads if work.max_running or work.windows or work.not_before]


def notices(workloads: Iterable[Workload], known: Recollection, now: datetime) -> Iterator[Notice]:
    """Yield the same as sentences for the page."""
    for row in rows(workloads, known, now):
        if row["sentence"]:
            yield Notice(row["workload"], "run_times", row["sentence"])


def _row(work: Workload, known: Recollection, now: datetime) -> dict[str, Any]:
    whole = running_limits.limit_of(work, LimitOf.WORKLOAD)
    each = running_limits.limit_of(work, LimitOf.LEASE)
    ran = running_time.of_workload(work, known.leases, known.ran_micros, lambda lease: _seen_until(lease, now))
    window = run_calendar.now(work.windows, now) if work.windows else None
    waits = work.not_before is not None and now < work.not_before
    sentences = [f"begins at {work.not_before:%Y-%m-%d %H:%M} UTC"] if waits else []
    if window is not None:
        sentences.append(_open(window) if window.is_open else run_windows.waits(window))
    sentences += [] if whole is None else [running_limits.Ran(whole, ran).sentence]
    sentences += [] if each is None else [f"each lease may run {span_text.minutes(each.most)}"]
    return {
        "workload": work.name,
        "is_window_open": None if window is None else window.is_open,
        "window_changes_at": None if window is None or window.until is None else window.until.isoformat(),
        "not_before": None if work.not_before is None else work.not_before.isoformat(),
        "ran_seconds": int(ran.total_seconds()),
        "max_running_seconds": None if whole is None else int(whole.most.total_seconds()),
        "max_running_of_a_lease_seconds": None if each is None else int(each.most.total_seconds()),
        "sentence": "; ".join(sentences),
    }


def _seen_until(lease: Lease, now: datetime) -> datetime:
    """Return for how long a lease surely runs: it is metered by each listing, so an older metering means no listing."""
    return min(now, lease.accrued_until + METER_EVERY)


def _open(window: WindowNow) -> str:
    return f"its window is open until {window.spoken}"
