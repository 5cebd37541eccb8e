"""Readiness: how a workload tells that its time has begun to be useful."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum


class ReadySign(Enum):
    """What shows that a workload is ready."""

    NONE = "none"
    """Running is ready."""
    LOG = "log"
    PORT = "port"
    HTTP = "http"


@dataclass(frozen=True, slots=True)
class Readiness:
    """When a running lease counts: `line` stands in its log, `port` answers, or `path` on it answers with a 2xx.

    A lease that runs and is not ready `within` is a bad one.
    """

    sign: ReadySign = ReadySign.NONE
    within: timedelta = timedelta(minutes=15)
    line: str = ""
    port: int = 0
    path: str = "/"

    @property
    def is_asked(self) -> bool:
        """Whether running alone is not enough."""
        return self.sign is not ReadySign.NONE


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a probe saw of one instance at `at`; `hours` is the progress it told.

    `failure` is the line of its log by which it ended in a failure.
    """

    instance_id: str
    at: datetime
    is_ready: bool = False
    is_done: bool = False
    said: str = ""
    hours: float | None = None
    failure: str = ""
