"""The daemon that leads a fleet whose ledger is on a server."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Leader:
    """The daemon of an epoch, since when it leads, on which machine, and the address of its page, if it told one.

    `beat_at` dates its last beat by the server's clock; of the own daemon it is that of the first. `beat_age_seconds`
    is the age of its last confirmed beat. `is_shown` says whether that is young enough to send.
    """

    epoch: int
    since: datetime
    host: str
    page: str
    beat_at: datetime
    beat_age_seconds: float
    is_shown: bool
    process: int = 0
    """The process at the server of the session that beat last; 0 before the first beat."""

    @property
    def place(self) -> str:
        """The leader for messages: its machine, and its page if it told one."""
        return f"{self.host}{f' ({self.page})' if self.page else ''}"
