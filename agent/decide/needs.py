"""The workloads that need offers now: only a slot without a running lease is a reason to use search rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from agent.decide.deadline import deadline_progress as tasks
from agent.decide.moves import recovery
from agent.decide.operators import operator_holds, reload
from agent.domain.fleet import Fleet
from agent.domain.market.host import HostKey
from agent.domain.market.tenure import Tenure
from agent.domain.record import hold
from agent.domain.record.hold import EVERYTHING, Holds, Word
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.workload import Workload

PRESSED_HOURS = 1.0
"""With less slack than this, on-demand prices must be known for the last call: it spans reserve and start."""
PRESSED_EVERY = 120.0
"""Seconds between searches then: as long as an offer may be used."""
DEAR_SHARE = 0.5
"""For a lease at or above this share of the slot's worth, better offers are searched more often. By rehearsals."""
DOWN = frozenset({LeaseState.PAUSED, LeaseState.OFFLINE, LeaseState.RELEASING})


@dataclass(frozen=True, slots=True)
class Need:
    """A workload that has to choose.

    `key` changes when there is a new choice to make; `held_hosts` are those of its paused leases, whose own price
    decides whether to stay.
    """

    workload: Workload
    key: tuple[str, ...]
    held_hosts: tuple[HostKey, ...]


def needs(fleet: Fleet) -> tuple[Need, ...]:
    """Return the workloads with a choice to make, in the order of the configuration."""
    holds = hold.in_force(fleet.holds, fleet.now)
    if (Word.KILL, EVERYTHING) in holds:
        return ()
    found = (_need(fleet, work, holds) for work in fleet.workloads)
    return tuple(need for need in found if need is not None)


def dear(fleet: Fleet) -> frozenset[str]:
    """Return the workloads that pay for on-demand, or much of their worth: more searches may find cheaper offers."""
    return frozenset(
        lease.slot.workload
        for lease in fleet.leases
        if lease.state is LeaseState.RUNNING
        and not lease.is_held
        and _is_dear(lease, fleet.workload(lease.slot.workload))
    )


def _is_dear(lease: Lease, work: Workload | None) -> bool:
    if lease.tenure is Tenure.ON_DEMAND:
        return True
    return work is not None and lease.gpu_rate + lease.disk_rate >= work.price_of(lease.gpu).scaled(DEAR_SHARE)


def _need(fleet: Fleet, work: Workload, holds: Holds) -> Need | None:
    key: list[str] = []
    hosts: list[HostKey] = []
    for place in work.places:
        if operator_holds.standstill(fleet, place, holds) is not None:
            continue
        leases = fleet.leases_of(place)
        is_pressed = _is_pressed(fleet, work, leases)
        may_move = len(leases) == 1 and (is_pressed or _is_left(leases[0], work, fleet.now))
        is_served = any(not _is_down(lease) for lease in leases) and not may_move
        if is_served or fleet.paying_intent(place) is not None:
            continue
        # Near the last call prices are asked again every few minutes, whatever was asked before.
        key += [f"{int(fleet.monotonic // PRESSED_EVERY)}"] if is_pressed else []
        key += [f"{place}", *(f"{lease.lease_id}@{lease.state_since.isoformat()}" for lease in leases)]
        hosts += [lease.host for lease in leases if lease.state is LeaseState.PAUSED]
    return Need(work, tuple(key), tuple(hosts)) if key else None


def _is_pressed(fleet: Fleet, work: Workload, leases: Sequence[Lease]) -> bool:
    """Return whether a deadline may soon force a slot to on-demand capacity that it does not have yet."""
    task = tasks.of(fleet, work)
    if task is None or task.todo <= 0 or any(lease.tenure is Tenure.ON_DEMAND and lease.is_live for lease in leases):
        return False
    speed = min([task.of_lease(lease) for lease in leases] or [1.0])
    needed = task.todo / speed + tasks.restart_hours(work, task, speed) + task.start_hours
    return task.left - needed < PRESSED_HOURS


def _is_left(lease: Lease, work: Workload, now: datetime) -> bool:
    """Return whether a lease will be moved while it runs."""
    return reload.moves(lease, work) or (lease.state is LeaseState.RUNNING and recovery.ends_soon(lease, now))


def _is_down(lease: Lease) -> bool:
    return lease.state in DOWN
