"""The daemon that leads a fleet whose ledger is on a server."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Leader:
    """The daemon of an epoch: since when it leads, its machine, and the address of its page if it has one.

    `beat_at` is the time of its last beat by the server's clock; for this daemon itself, of its first beat.
    `beat_age_seconds` is the age of its last confirmed beat. `is_shown` is whether that is young enough to send.
    """

    epoch: int
    since: datetime
    host: str
    page: str
    beat_at: datetime
    beat_age_seconds: float
    is_shown: bool
    process: int = 0
    """The server's process id of the session that beat last; 0 before the first beat."""

    @property
    def place(self) -> str:
        """The leader for messages: its machine, and its page if it has one."""
        return f"{self.host}{f' ({self.page})' if self.page else ''}"
