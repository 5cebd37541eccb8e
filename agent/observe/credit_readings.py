"""The credit of an account over its readings: a sudden fall is confirmed before anything is ended for it.

At its floor, everything on a market is paused. One wrong credit would do that to a fleet that works. Nothing is rented
meanwhile: that heeds the last reading alone.
"""

from agent.domain import money
from agent.domain.money import Usd

SUDDEN_SHARE = 0.5
"""A fall by more than this share between two readings is sudden."""
LEAST_SUDDEN = money.usd(2)
"""A smaller fall is none: near its end, credit falls by large shares."""
PATIENCE_SECONDS = 900.0
"""How long a sudden fall must be shown, since markets have shown wrong figures for ten minutes."""


class CreditReadings:
    """The readings of one account."""

    def __init__(self, recorded: Usd | None = None) -> None:
        """Begin with the credit of an earlier process; None: the first reading is believed."""
        self._believed = recorded
        self._fell_at: float | None = None

    def take(self, credit: Usd | None, now: float) -> Usd | None:
        """Return the credit before a sudden fall that is not confirmed yet, else None; `now` is monotonic seconds."""
        if credit is None or self._believed is None or not self._is_sudden(self._believed, credit):
            self._believed, self._fell_at = credit, None
            return None
        self._fell_at = now if self._fell_at is None else self._fell_at
        if now - self._fell_at < PATIENCE_SECONDS:
            return self._believed
        self._believed, self._fell_at = credit, None
        return None

    @staticmethod
    def _is_sudden(before: Usd, credit: Usd) -> bool:
        least = max(LEAST_SUDDEN.micros, round(before.micros * SUDDEN_SHARE))
        return before.micros - credit.micros > least
