"""One tuning loop: its request, its records and its messages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from agent.cli.shared import session
from agent.cli.tune_loop.step_records import STEPS, Records
from agent.clock import SystemClock


class Refusal(Exception):
    """A step is refused. The message says why and how to overrule it. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop: the strategy's name, the place of its records, and the options of this call."""

    name: str
    config: Path
    records: Records
    given: Mapping[str, Any]
    workload: str | None
    workers: int
    after: timedelta
    is_forced: bool
    is_quiet: bool = False
    said: list[str] = field(default_factory=list)

    @property
    def directory(self) -> Path:
        """The folder of own strategy files: the configuration's, or `strategies` beside it."""
        named = session.read(self.config)[0].strategies if self.config.exists() else None
        return named or self.config.parent / "strategies"

    @property
    def file(self) -> Path:
        """The strategy's own file."""
        return self.directory / f"{self.name}.toml"

    @property
    def candidate(self) -> Path:
        """The tuned numbers before they are written to the own file."""
        return self.records.folder / f"{self.name}.toml"

    def say(self, step: str, sentence: str) -> None:
        """Print the result of a step, and keep it."""
        self.said.append(f"{STEPS.index(step) + 1} {step}: {sentence}")
        if not self.is_quiet:
            session.say(self.said[-1])


def now() -> datetime:
    """Return the time."""
    return SystemClock().now()


def hours(span: timedelta) -> float:
    """Return a span in hours."""
    return span / timedelta(hours=1)


def workloads_of(loop: Loop) -> list[str]:
    """Return the names of the configured workloads."""
    return [work.name for work in session.read(loop.config)[0].workloads]


def workload_of(loop: Loop) -> str:
    """Return the requested workload, or the only one.

    Raises:
        ValueError: it is not configured, or none is named and there are several.
    """
    names = workloads_of(loop)
    if loop.workload is None and len(names) == 1:
        return names[0]
    if loop.workload not in names:
        raise ValueError(f"name the workload with --workload; there are {', '.join(names)}")
    return str(loop.workload)
