"""The market's status of a bid and of its machine -> our one state.

Invariants:
1. A status that is not in the tables is UNKNOWN, and counts as charged.
2. A bid that waits and never had a machine is PENDING and costs nothing. One that had a machine is PAUSED by the
   market.
3. A machine that may still hold its GPUs counts as charged, whatever its bid says.
4. A machine that says that it runs contradicts a bid that waits or is paused: the state is unknown.
5. A machine that may hold its GPUs contradicts the end of a bid that has no time of that end: the state is unknown.
6. A bid that was paused, with no machine that holds GPUs, stays so while its word or its machine's alone denies it.
"""

from collections.abc import Collection
from dataclasses import dataclass

from agent.domain.market.instance import InstanceState

OPEN, ALLOCATED, PREEMPTING, PAUSED, TERMINATED = "Open", "Allocated", "Preempting", "Paused", "Terminated"
KNOWN = frozenset({OPEN, ALLOCATED, PREEMPTING, PAUSED, TERMINATED})
"""The statuses of a bid whose meaning is documented."""

_LOADING = frozenset({"NEW", "CONFIRMED", "INITIALIZING", "STARTING"})
_UNCLEAR = frozenset({"STOPPING", "RELOCATING"})
_RUNNING = frozenset({"RUNNING", "PREEMPTING"})
_ENDED = frozenset({"TERMINATED", "PREEMPTED", "REPLACED", "PAUSED", "ERROR"})
_PREFIX = "STATUS_"

_FORGOTTEN = frozenset({"TERMINATED", "REPLACED"})
LISTED = tuple(f"{_PREFIX}{word}" for word in sorted(_LOADING | _UNCLEAR | _RUNNING | _ENDED - _FORGOTTEN))
"""The statuses that a listing asks for: an account's ended machines would fill page after page."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a bid with its machine, and whether the market may charge for GPUs in it."""

    state: InstanceState
    may_bill: bool = False
    is_wanted: bool = True


def is_live(status: str) -> bool:
    """Return whether a machine may hold GPUs; an unknown word may."""
    return status.removeprefix(_PREFIX) not in _ENDED


def goes_on(status: str) -> bool:
    """Return whether a machine's own status says that it runs, without a notice."""
    return status.removeprefix(_PREFIX) == "RUNNING"


def standing(bid: str, machine: str, *, was_allocated: bool, has_end: bool = False) -> Standing | None:
    """Return the state of a bid, with the status of its newest machine or an empty text; None: it has ended.

    `has_end` says that the bid has the time of its end.
    """
    word = machine.removeprefix(_PREFIX)
    # A machine that stops is not charged for: the market ends its bill with the order to stop it.
    holds = bool(word) and word not in _ENDED and word != "STOPPING"
    if bid == ALLOCATED:
        return _allocated(word)
    if bid == PREEMPTING:
        return _preempting(word)
    if bid in {OPEN, PAUSED} and goes_on(machine):
        return Standing(InstanceState.UNKNOWN, may_bill=True, is_wanted=bid == OPEN)
    if bid == OPEN:
        was_running = was_allocated or holds
        return Standing(InstanceState.PAUSED if was_running else InstanceState.PENDING, holds)
    if bid == PAUSED:
        return Standing(InstanceState.PAUSED, holds, is_wanted=False)
    if bid == TERMINATED and (has_end or not holds):
        return None
    return Standing(InstanceState.UNKNOWN, may_bill=True)


class PausedBids:
    """The bids that were paused, without a machine that may hold GPUs, when last clearly seen."""

    def __init__(self) -> None:
        self._paused: set[str] = set()

    def keep(self, ids: Collection[str]) -> None:
        """Forget the bids that have ended."""
        self._paused.intersection_update(ids)

    def forget(self, bid_id: str) -> None:
        """Forget a bid, because its start was ordered."""
        self._paused.discard(bid_id)

    def settled(self, bid_id: str, bid: str, machine: str, told: Standing | None) -> Standing | None:
        """Return the state of a bid that its words tell, or that of a paused one if one word alone denies that."""
        is_over = not machine or not is_live(machine)
        if bid == PAUSED and is_over:
            self._paused.add(bid_id)
        elif bid_id in self._paused and told is not None:
            if is_over if bid not in {PAUSED, OPEN} else bid == PAUSED and not goes_on(machine):
                return Standing(InstanceState.PAUSED, is_wanted=False)
            self._paused.discard(bid_id)
        return told


def _allocated(word: str) -> Standing:
    if word == "ERROR":
        return Standing(InstanceState.FAILED, may_bill=True)
    if not word or word in _LOADING | _ENDED:
        # The machine of a new allocation may be listed later than its bid.
        return Standing(InstanceState.LOADING, may_bill=True)
    return Standing(InstanceState.RUNNING if word in _RUNNING else InstanceState.UNKNOWN, may_bill=True)


def _preempting(word: str) -> Standing:
    """Return the state of a machine that runs for the minutes of its notice; whether they are charged is not known."""
    if word in _ENDED:
        return Standing(InstanceState.PAUSED)
    return Standing(InstanceState.LOADING if word in _LOADING else InstanceState.RUNNING, may_bill=True)
