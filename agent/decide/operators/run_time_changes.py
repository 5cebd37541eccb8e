"""New files whose `max_running` would end running leases at once (rule 9)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from agent.decide.accounting import running_time
from agent.decide.run_times import running_limits
from agent.domain.record.lease import Lease
from agent.domain.work.run_times.running_limit import LimitOf
from agent.domain.work.workload import Workload


@dataclass(frozen=True, slots=True)
class RunTimeChange:
    """One such change: its key within the workload's table, its code, and the end of a sentence about that key."""

    key: str
    code: str
    sentence: str


def of(
    work: Workload, before: Workload | None, leases: Iterable[Lease], ran_micros: Mapping[str, int]
) -> Iterator[RunTimeChange]:
    """Yield the changes of a workload that end `leases`, its open ones, some of which may run.

    A limit that the present file, `before`, has as well is no change.
    """
    mine = list(leases)
    running = [lease for lease in mine if not lease.is_down]
    kept = () if before is None else before.max_running
    for limit in work.max_running:
        if limit in kept or not running:
            continue
        if limit.of is LimitOf.WORKLOAD:
            whole = running_time.of_workload(work, mine, ran_micros, lambda lease: lease.accrued_until)
            over = [(running[0], whole)] if whole >= limit.most else []
        else:
            each = ((lease, running_time.of_lease(lease, work, lease.accrued_until)) for lease in running)
            over = [(lease, ran) for lease, ran in each if ran >= limit.most]
        for lease, ran in over[:1]:
            most, whose = running_limits.spoken(limit.most), work.name if limit.of is LimitOf.WORKLOAD else lease.slot
            told = f"{most} is no more than the {running_limits.spoken(ran)} that {whose} has run: it would end"
            sentence = f"{told} {_counted(running)}; `gpubid pause {whose}` or `gpubid release {whose}` first"
            yield RunTimeChange("max_running", "would_end", sentence)


def _counted(running: list[Lease]) -> str:
    return f"{len(running)} running lease{'s' if len(running) > 1 else ''}"
