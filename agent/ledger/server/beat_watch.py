"""How long a leader has not beaten, by the clock of the daemon that watches it.

The beats are dated by the server. Their dates are only compared for equality, so a clock that jumps, on a machine or on
the server, does not make a leader look frozen.
"""

from dataclasses import dataclass, replace

FROZEN_SECONDS = 15.0
"""A leader that has not beaten for so long is frozen: its session is ended. It sends nothing after eight seconds."""
UNBEGUN_SECONDS = 180.0
"""The same for a session that has not beaten yet: an upgrade of the tables takes two minutes at most."""
MOST_STEP_SECONDS = 3.0
"""The most seconds that one look counts: a watcher that was asleep itself did not see whether the leader beat."""


@dataclass(frozen=True, slots=True)
class BeatWatch:
    """The session that leads, its last beat, the last look, and the seconds counted since both were first seen."""

    process: int = 0
    beat: object = None
    seen_at: float | None = None
    silent_seconds: float = 0.0
    has_beaten: bool = False

    def after(self, process: int, beat: object, now: float, *, has_beaten: bool = False) -> "BeatWatch":
        """Return the watch after a look; `now` is in seconds of a monotonic clock.

        `has_beaten` says that the last beat was one of this session.
        """
        if self.seen_at is None or process != self.process:
            return BeatWatch(process, beat, now, has_beaten=has_beaten)
        if beat != self.beat:
            return BeatWatch(process, beat, now, has_beaten=True)
        step = min(max(0.0, now - self.seen_at), MOST_STEP_SECONDS)
        return replace(self, seen_at=now, silent_seconds=self.silent_seconds + step)

    @property
    def is_frozen(self) -> bool:
        """Whether the leader must be replaced."""
        return self.silent_seconds >= (FROZEN_SECONDS if self.has_beaten else UNBEGUN_SECONDS)
