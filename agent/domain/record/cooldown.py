"""A cooldown: time in which a refused offer or host is not tried again."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Cooldown:
    """`key` of `scope` ("offer", "host", "slot" or "market") rests until `until`; `code` is the reason.

    The key of a host or an owner has its market: "vast/777".
    """

    scope: str
    key: str
    until: datetime
    code: str

    def __str__(self) -> str:
        """Return it as `gpubid fleet` shows it: SCOPE:KEY."""
        return ":".join(self.place)

    @property
    def place(self) -> tuple[str, str]:
        """Scope and key."""
        return self.scope, self.key

    @property
    def ground(self) -> str:
        """After what it rests."""
        return self.code

    @property
    def shown_until(self) -> datetime:
        """The end that is shown of it."""
        return self.until

    def is_over(self, now: datetime) -> bool:
        """Tell whether its time is over."""
        return self.until <= now
