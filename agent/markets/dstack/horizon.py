"""How far back a listing must go: the server never forgets a run, so a project has more of them every day.

A run that is over for good and a machine that is gone never matter again. So after a whole listing the next ones stop
behind the oldest row that mattered, and now and then one is whole again, since a look may have been shown wrongly.
"""

from collections.abc import Iterable
from datetime import datetime

from agent.markets import tolerant_rows

WHOLE_EVERY = 240
"""Every so many listings one goes back to the first run: about once an hour at a usual poll."""


class Horizon:
    """Remembers the oldest row that mattered in the last listing."""

    def __init__(self) -> None:
        """Begin with a whole listing."""
        self._since: datetime | None = None
        self._left = 0

    @property
    def since(self) -> datetime | None:
        """How far back the next listing must go; None: to the first row."""
        return self._since if self._left > 0 else None

    def forget(self) -> None:
        """Let the next listing go back to the first row."""
        self._left = 0

    def note(self, stamps: Iterable[str | None]) -> None:
        """Note the times of the rows that mattered in a listing. With an unreadable one, or none, the next is whole."""
        self._left = self._left - 1 if self._left > 0 else WHOLE_EVERY
        known = [tolerant_rows.moment(stamp) for stamp in stamps]
        read = [at for at in known if at is not None]
        self._since = min(read) if read and len(read) == len(known) else None
