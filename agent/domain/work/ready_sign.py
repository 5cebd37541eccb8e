"""Readiness: the sign of a workload that its useful time has begun, and that it goes on."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from agent.domain.work.stall import ProgressSeen


class ReadySign(Enum):
    """The kind of the sign."""

    NONE = "none"
    """Running is enough."""
    LOG = "log"
    PORT = "port"
    HTTP = "http"


@dataclass(frozen=True, slots=True)
class Liveness:
    """The probes of a service that was ready: one each `every`, answered within `within`.

    After `failures` probes in a row without an answer the service is unhealthy. No probes if `every` is zero.
    """

    every: timedelta = timedelta()
    within: timedelta = timedelta(seconds=5)
    failures: int = 2


@dataclass(frozen=True, slots=True)
class Readiness:
    """The sign of readiness: `line` is in the log, `port` answers, or `path` on it answers with a 2xx.

    A lease that runs and is not ready after `within` is bad.
    """

    sign: ReadySign = ReadySign.NONE
    within: timedelta = timedelta(minutes=15)
    line: str = ""
    port: int = 0
    path: str = "/"
    live: Liveness = field(default_factory=Liveness)

    @property
    def is_asked(self) -> bool:
        """Whether running alone is not enough."""
        return self.sign is not ReadySign.NONE

    @property
    def mark(self) -> tuple[ReadySign, str, int, str]:
        """The sign itself, without its times."""
        return self.sign, self.line, self.port, self.path

    @property
    def needs_port(self) -> bool:
        """Whether a port must be reached from outside."""
        return self.sign in {ReadySign.PORT, ReadySign.HTTP}

    def is_reachable(self, *, opens_ports: bool, asks_pages: bool) -> bool:
        """Return whether the sign can be seen where ports are opened or not, and a market asks pages itself or not."""
        return opens_ports or not self.needs_port or (asks_pages and self.sign is ReadySign.HTTP)

    @property
    def is_watched(self) -> bool:
        """Whether its service is probed on after it was ready."""
        return self.sign in {ReadySign.PORT, ReadySign.HTTP} and self.live.every > timedelta()


@dataclass(frozen=True, slots=True)
class Sighting:
    """The result of a probe of one instance at `at`; `hours` is the reported progress.

    `failure` is the line of its log that reports a failure. `refusal` is why its guard could not start. `is_bare`: its
    log, read at `at`, says that the work runs without the guard, or said so before. `was_asked`: the sign of readiness
    could be looked for; else `is_ready` says nothing, as where its log could not be read. `progress`: what its signs of
    progress showed, if they are read. `stands`: how long a market that requests the page itself says the same, until
    its next request is answered.
    """

    instance_id: str
    at: datetime
    is_ready: bool = False
    is_done: bool = False
    said: str = ""
    hours: float | None = None
    failure: str = ""
    refusal: str = ""
    is_bare: bool = False
    was_asked: bool = True
    progress: ProgressSeen | None = None
    stands: timedelta = timedelta()


@dataclass(frozen=True, slots=True)
class ReadyWait:
    """How long the probes of a lease have found no sign of readiness, without the time in which nobody probed it.

    `since` is when its stretch of running began, and `read_at` when its last probe was made. `is_whole`: its probes
    have looked for `mark` from the beginning of the stretch on, so that the sign was never shown.
    """

    since: datetime
    mark: tuple[ReadySign, str, int, str]
    read_at: datetime
    lasted: timedelta = timedelta()
    is_whole: bool = True
