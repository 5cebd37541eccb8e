"""Figures of a workload's checkpoints that guards measured, and when they replace the file's figures.

A host may lie in every figure, and one owner may have many hosts, so each owner has one voice. The figure is the median
over owners of the median over their hosts; a host's figure is the median over its leases. If the owner is unknown, the
host has the voice.

Invariants:
1. No measured figure makes us pay more. A restore that took longer than in the file changes nothing. A shorter one
   makes an interruption cheaper, so that lower bids and less stable hosts become worth their price.
2. The time of a checkpoint only changes the interval that the guard is given. The factor is at most sqrt(`MOST_TIMES`),
   since Young's interval grows with the root of that time. Without `takes` in the file nothing changes.
3. Reserves of deadlines, raises and moves after a loss, voluntary moves, and committed spend use only the file. There a
   lower figure could make us pay more or be late, and a higher one would pay for on-demand too early.
"""

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from agent.domain.fleet import Fleet
from agent.domain.market.host import HostKey, HostRecord, OwnerKey, voice
from agent.domain.record.guard_figures import GuardFigures
from agent.domain.record.lease import Lease
from agent.domain.work.workload import Workload

FEWEST_VOICES = 3
"""With fewer voices no figure is used. Of three, a single lie does not set the median."""
MOST_TIMES = 4.0
Owners = Mapping[HostKey, OwnerKey]
UNITS = {"took_seconds": "s", "upload_seconds": "s", "restore_seconds": "s", "checkpoint_bytes": "B"}


@dataclass(frozen=True, slots=True)
class Measured:
    """The median of one figure, with the numbers of leases, hosts and owners behind it."""

    figure: float
    """The median, in the unit of `UNITS`."""
    leases: int
    hosts: int
    voices: int
    """The number of owners of these hosts; a host without a known owner counts as one."""

    @property
    def is_believed(self) -> bool:
        """Whether hosts of enough owners reported it."""
        return self.voices >= FEWEST_VOICES


def of(fleet: Fleet, work: Workload) -> Mapping[str, Measured]:
    """Return the measured figures of a workload, by the names in `UNITS`; figures that nobody measured are missing."""
    return of_figures(fleet.guard_figures.values(), work, _owners(fleet) if work.guard is not None else {})


def of_figures(reported: Iterable[GuardFigures], work: Workload, owners: Owners) -> Mapping[str, Measured]:
    """Return the measured figures of a workload from the figures of any leases on hosts of these owners."""
    names = {work.name, work.was}
    return _medians((each for each in reported if each.slot.workload in names), owners)


def believed(work: Workload, measured: Mapping[str, Measured]) -> Workload:
    """Return a workload with the checkpoint figures that its prices and its guard's interval are calculated from."""
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
    """Return the result of `believed` for every workload, by name, in one pass over the figures of all leases."""
    by_name: dict[str, list[GuardFigures]] = {}
    if any(work.guard is not None for work in fleet.workloads):
        for figures in fleet.guard_figures.values():
            by_name.setdefault(figures.slot.workload, []).append(figures)
    found, owners = {}, _owners(fleet) if by_name else {}
    for work in fleet.workloads:
        mine = [figures for name in {work.name, work.was} for figures in by_name.get(name, ())]
        found[work.name] = believed(work, _medians(mine, owners) if work.guard is not None else {})
    return found


def used(reckoned: Workload, work: Workload) -> frozenset[str]:
    """Return the names of the measured figures that differ from the file's and replace them."""
    now, promise = reckoned.checkpoint, work.checkpoint
    changed = {"restore_seconds": now.restore != promise.restore, "took_seconds": now.takes != promise.takes}
    return frozenset(name for name, is_changed in changed.items() if is_changed)


def _owners(fleet: Fleet) -> Owners:
    return owners_of(fleet.hosts.values(), fleet.leases)


def owners_of(hosts: Iterable[HostRecord], leases: Iterable[Lease]) -> Owners:
    """Return the owners of hosts, as far as they are known."""
    recorded = {record.key: record.owner for record in hosts}
    rented = {lease.host: lease.owner for lease in leases}
    return {host: owner for host, owner in (*recorded.items(), *rented.items()) if owner.is_known}


def _medians(reported: Iterable[GuardFigures], owners: Owners) -> Mapping[str, Measured]:
    found: dict[str, dict[HostKey, list[float]]] = {}
    for each in reported:
        for name in UNITS:
            figure = getattr(each, name)
            if figure is not None:
                by_host = found.setdefault(name, {})
                by_host.setdefault(HostKey(each.market, each.host_id), []).append(float(figure))
    return {name: _median(by_host, owners) for name, by_host in found.items()}


def _median(by_host: Mapping[HostKey, list[float]], owners: Owners) -> Measured:
    voices: dict[str, list[float]] = {}
    for host, figures in by_host.items():
        voices.setdefault(voice(host, owners.get(host)), []).append(statistics.median(figures))
    figure = statistics.median(statistics.median(hosts) for hosts in voices.values())
    return Measured(figure, sum(map(len, by_host.values())), len(by_host), len(voices))
