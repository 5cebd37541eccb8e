"""Figures of windows and running times. Each cycle writes all of them anew: work without a window has no series."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from prometheus_client import CollectorRegistry, Gauge


@dataclass(frozen=True, slots=True)
class RunTimes:
    """The windows and running times of one workload; None for a figure that the configuration does not have."""

    waiting: int
    is_window_open: bool | None = None
    window_changes_at: datetime | None = None
    ran: timedelta | None = None
    most: timedelta | None = None


class RunTimeFigures:
    """The families of windows and running times."""

    def __init__(self, target: CollectorRegistry) -> None:
        """Register them."""
        self.waiting = Gauge(
            "gpubid_slots_waiting",
            "Slots that wait by the configuration: for a window, a first start, other slots, a demand, "
            "or past max_running.",
            ("workload",), registry=target,
        )  # fmt: skip
        self.is_open = Gauge(
            "gpubid_window_open", "1 while a workload with windows may run, else 0.", ("workload",), registry=target
        )
        self.changes = Gauge(
            "gpubid_window_changes_timestamp_seconds", "When its window closes or, outside, the next one opens.",
            ("workload",), registry=target,
        )  # fmt: skip
        self.ran = Gauge(
            "gpubid_running_seconds", "Running time that counts for max_running of a workload.", ("workload",),
            registry=target,
        )  # fmt: skip
        self.most = Gauge(
            "gpubid_max_running_seconds", "The most running time of a workload.", ("workload",), registry=target
        )

    def see(self, known: Mapping[str, RunTimes]) -> None:
        """Write the figures of a cycle, by workload."""
        for family in (self.waiting, self.is_open, self.changes, self.ran, self.most):
            family.clear()
        for name, times in known.items():
            self.waiting.labels(name).set(times.waiting)
            if times.is_window_open is not None:
                self.is_open.labels(name).set(times.is_window_open)
            if times.window_changes_at is not None:
                self.changes.labels(name).set(times.window_changes_at.timestamp())
            if times.ran is not None and times.most is not None:
                self.ran.labels(name).set(times.ran.total_seconds())
                self.most.labels(name).set(times.most.total_seconds())
