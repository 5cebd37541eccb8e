"""The options of a bench, and how a list of numbers is written on a command line."""

from dataclasses import dataclass
from pathlib import Path

from agent.cli import exits


@dataclass(frozen=True, slots=True)
class Options:
    """What a bench was asked for; each problem reads those that concern it. Prices in $/h, None the data's own."""

    traces: Path | None
    job_hours: float
    deadline_hours: tuple[float, ...]
    overhead_hours: tuple[float, ...]
    window_hours: float
    stride_hours: float
    spot_price: float | None
    on_demand_price: float | None

    def folder(self) -> Path:
        """Return the folder of traces, or end with what to name."""
        if self.traces is None:
            exits.stop(exits.BAD_INPUT, ["this problem runs on traces; name their folder with --traces DIR"])
        if not self.traces.exists():
            exits.stop(exits.BAD_INPUT, [f"{self.traces}: there is no such folder; name one with --traces DIR"])
        return self.traces


def numbers(option: str, text: str) -> tuple[float, ...]:
    """Return the positive numbers of "52,70", or end with what to write."""
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or not all(0 < number < 1e6 for number in found):  # noqa: PLR2004 - a century of hours
        exits.stop(exits.BAD_INPUT, [f"{option}: write positive numbers with commas between, such as 52,70"])
    return found
