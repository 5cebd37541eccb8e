"""The simulator's view of an instance's real processes; see agent/simulator/processes/."""

from collections.abc import Mapping, Sequence
from typing import Protocol


class Process(Protocol):
    """The real processes of one instance."""

    @property
    def ports(self) -> Mapping[int, int]:
        """Return {port of the container: the loopback port on which the process must listen}."""
        ...

    @property
    def starts(self) -> int:
        """Count its starts."""
        ...

    @property
    def has_ended(self) -> bool:
        """Return whether the first process of the container has ended by itself."""
        ...

    @property
    def is_busy(self) -> bool:
        """Return whether anything of the workload runs."""
        ...

    def printed(self) -> tuple[int, Sequence[tuple[float, str]]]:
        """Return how many lines were dropped, and time and text of those after them."""
        ...

    def terminate(self) -> None:
        """Send SIGTERM to the container's first process, as a notice before an eviction."""
        ...

    def kill(self) -> None:
        """Kill every process; return when all are dead."""
        ...

    def wipe(self) -> None:
        """Empty the disk of the container; a volume keeps its files."""
        ...

    def remove(self) -> None:
        """Remove every file for good."""
        ...
