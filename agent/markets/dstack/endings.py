"""Whether a machine that the server calls terminated is gone at its cloud.

The server also writes `terminated` where it gave up: after 15 minutes of failed tries, or at once if the cloud was
removed from the project or no client of it can be built. So `terminated` proves an end only under four conditions. The
machine was whole before: two looks in a row showed it, or one while its run was active. We watched its end. The server
had a working client of its cloud all the time (`cloud_clients.py`), and once more after the end. Two looks in a row
show `terminated`. Any other machine counts as billing until a person has looked at the console of its cloud and said
that it is gone.

The memory is of this process: an end during which nobody looked is not believed either.

A machine that was proven gone, and that some looks call there again for less than a quarter of an hour, needs only the
two looks anew.

The server never takes `terminated` back. If a look shows another status after two in a row showed `terminated`, some
of its answers were wrong, and `over_at` is the last look that showed `terminated`.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from agent.markets.dstack import rows, rules

TERMINATING, TERMINATED = "terminating", "terminated"
WHOLE = frozenset({"pending", "provisioning", "idle", "busy"})
WHOLE_AGAIN_SECONDS = 900.0
"""For this long all looks must show a machine as whole before an earlier sign of its end is dropped. The server never
takes such a sign back, so some of its answers were wrong."""
LATEST_SECONDS = 720.0
"""The server gives up 15 minutes after its first failed try, so an end within 12 minutes is no giving up."""
CLIENT_SECONDS = 150.0
"""The server keeps a client for 300 s after its last use. So one that was used so long ago is kept to the next look,
which comes within `rules.LONGEST_GAP`."""


@dataclass(slots=True)
class _Watched:
    """The looks at one machine, in monotonic seconds; `whole_at` is the last one before its end began."""

    cloud: str = ""
    whole_at: float | None = None
    whole_since: float | None = None
    """The first look of those in a row that call it whole."""
    looked_at: float = 0.0
    was_ending: bool = False
    """Whether a look called it terminating or terminated since it was whole."""
    was_missed: bool = False
    lacked_client: bool = False
    """Whether the server may have had no client of its cloud, at the last whole look or at one after that."""
    ended_at: float | None = None
    """The first look of those in a row that call it terminated, if it came in time."""
    is_gone: bool = False
    was_gone: bool = False
    """Whether it was proven gone before the looks that called it there again."""
    is_over: bool = False
    """Whether the last look called it terminated."""
    over_at: float | None = None
    """The last look that called it terminated right after another look that did."""


class Endings:
    """Watches machines from look to look."""

    def __init__(self) -> None:
        """Begin without any look."""
        self._watched: dict[str, _Watched] = {}

    def look(
        self, machines: Iterable[rows.Machine], clients: Mapping[str, float], now: float, active: Collection[str] = ()
    ) -> None:
        """Note all machines of a listing at a monotonic second.

        `clients` has the clouds of which the server had a client before this listing, with the second of each proof.
        `active` are the ids of machines whose run goes on.
        """
        listed = {machine.id: machine for machine in machines}
        self._watched = {each: seen for each, seen in self._watched.items() if each in listed}
        for machine in listed.values():
            self._note(machine, clients.get(machine.backend or ""), machine.id in active, now)

    def is_gone(self, machine: rows.Machine) -> bool:
        """Return whether a machine is proven gone."""
        seen = self._watched.get(machine.id)
        return seen is not None and seen.is_gone

    def is_nearly_proven(self, machine: rows.Machine) -> bool:
        """Return whether the next look may prove that a machine is gone."""
        seen = self._watched.get(machine.id)
        return seen is not None and seen.ended_at is not None

    def over_at(self, machine: rows.Machine) -> float | None:
        """Return the monotonic second of the last look that called a machine over, of two in a row; None without."""
        seen = self._watched.get(machine.id)
        return seen.over_at if seen is not None else None

    def lacked_client(self, machine: rows.Machine) -> bool:
        """Return whether the server may have had no client of the machine's cloud while it ended the machine."""
        seen = self._watched.get(machine.id)
        return seen is not None and seen.lacked_client

    def clouds(self) -> Mapping[str, bool]:
        """Return the clouds of the machines whose end may still be proven, with whether one is ending there."""
        found: dict[str, bool] = {}
        for seen in self._watched.values():
            if seen.cloud and not seen.is_gone and (seen.ended_at is not None or not seen.is_over):
                found[seen.cloud] = found.get(seen.cloud, False) or (seen.was_ending and not seen.was_missed)
        return found

    def _note(self, machine: rows.Machine, client_at: float | None, is_active: bool, now: float) -> None:  # noqa: FBT001
        seen = self._watched.setdefault(machine.id, _Watched(looked_at=now))
        seen.cloud = machine.backend or ""
        had_gap, seen.looked_at = now - seen.looked_at > rules.LONGEST_GAP.total_seconds(), now
        was_over, seen.is_over = seen.is_over, machine.status == TERMINATED
        seen.over_at = now if was_over and seen.is_over else seen.over_at
        is_truthful = seen.cloud not in rules.UNPROVEN_ENDS
        has_client = is_truthful and client_at is not None and now - client_at <= CLIENT_SECONDS
        if machine.status != TERMINATED:
            seen.ended_at, seen.is_gone, seen.was_gone = None, False, seen.was_gone or seen.is_gone
        if machine.status not in {TERMINATING, TERMINATED}:
            seen.lacked_client = not has_client
            _note_whole(seen, is_whole=machine.status in WHOLE, is_active=is_active, had_gap=had_gap)
            return
        seen.was_ending, seen.whole_since = True, None
        seen.lacked_client = seen.lacked_client or not (has_client or seen.was_missed)
        seen.was_missed = seen.was_missed or had_gap or seen.lacked_client
        if machine.status == TERMINATED and not seen.is_gone:
            _note_end(seen, client_at)


def _note_end(seen: _Watched, client_at: float | None) -> None:
    """Note a look that calls a machine terminated which is not proven gone; `client_at` as in `Endings.look`."""
    if seen.ended_at is None:
        seen.ended_at = seen.looked_at if seen.was_gone or _was_watched(seen) else None
    elif seen.was_gone or (client_at is not None and client_at >= seen.ended_at):
        # The question after the end shows that the server was not started anew in between, and then could build none.
        seen.is_gone = True
    elif seen.lacked_client:
        seen.ended_at = None


def _was_watched(seen: _Watched) -> bool:
    """Return whether an end that the last look showed came in time after a look that showed the machine whole."""
    is_in_time = seen.whole_at is not None and seen.looked_at - seen.whole_at <= LATEST_SECONDS
    return is_in_time and not seen.was_missed


def _note_whole(seen: _Watched, *, is_whole: bool, is_active: bool, had_gap: bool) -> None:
    """Note a look that calls a machine whole, or has a word for it that says nothing."""
    now, since = seen.looked_at, None if had_gap else seen.whole_since
    seen.whole_since = (now if since is None else since) if is_whole else None
    if seen.was_ending:
        is_sure = is_whole and since is not None and now - since >= WHOLE_AGAIN_SECONDS
    else:
        is_sure = is_whole and (is_active or since is not None)
    if seen.lacked_client:
        seen.whole_at = None
    elif is_sure:
        seen.whole_at, seen.was_missed, seen.was_ending, seen.was_gone = now, False, False, False
