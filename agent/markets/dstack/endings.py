"""Whether a machine that the server calls terminated is gone at its cloud.

The server writes `terminated` also where it gave up: after 15 minutes of failed tries, and at once where the cloud has
left the project. So the word is believed only of a machine whose end we watched, whose cloud was there all the while,
and of which two looks in a row say it. Any other one counts as billing until a person has looked at the console of its
cloud and said that it is gone.

The memory is of this process: what ended while nobody looked is not believed either.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from agent.markets.dstack import rows, rules

TERMINATING, TERMINATED = "terminating", "terminated"
LATEST_SECONDS = 720.0
"""The server gives up 15 minutes after its first failed try, so an end within 12 minutes was none."""


@dataclass(slots=True)
class _Watched:
    """The looks at one machine, in monotonic seconds; `whole_at` is the last one before its end began."""

    whole_at: float | None = None
    looked_at: float = 0.0
    was_missed: bool = False
    ended_at: float | None = None
    """The first look of those in a row that call it terminated, if it came in time."""
    is_gone: bool = False


class Endings:
    """Watches machines from look to look."""

    def __init__(self) -> None:
        """Have seen nothing."""
        self._watched: dict[str, _Watched] = {}

    def look(self, machines: Iterable[rows.Machine], backends: Collection[str], now: float) -> None:
        """Note all machines of a listing, with the clouds of the project, at a monotonic second."""
        listed = {machine.id: machine for machine in machines}
        self._watched = {each: seen for each, seen in self._watched.items() if each in listed}
        for machine in listed.values():
            self._note(machine, machine.backend in backends, now)

    def is_gone(self, machine: rows.Machine) -> bool:
        """Return whether a machine is proven gone."""
        seen = self._watched.get(machine.id)
        return seen is not None and seen.is_gone

    def is_nearly_proven(self, machine: rows.Machine) -> bool:
        """Return whether the next look may prove that a machine is gone."""
        seen = self._watched.get(machine.id)
        return seen is not None and seen.ended_at is not None

    def _note(self, machine: rows.Machine, has_cloud: bool, now: float) -> None:  # noqa: FBT001 - one caller
        seen = self._watched.setdefault(machine.id, _Watched(looked_at=now))
        had_gap, seen.looked_at = now - seen.looked_at > rules.LONGEST_GAP.total_seconds(), now
        if machine.status != TERMINATED:
            seen.ended_at, seen.is_gone = None, False
        if machine.status not in {TERMINATING, TERMINATED}:
            seen.whole_at, seen.was_missed = now, False
            return
        seen.was_missed = seen.was_missed or had_gap or not has_cloud
        if machine.status != TERMINATED:
            return
        if seen.ended_at is not None:
            seen.is_gone = True
        elif seen.whole_at is not None and not seen.was_missed and now - seen.whole_at <= LATEST_SECONDS:
            seen.ended_at = now
