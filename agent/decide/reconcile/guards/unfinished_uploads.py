"""Checkpoints whose upload takes longer than the time between two losses: such work never finishes.

Invariants:
1. They give an alert and nothing else: the figures are a host's reports, and bids and sizes are the operator's to
   change.
2. The time between losses is measured by our clock, from a slot's losses of the last day. It includes idle time, so
   that an alert comes late rather than wrongly.
"""

from collections.abc import Iterator
from datetime import timedelta

from agent.decide.facts import Alert
from agent.decide.pricing import measured_checkpoints
from agent.domain import span_text
from agent.domain.fleet import Fleet
from agent.domain.record.event_kind import EventKind
from agent.domain.work.workload import Workload

FEWEST_LOSSES = 3
"""Fewer losses of one slot within a day say nothing about the length of a lease."""


def alerts(fleet: Fleet) -> Iterator[Alert]:
    """Yield an alert for each workload whose checkpoints are not uploaded before the next loss."""
    for work in fleet.workloads:
        between = _between_losses(fleet, work) if work.guard is not None and work.guard.bucket is not None else None
        sentence = "" if between is None else _sentence(fleet, work, between)
        if sentence:
            yield Alert(EventKind.ALERT_NEVER_FINISHES, work.name, sentence)


def _between_losses(fleet: Fleet, work: Workload) -> timedelta | None:
    """Return the shortest mean time between losses of one slot within the last day, or None with too few losses."""
    found = []
    for place in work.places:
        times = [loss.at for loss in fleet.losses if loss.slot == place]
        if len(times) >= FEWEST_LOSSES:
            found.append((max(times) - min(times)) / (len(times) - 1))
    return min(found, default=None)


def _sentence(fleet: Fleet, work: Workload, between: timedelta) -> str:
    """Return why a workload never finishes, or an empty text."""
    measured = measured_checkpoints.of(fleet, work)
    upload, took, size = (measured.get(name) for name in ("upload_seconds", "took_seconds", "checkpoint_bytes"))
    of_size = f" of {size.figure / 1e9:.2f} GB" if size is not None else ""
    fix = "make it smaller, require more bandwidth, or bid to last longer"
    every = f"a slot is lost every {span_text.of(between)}"
    if upload is not None:
        needs = timedelta(seconds=upload.figure + (took.figure if took is not None else 0.0))
        if needs < between:
            return ""
        return (
            f"{work.name} never finishes: a checkpoint{of_size} takes {span_text.of(needs)} into the bucket, measured "
            f"on {upload.leases} leases, and {every}, as of its losses within a day; {fix}"
        )
    mine = [each for each in fleet.guard_figures.values() if each.slot.workload == work.name]
    if size is None or any(each.manifest for each in mine):
        return ""
    return (
        f"{work.name} never finishes: {every}, and no checkpoint{of_size} was ever whole in the bucket by then; {fix}"
    )
