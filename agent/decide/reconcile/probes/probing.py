"""The instances to probe now: services that run, and logs that may report the end of the work."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from agent.decide.reconcile.guards import guard_refusal
from agent.decide.reconcile.probes import liveness
from agent.domain.fleet import Fleet
from agent.domain.market.instance import Instance
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.deadline import Deadline, ProgressSign
from agent.domain.work.ready_sign import Readiness, ReadySign
from agent.domain.work.workload import Workload, WorkloadKind

T = TypeVar("T", str, int)
"""A line of a log, or its hash."""


@dataclass(frozen=True, slots=True)
class Target:
    """One instance to probe. `ready` is empty if nothing more is to be learnt of it; `since` is when its state began.

    `place` is the address of its port as HOST:PORT, empty while unknown; `progress_place` is that of its progress page.
    `is_over`: the container of a batch ended, so its log is read once more, at once, for the reason. `is_silent`: a
    guard should report for it and never has. `is_live`: it was ready, and is probed whether it still answers.
    `is_watched`: its log is read for signs of progress. `page_answers`: what its market saw that asks the page itself;
    None where no market does. `page_stands`: how long it says so until its next request is answered.
    """

    instance_id: str
    since: datetime
    ready: Readiness
    place: str = ""
    done_line: str = ""
    is_over: bool = False
    deadline: Deadline | None = None
    progress_place: str = ""
    is_silent: bool = False
    is_live: bool = False
    is_watched: bool = False
    page_answers: bool | None = None
    page_stands: timedelta = timedelta()
    has_log: bool = True
    """Whether its market shows a container, and so a log of it."""

    @property
    def needs_log(self) -> bool:
        """Whether its log must be read, which costs the market more than the probe of a port."""
        reports_progress = self.deadline is not None and self.deadline.sign is ProgressSign.LOG
        asks = self.ready.sign is ReadySign.LOG or self.is_silent
        return bool(self.done_line) or self.is_over or asks or reports_progress or self.is_watched

    @property
    def has_page(self) -> bool:
        """Whether its progress is on a page."""
        return self.deadline is not None and self.deadline.sign is ProgressSign.HTTP and not self.is_over


def news(before: Sequence[T], now: Sequence[T]) -> Sequence[T]:
    """Return the lines after `before`: both are the end of the same log."""
    for known in range(min(len(before), len(now)), 0, -1):
        if before[-known:] == now[:known]:
            return now[known:]
    return now


def targets(fleet: Fleet, market: str) -> tuple[Target, ...]:
    """Return the targets on one market, in the order of the leases."""
    view = fleet.markets.get(market)
    if view is None or not view.is_fresh:
        return ()
    targets_now = (_target(fleet, lease) for lease in fleet.leases if lease.market == market and not lease.is_held)
    return tuple(target for target in targets_now if target is not None)


def may_log(lease: Lease) -> bool:
    """Return whether a lease has a container whose log may report on its work.

    A lease that ran may look like starting at every look: some markets restart an ended container again
    and again.
    """
    return lease.state in {LeaseState.RUNNING, LeaseState.EXITED} or (
        lease.state is LeaseState.STARTING and lease.has_run
    )


def _target(fleet: Fleet, lease: Lease) -> Target | None:
    work = fleet.workload(lease.slot.workload)
    if work is None or not may_log(lease):
        return None
    is_batch = work.kind is WorkloadKind.BATCH
    is_over = is_batch and lease.state is LeaseState.EXITED
    done_line = work.done_line if is_batch else ""
    is_awaited = work.ready.is_asked and lease.ready_since is None and lease.state is LeaseState.RUNNING
    is_awaited = is_awaited and lease.unhealthy_since is None
    deadline = work.deadline if work.deadline is not None and work.deadline.is_asked else None
    is_silent = guard_refusal.is_awaited(fleet, lease, work)
    is_live = liveness.is_watched(work, lease)
    is_watched = work.stalled.is_asked and lease.state is LeaseState.RUNNING
    is_asked = is_awaited or is_live or bool(done_line) or is_over or is_silent or is_watched
    if not is_asked and deadline is None:
        return None
    ready = work.ready if is_awaited or is_live else Readiness()
    since = lease.state_since if lease.state is LeaseState.EXITED else lease.began
    row = _row(fleet, lease)
    place = place_of(row.ports if row is not None else "", work.ready.port)
    page = place_of(row.ports if row is not None else "", deadline.port) if deadline is not None else ""
    return Target(
        lease.instance_id,
        since,
        ready,
        place,
        done_line,
        is_over,
        deadline,
        page,
        is_silent,
        is_live,
        is_watched,
        *_seen_by_market(row, work),
        has_log=fleet.rules_of(lease.market).shows_container,
    )


def _seen_by_market(row: Instance | None, work: Workload) -> tuple[bool | None, timedelta]:
    if row is None or work.ready.sign is not ReadySign.HTTP:
        return None, timedelta()
    return row.page_answers, row.page_stands


def _row(fleet: Fleet, lease: Lease) -> Instance | None:
    view = fleet.markets.get(lease.market)
    return view.instance(lease.instance_id) if view is not None else None


def place_of(ports: str, port: int) -> str:
    """Return the outside address of a container's port, as HOST:PORT, or nothing."""
    for entry in ports.split():
        name, _, place = entry.partition("=")
        if name == f"{port}/tcp":
            return place
    return ""
