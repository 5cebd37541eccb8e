"""A fleet whose leases run real work under guards. Daemon and containers are programs, on clocks that run fast."""

import contextlib
import dataclasses
import sqlite3
import time
from pathlib import Path
from typing import Any

from agent.simulator.processes.container_process import Start
from agent.simulator.processes.process_registry import ProcessRegistry
from agent.simulator.simulated_clock import ScaledClock
from tests.support import stories
from tests.support.s3_server import SECRET, S3Server
from tests.support.steered import Simulator


class OwnRoots(ProcessRegistry):
    """Containers with a separate folder for each guard, as /var/lib is separate in real containers."""

    def start(self, process: Any, start: Start, **more: Any) -> None:
        home = {"GPUBID_GUARD_HOME": str(process.place / "guard")}
        super().start(process, dataclasses.replace(start, env={**start.env, **home}), **more)


@dataclasses.dataclass(frozen=True)
class RealFleet:
    """The daemon's box, and the market with its containers."""

    place: Path
    simulator: Simulator

    def now(self) -> float:
        return self.simulator.clock.time()

    def rents(self) -> int:
        return sum(method == "PUT" and "/asks/" in path for _, method, path, _ in self.simulator.api.calls)

    def rows(self, question: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query to the ledger."""
        with contextlib.closing(sqlite3.connect(self.place / "ledger.sqlite")) as ledger:
            return ledger.execute(question).fetchall()


@dataclasses.dataclass(frozen=True)
class GuardedFleet(RealFleet):
    """The same, with the bucket's server."""

    server: S3Server


def environment(place: Path, clock: ScaledClock, speed: float) -> dict[str, str]:
    """Return the environment of a daemon with its market's clock and the bucket's key."""
    epoch = clock.time() - speed * time.monotonic()
    return {
        "PYTHONPATH": str(stories.MACHINE),
        "STORY_CLOCK": f"{epoch!r} {speed!r} {place / 'jump'}",
        "TRAIN_BUCKET": SECRET,
    }
