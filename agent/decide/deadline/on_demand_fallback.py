"""The fallback of work with a deadline: the time to finish it on demand, and the offer for that."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from agent.decide.deadline import deadline_progress as tasks
from agent.decide.deadline import slack
from agent.decide.strategy import Candidate, View
from agent.domain.market.tenure import Tenure
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work import only_copy
from agent.domain.work.workload import Workload

_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class FallbackParams:
    """Time that is kept free: `reserve` for looking and choosing, `start_delay` for a start of on-demand."""

    reserve: timedelta
    start_delay: timedelta


def cheapest_in_time(
    view: View, task: tasks.Task, asks: Iterable[Candidate], lease: Lease | None, numbers: FallbackParams
) -> tuple[slack.Outlook, Candidate | None]:
    """Return the outlook on the cheapest ask that is in time; if none is, on the one that is least late.

    `asks` are ranked, cheapest first; the search ends at the first one in time. Without any ask the outlook is on the
    running lease, else on the reference GPU.
    """
    late: list[tuple[slack.Outlook, Candidate]] = []
    for ask in asks:
        outlook = _on(view, task, ask, lease, numbers)
        if not outlook.is_last_call:
            return outlook, ask
        late.append((outlook, ask))
    return max(late, key=lambda each: each[0].slack) if late else (_on(view, task, None, lease, numbers), None)


def is_too_late(arriving: Lease, work: Workload, outlook: slack.Outlook) -> bool:
    """Return whether a slot must give up its move to interruptible capacity, which has not started, for on-demand."""
    is_bid = arriving.tenure is Tenure.INTERRUPTIBLE and arriving.state is LeaseState.STARTING
    return is_bid and outlook.is_last_call and only_copy.may_leave(arriving, work)


def of_lease(lease: Lease, task: tasks.Task, outlook: slack.Outlook) -> slack.Outlook:
    """Return the outlook on a lease that is on demand already, at its own speed; its slack is the time to spare."""
    is_starting = lease.state is LeaseState.STARTING
    start, restart = (outlook.start, outlook.restart) if is_starting else (0.0, 0.0)
    return replace(outlook, speed=task.of_lease(lease), start=start, restart=restart, reserve=0.0)


def is_too_slow(lease: Lease, task: tasks.Task, outlook: slack.Outlook) -> bool:
    """Return whether a lease that runs on demand will be late while the on-demand offer of the outlook would not."""
    if lease.tenure is not Tenure.ON_DEMAND or lease.state is not LeaseState.RUNNING:
        return False
    return of_lease(lease, task, outlook).slack < 0 and outlook.needed <= outlook.left


def why_too_slow(lease: Lease, task: tasks.Task) -> str:
    """Return why a lease is left for a faster one."""
    hours = task.todo / task.of_lease(lease)
    return f"host {lease.host_id} needs {hours:.2f} h for the rest of the work, and {task.left:.2f} h are left"


def _on(
    view: View, task: tasks.Task, ask: Candidate | None, lease: Lease | None, numbers: FallbackParams
) -> slack.Outlook:
    if ask is not None:
        speed = task.speed(ask.offer.gpu, ask.offer.dlperf)
    else:
        speed = task.of_lease(lease) if lease is not None else 1.0
    loading = ask.reckoning.loading_hours if ask is not None else 0.0
    return slack.Outlook(
        now=view.now,
        left=task.left,
        todo=task.todo,
        speed=speed,
        start=max(numbers.start_delay / _HOUR, task.start_hours, loading),
        restart=tasks.restart_hours(view.workload, task, speed),
        reserve=numbers.reserve / _HOUR,
    )
