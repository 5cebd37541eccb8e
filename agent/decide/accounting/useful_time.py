"""Useful time while it accrues, for a counter: the part of each running stretch that a checkpoint has kept.

A stretch that an interruption ends counts the useful time of its charge. A stretch that we end counts whole.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agent.decide.accounting import kept_work, meter
from agent.domain.fleet import Fleet
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.ready_sign import Readiness
from agent.domain.work.workload import Checkpoint


@dataclass(frozen=True, slots=True)
class Stretch:
    """The last state of a stretch of running, and the seconds of it that were counted."""

    lease: Lease
    counted: float


Stretches = Mapping[str, Stretch]
"""Running stretches by lease id."""


def running(fleet: Fleet) -> dict[str, Stretch]:
    """Return the stretches that run now, each counted up to its last checkpoint."""
    return {
        lease.lease_id: Stretch(lease, _kept(fleet, lease))
        for lease in fleet.leases
        if lease.state is LeaseState.RUNNING and lease.run_since is not None
    }


def gained(before: Stretches, fleet: Fleet, charged: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """Yield (workload, seconds) of useful time that `running` has not counted before.

    `charged` are the useful seconds of stretches that the market ended in between, by lease id.
    """
    now_running = running(fleet)
    for lease_id, stretch in before.items():
        after = now_running.get(lease_id)
        if after is None or after.lease.run_since != stretch.lease.run_since:
            worth = charged.get(lease_id)
            worth = _whole(fleet, stretch.lease) if worth is None else worth
            yield stretch.lease.slot.workload, max(0.0, worth - stretch.counted)
    for lease_id, stretch in now_running.items():
        known = before.get(lease_id)
        is_same = known is not None and known.lease.run_since == stretch.lease.run_since
        counted = known.counted if known is not None and is_same else 0.0
        yield stretch.lease.slot.workload, max(0.0, stretch.counted - counted)


def _kept(fleet: Fleet, lease: Lease) -> float:
    """Return the seconds that would remain of the stretch if it were lost now."""
    return _seconds(fleet, lease, is_lost=True)


def _whole(fleet: Fleet, lease: Lease) -> float:
    return _seconds(fleet, lease, is_lost=False)


def _seconds(fleet: Fleet, lease: Lease, *, is_lost: bool) -> float:
    work = fleet.workload(lease.slot.workload)
    promise, ready = (work.checkpoint, work.ready) if work else (Checkpoint(), Readiness())
    kept_at = kept_work.kept_at(fleet, lease) if is_lost else None
    if kept_at is not None:
        return meter.stretch_seconds(lease, min(kept_at, fleet.now), promise, ready, is_lost=False)
    return meter.stretch_seconds(lease, fleet.now, promise, ready, is_lost=is_lost)
