"""The links of a host's GPUs and the reasons for their clocks, by the guard's check at a start.

Invariants:
1. Only figures that were read while the GPUs copied count: an idle link is slow, and an idle clock is low.
2. A generation or a width that no link has is unknown.
"""

from collections.abc import Mapping
from typing import Any

from agent.domain.work.acceptance_report import AcceptanceReport, GpuReport

GENERATIONS, WIDTHS = range(1, 9), range(1, 33)
MOST_EVENTS = 0xFFFF


def of(report: AcceptanceReport) -> Mapping[str, Any]:
    """Return the fields of a check that are about links and clocks; none where nothing was read under load."""
    if not report.is_under_load:
        return {}
    generations = [gpu.pcie_generation for gpu in report.gpus if gpu.pcie_generation in GENERATIONS]
    widths = [gpu.pcie_width for gpu in report.gpus if gpu.pcie_width in WIDTHS]
    shares = [share for share in map(_share, report.gpus) if share is not None]
    return {
        "pcie_generation": min((each for each in generations if each is not None), default=None),
        "pcie_width": min((each for each in widths if each is not None), default=None),
        "pcie_share": min(shares, default=None),
        "clock_events": _events(report),
    }


def _share(gpu: GpuReport) -> float | None:
    """Return the speed of a link as a share of its most: each generation doubles the speed of a lane."""
    now, most = (gpu.pcie_generation, gpu.pcie_width), (gpu.pcie_generation_most, gpu.pcie_width_most)
    links = [
        float(2**generation * width)
        for generation, width in (now, most)
        if generation is not None and width is not None and generation in GENERATIONS and width in WIDTHS
    ]
    return min(links[0] / links[1], 1.0) if len(links) == len((now, most)) else None


def _events(report: AcceptanceReport) -> int | None:
    found: int | None = None
    for gpu in report.gpus:
        if gpu.clock_events is not None:
            try:
                found = (found or 0) | int(gpu.clock_events, 16) & MOST_EVENTS
            except ValueError:
                continue
    return found
