"""The remaining work of a deadline job, and the speed of its leases: reported and measured, never guessed."""

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from agent.decide.deadline import progress_facts, reference_speed
from agent.domain.fleet import Fleet
from agent.domain.market.gpu import GpuModel
from agent.domain.money import UsdPerHour
from agent.domain.record.lease import Lease
from agent.domain.work.deadline import Deadline, Speed, Start
from agent.domain.work.workload import CheckpointPlace, Workload

PRIOR_HOURS = 0.5
"""Weight of the DLPerf ratio, in measured hours. Assumed: more than half an hour of measurement outweighs a
benchmark."""
LEAST_SPEED = 0.01
START_QUANTILE = 0.95
FEWEST_STARTS = 5
"""With fewer recorded starts, the time of a slow start is unknown."""
_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Task:
    """The work of one deadline at one instant; hours of work are on the reference GPU.

    `done` are the reported hours. `since` is when the workload was first seen. `typical` is the DLPerf of a slice by
    model. `start_hours` is the time within which nearly every first start was ready, 0 while too few are known.
    """

    deadline: Deadline
    now: datetime
    done: float = 0.0
    since: datetime | None = None
    measured: Mapping[GpuModel, Speed] = field(default_factory=dict)
    typical: Mapping[GpuModel, float] = field(default_factory=dict)
    start_hours: float = 0.0

    @property
    def todo(self) -> float:
        """Hours of work that are left."""
        return max(self.deadline.hours - self.done, 0.0)

    @property
    def left(self) -> float:
        """Hours until the deadline; negative when it has passed."""
        return (self.deadline.by - self.now) / _HOUR

    @property
    def span(self) -> float:
        """Hours from the first sight of the workload to its deadline."""
        return (self.deadline.by - (self.since or self.now)) / _HOUR

    @property
    def line(self) -> float:
        """The share of the time from first sight to deadline that has passed.

        Uniform Progress wants this share of work done.
        """
        if self.since is None or self.deadline.by <= self.since:
            return 1.0
        return min(max((self.now - self.since) / (self.deadline.by - self.since), 0.0), 1.0)

    def speed(self, gpu: GpuModel, dlperf: float) -> float:
        """Return hours of work done in one hour on a GPU: the DLPerf ratio until it is measured."""
        prior = self._prior(gpu, dlperf)
        known = self.measured.get(gpu)
        if known is None:
            return prior
        return max((prior * PRIOR_HOURS + known.hours) / (PRIOR_HOURS + known.running_hours), LEAST_SPEED)

    def _prior(self, gpu: GpuModel, dlperf: float) -> float:
        model = self.deadline.reference_gpu
        reference = self.typical.get(model) if model is not None and model != gpu else None
        if not reference or dlperf <= 0:
            return 1.0
        return max(dlperf / reference, LEAST_SPEED)

    def of_lease(self, lease: Lease) -> float:
        """Return the speed of a lease."""
        return self.speed(lease.gpu, lease.dlperf)

    def rate(self, lease: Lease, speed: float) -> UsdPerHour:
        """Return the cost of a lease's GPUs per hour of work at `speed`."""
        return lease.gpu_rate.scaled(speed / self.of_lease(lease))


def of(fleet: Fleet, work: Workload) -> Task | None:
    """Return the task of a workload, or None without a deadline."""
    if work.deadline is None:
        return None
    reported = progress_facts.known(fleet, work)
    names = {work.name, work.was}
    return Task(
        deadline=work.deadline,
        now=fleet.now,
        done=reported.hours if reported is not None else 0.0,
        since=reported.since if reported is not None else fleet.now,
        measured={each.gpu: each for each in fleet.speeds if each.workload in names},
        typical=_typical(fleet, work),
        start_hours=slow_start(fleet.starts),
    )


def why_done(name: str) -> str:
    """Return why nothing is rented for work whose hours are done, with both ways on."""
    return f"all of its hours of work are done: `gpubid done {name}` ends it, more hours in its deadline go on"


def _typical(fleet: Fleet, work: Workload) -> dict[GpuModel, float]:
    """Return the DLPerf of a workload's slice by model; that of its reference may be a benchmark."""
    seen = {gpu: dlperf for (gpu, gpus), dlperf in fleet.typical.items() if gpus == work.requirements.gpus}
    reference = reference_speed.dlperf(fleet, work)
    if work.deadline is not None and work.deadline.reference_gpu is not None and reference:
        seen[work.deadline.reference_gpu] = reference
    return seen


def slow_start(starts: Iterable[Start]) -> float:
    """Return the hours within which nearly every first start was ready, or 0 while too few are known."""
    seconds = sorted(start.seconds for start in starts)
    if len(seconds) < FEWEST_STARTS:
        return 0.0
    return seconds[min(int(START_QUANTILE * len(seconds)), len(seconds) - 1)] / 3600


def restart_hours(work: Workload, task: Task, speed: float) -> float:
    """Return the most hours that an interruption costs: repeated work plus the restore."""
    if task.deadline.restart is not None:
        return task.deadline.restart / _HOUR
    checkpoint = work.checkpoint
    # All work is repeated if its checkpoint was on the disk of a lost host, or if there was none.
    is_kept = checkpoint.place is CheckpointPlace.REMOTE
    again = task.done / speed
    return (min(checkpoint.interval / _HOUR, again) if is_kept else again) + checkpoint.restore / _HOUR


def typical(known: Mapping[tuple[GpuModel, int], float], fleet: Fleet) -> dict[tuple[GpuModel, int], float]:
    """Return the median DLPerf of a slice by model and number of GPUs, updated from the present offers."""
    rows: dict[tuple[GpuModel, int], list[float]] = {}
    for view in fleet.markets.values():
        for offer in view.offers:
            if offer.dlperf > 0:
                rows.setdefault((offer.gpu, offer.gpus), []).append(offer.dlperf)
    return {**known, **{key: statistics.median(found) for key, found in rows.items()}}
