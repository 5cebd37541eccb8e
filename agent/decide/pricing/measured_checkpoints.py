"""What guards measured of a workload's checkpoints, and how far that stands in for the figures of the file.

A host may lie in every figure, so one host has one voice: the median over hosts of the median of each host's leases.

Invariants:
1. No measured figure makes us pay more. A restore that took longer than the file says changes nothing; a shorter one
   makes an interruption cheaper, so that lower bids and less lasting hosts become worth their price.
2. The time of a checkpoint only moves the interval that the guard is told, and by no more than a factor of
   sqrt(`MOST_TIMES`): Young's interval grows with the root of that time. Without `takes` in the file nothing moves.
3. Reserves of deadlines, raises and moves after a loss, voluntary moves, and committed spend are reckoned by the file
   alone: there a lower figure would let us pay more or come too late, and a higher one would pay for on-demand too
   early.
"""

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from agent.domain.fleet import Fleet
from agent.domain.market.host import HostKey
from agent.domain.record.guard_figures import GuardFigures
from agent.domain.work.workload import Workload

FEWEST_HOSTS = 3
"""Fewer hosts decide nothing: of three, one that lies does not set the median."""
MOST_TIMES = 4.0
UNITS = {"took_seconds": "s", "upload_seconds": "s", "restore_seconds": "s", "checkpoint_bytes": "B"}


@dataclass(frozen=True, slots=True)
class Measured:
    """The median of one figure, from so many leases on so many hosts."""

    figure: float
    leases: int
    hosts: int

    @property
    def is_believed(self) -> bool:
        """Whether enough hosts told it."""
        return self.hosts >= FEWEST_HOSTS


def of(fleet: Fleet, work: Workload) -> Mapping[str, Measured]:
    """Return what was measured of a workload, by the names in `UNITS`; what nobody measured is not in it."""
    names = {work.name, work.was}
    return _medians(told for told in fleet.guard_figures.values() if told.slot.workload in names)


def believed(work: Workload, measured: Mapping[str, Measured]) -> Workload:
    """Return a workload with the checkpoint figures that its prices and its advice are reckoned by."""
    if work.guard is None:
        return work
    promise = work.checkpoint
    restore, took = measured.get("restore_seconds"), measured.get("took_seconds")
    if restore is not None and restore.is_believed:
        promise = replace(promise, restore=min(promise.restore, timedelta(seconds=restore.figure)))
    if took is not None and took.is_believed and promise.takes:
        least, most = promise.takes / MOST_TIMES, promise.takes * MOST_TIMES
        promise = replace(promise, takes=min(max(timedelta(seconds=took.figure), least), most))
    return work if promise == work.checkpoint else replace(work, checkpoint=promise)


def all_believed(fleet: Fleet) -> Mapping[str, Workload]:
    """Return every workload as `believed` has it, by its name: one pass over the figures of all leases."""
    by_name: dict[str, list[GuardFigures]] = {}
    if any(work.guard is not None for work in fleet.workloads):
        for told in fleet.guard_figures.values():
            by_name.setdefault(told.slot.workload, []).append(told)
    found = {}
    for work in fleet.workloads:
        mine = [told for name in {work.name, work.was} for told in by_name.get(name, ())]
        found[work.name] = believed(work, _medians(mine) if work.guard is not None else {})
    return found


def used(reckoned: Workload, work: Workload) -> frozenset[str]:
    """Return the names of the measured figures that change what is reckoned."""
    now, promise = reckoned.checkpoint, work.checkpoint
    changed = {"restore_seconds": now.restore != promise.restore, "took_seconds": now.takes != promise.takes}
    return frozenset(name for name, is_changed in changed.items() if is_changed)


def _medians(told: Iterable[GuardFigures]) -> Mapping[str, Measured]:
    found: dict[str, dict[HostKey, list[float]]] = {}
    for each in told:
        for name in UNITS:
            figure = getattr(each, name)
            if figure is not None:
                by_host = found.setdefault(name, {})
                by_host.setdefault(HostKey(each.market, each.host_id), []).append(float(figure))
    return {name: _median(by_host) for name, by_host in found.items()}


def _median(by_host: Mapping[HostKey, list[float]]) -> Measured:
    figure = statistics.median(statistics.median(figures) for figures in by_host.values())
    return Measured(figure, sum(map(len, by_host.values())), len(by_host))
