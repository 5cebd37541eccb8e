"""Whether a lease works in the place of the other one of its slot, which may then go.

1. Where a market shows a machine and no container, a machine that runs may still load the image. Without a sign of
   readiness it counts only after the time of a slow load.
2. One that its market has said to end counts no more: the other lease may be all that the slot has in minutes.
"""

from datetime import timedelta

from agent.decide.pricing import useful_hour
from agent.domain.fleet import Fleet
from agent.domain.record.lease import Lease
from agent.domain.work import usefulness
from agent.domain.work.workload import Workload

SLOW_MBPS = 200.0
"""Megabits a second at which an image is assumed to load. Assumed."""


def has_taken_over(fleet: Fleet, lease: Lease, work: Workload) -> bool:
    """Return whether a lease that the present listing shows is surely of use."""
    if not fleet.is_seen(lease) or lease.notice_at is not None or not usefulness.is_useful(lease, work):
        return False
    if work.ready.is_asked or fleet.rules_of(lease.market).shows_container:
        return True
    return fleet.now - lease.state_since >= slow_loading(work)


def slow_loading(work: Workload) -> timedelta:
    """Return how long the image of a workload loads at most, as assumed where no market shows its container."""
    return timedelta(hours=useful_hour.loading_hours(work.image_gb, SLOW_MBPS))
