"""New files whose `max_running` or `windows` would end running leases at once (rule 9)."""

from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.decide.accounting import running_time
from agent.decide.operators import ending_words
from agent.decide.run_times import run_windows
from agent.domain import span_text
from agent.domain.record.lease import Lease
from agent.domain.work.run_times.run_window import WindowNow
from agent.domain.work.run_times.running_limit import LimitOf, RunningLimit
from agent.domain.work.workload import Workload


@dataclass(frozen=True, slots=True)
class RunTimeChange:
    """One such change: its key within the workload's table, its code, and the end of a sentence about that key."""

    key: str
    code: str
    sentence: str


@dataclass(frozen=True, slots=True)
class SoFar:
    """How long leases have run: ended ones by workload, as the ledger has it, and open ones."""

    ended_micros: Mapping[str, int]
    now: datetime | None = None
    """Up to when open leases have run; None: to their last metering, which may be five minutes ago."""

    def of_workload(self, work: Workload, leases: Iterable[Lease]) -> timedelta:
        """Return the running time of all leases of a workload."""
        return running_time.of_workload(work, leases, self.ended_micros, self._until)

    def of_lease(self, lease: Lease, work: Workload) -> timedelta:
        """Return the running time of one lease."""
        return running_time.of_lease(lease, work, self._until(lease))

    def _until(self, lease: Lease) -> datetime:
        return self.now or lease.accrued_until


def of(
    work: Workload,
    before: Workload | None,
    leases: Iterable[Lease],
    ran: SoFar,
    window: WindowNow | None,
) -> Iterator[RunTimeChange]:
    """Yield the changes of a workload that end `leases`, its open ones, some of which may run.

    A limit or a window that the present file, `before`, has as well is no change. `window` is where the present instant
    is in the new windows, if there are any.
    """
    mine = list(leases)
    running = [lease for lease in mine if not lease.is_down]
    if not running:
        return
    if before is None or before.windows != work.windows:
        yield from _of_windows(work, running, window)
    for limit in work.max_running:
        if before is None or limit not in before.max_running:
            yield from _of_limit(work, limit, mine, ran)


def _of_windows(work: Workload, running: list[Lease], window: WindowNow | None) -> Iterator[RunTimeChange]:
    if window is not None and not window.is_open:
        told = f"are closed now: the workload {run_windows.waits(window)}, which would end {_counted(running)}"
        fix = ending_words.stopped(work.name, is_kept=True)
        yield RunTimeChange("windows", "would_end", f"{told}; {fix}")


def _of_limit(work: Workload, limit: RunningLimit, mine: list[Lease], ran: SoFar) -> Iterator[RunTimeChange]:
    running = [lease for lease in mine if not lease.is_down]
    if limit.of is LimitOf.WORKLOAD:
        whole = ran.of_workload(work, mine)
        over = [(work.name, whole)] if whole >= limit.most else []
    else:
        each = ((str(lease.slot), ran.of_lease(lease, work)) for lease in running)
        over = [(name, time) for name, time in each if time >= limit.most]
    for name, time in over[:1]:
        spent, most = span_text.minutes(time), span_text.minutes(limit.most)
        ended = running if limit.of is LimitOf.WORKLOAD else over
        told = f"{most} is no more than the {spent} that {name} has run: it would end {_counted(ended)}"
        yield RunTimeChange("max_running", "would_end", f"{told}; {ending_words.stopped(name, is_kept=True)}")


def _counted(running: Sized) -> str:
    return f"{len(running)} running lease{'s' if len(running) > 1 else ''}"
