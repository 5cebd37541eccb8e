"""The market's four state fields -> our one state, by a table.

Invariants:
1. Only observed combinations have a meaning; every other is UNKNOWN, which is ignorance.
2. The fields never show why an instance is paused: an outbid, a stop and an empty account have the same four values.
3. If the contract holds its GPUs and its container's state is not known, they count as charged.
4. GPUs that work contradict the word that their container, which ran, has ended or loads: its state is then unknown.
5. An instance that was stopped stays stopped while one word alone denies it. A start changes what the market intends.
   One that was not seen stopped is stopped once the market has intended that for two minutes and no word for the
   contract says that it runs.
"""

import re
from collections.abc import Collection
from functools import lru_cache

import msgspec

from agent.domain.market.instance import Instance, InstanceState

PATIENCE_SECONDS = 900.0
"""How long the same load of the GPUs contradicts a state: markets have shown wrong fields for ten minutes, and a host
may stop measuring."""
LEAST_LOAD = 5.0
"""The load of GPUs at work, in per cent. Assumed."""
STOP_SECONDS = 120.0
"""How long all looks must show that the market stopped an instance, before one word that denies it is not believed."""
_DOUBTED = frozenset({InstanceState.EXITED, InstanceState.LOADING, InstanceState.PENDING})

_BOOTING = frozenset({"", "created", "loading"})
_ENDED = frozenset({"exited", "stopped"})
_REMADE = frozenset({"rebooting", "recycling"})
_OFFLINE = frozenset({"offline"})
_UNHEARD = frozenset({"unknown"})
"""No heartbeat: the host may be down or only late. Only an offline host is not charged for."""

_Row = tuple[frozenset[str], str, str, InstanceState]

_ANY = ""
_TABLE: tuple[_Row, ...] = (
    # actual_status, cur_state, intended_status, ours. The first row that fits wins.
    (_OFFLINE, _ANY, _ANY, InstanceState.OFFLINE),
    (_UNHEARD, "stopped", _ANY, InstanceState.PAUSED),
    (_UNHEARD, _ANY, _ANY, InstanceState.OFFLINE),
    (frozenset({"running"}), "running", _ANY, InstanceState.RUNNING),
    (frozenset({""}), "running", _ANY, InstanceState.PENDING),
    (frozenset({"created", "loading"}), "running", _ANY, InstanceState.LOADING),
    (_REMADE, "running", _ANY, InstanceState.LOADING),
    (_ENDED, "running", "running", InstanceState.EXITED),
    # A queued start, and a start right after a create, show `intended` as running while no GPU is assigned.
    (_BOOTING, "stopped", _ANY, InstanceState.PAUSED),
    (_ENDED, "stopped", _ANY, InstanceState.PAUSED),
)

_TROUBLE = re.compile(
    r"error response from daemon|\boci runtime\b|failed to (create|start|pull)|pull access denied|manifest unknown"
    r"|no space left|^error\b",
    re.IGNORECASE,
)


_DEATH = re.compile(r"\bexit(ed)?( with)? (code|status)?[ :=(]*[1-9]|\boom\b|out of memory|\bkilled\b", re.IGNORECASE)
_IMAGE = re.compile(
    r"pull access denied|manifest (for .{1,200} )?(unknown|not found)|repository does not exist|invalid reference"
    r"|unauthorized: |denied: requested access",
    re.IGNORECASE,
)


def has_trouble(message: str) -> bool:
    """Return whether a message looks like an error of the host's daemon or of the container."""
    return _TROUBLE.search(message) is not None or _DEATH.search(message) is not None


def is_image_refused(message: str) -> bool:
    """Return whether a message says that no host can pull the image."""
    return _IMAGE.search(message) is not None


def may_bill_gpu(actual: str, current: str) -> bool:
    """Return whether GPUs may be charged although nothing seems to run: no heartbeat, or a container made anew."""
    return current != "stopped" and actual in _UNHEARD | _REMADE


def is_nearly_stopped(actual: str, current: str, intended: str) -> bool:
    """Return whether two of the three words are those of a stopped instance that nobody starts."""
    return intended == "stopped" and (current == "stopped" or actual in _ENDED)


def is_given_up(actual: str, current: str, intended: str) -> bool:
    """Return whether the words are those of a stopped instance but for one that does not say that GPUs are held."""
    return is_nearly_stopped(actual, current, intended) and current != "running"


@lru_cache(maxsize=1024)
def state(actual: str, current: str, intended: str, message: str) -> InstanceState:
    """Return the state; empty text means a null field.

    A stopped instance whose container never ran and whose message is a daemon's error is FAILED: the host gave up.
    """
    for statuses, contract, wanted, ours in _TABLE:
        if actual in statuses and contract in {_ANY, current} and wanted in {_ANY, intended}:
            gave_up = ours is InstanceState.PAUSED and actual in _BOOTING and _TROUBLE.search(message) is not None
            return InstanceState.FAILED if gave_up else ours
    return InstanceState.UNKNOWN


class Looks:
    """The instances of an account as the last looks showed them."""

    def __init__(self) -> None:
        self._stops = Stops()
        self._loads = Loads()

    def keep(self, ids: Collection[str]) -> None:
        """Forget the instances that do not exist any more."""
        self._stops.keep(ids)
        self._loads.keep(ids)

    def settled(self, found: Instance, words: tuple[str, str, str], now: float) -> Instance:
        """Return an instance with these words in a state that no past look contradicts; `now` is monotonic seconds."""
        return self._loads.settled(self._stops.settled(found, words, now), now)


class Stops:
    """The instances that were stopped when last clearly seen, and since when others seem to be stopped."""

    def __init__(self) -> None:
        self._stopped: set[str] = set()
        self._given_up_since: dict[str, float] = {}

    def keep(self, ids: Collection[str]) -> None:
        """Forget the instances that do not exist any more."""
        self._stopped.intersection_update(ids)
        self._given_up_since = {key: since for key, since in self._given_up_since.items() if key in ids}

    def settled(self, found: Instance, words: tuple[str, str, str], now: float) -> Instance:
        """Return an instance as stopped if it was, or has seemed so for long, and one word alone denies it."""
        key, is_unclear = found.instance_id, found.state is InstanceState.UNKNOWN
        if not is_unclear or not is_given_up(*words):
            self._given_up_since.pop(key, None)
        elif now - self._given_up_since.setdefault(key, now) >= STOP_SECONDS:
            self._stopped.add(key)
        if found.state is InstanceState.PAUSED:
            self._stopped.add(key)
        elif not is_unclear:
            self._stopped.discard(key)
        elif key in self._stopped and is_nearly_stopped(*words):
            return msgspec.structs.replace(found, state=InstanceState.PAUSED, may_bill_gpu=False)
        return found


class Loads:
    """The containers that ran when last seen, and the load of their GPUs while another state is doubted.

    In the first listing after a start nothing was seen before. A container whose GPUs work then counts as one that ran.
    """

    def __init__(self) -> None:
        self._listings = 0
        self._ran: set[str] = set()
        self._same_since: dict[str, tuple[float, float]] = {}

    def keep(self, ids: Collection[str]) -> None:
        """Forget the instances that do not exist any more: a listing begins."""
        self._listings += 1
        self._ran.intersection_update(ids)
        self._same_since = {key: seen for key, seen in self._same_since.items() if key in self._ran}

    def settled(self, row: Instance, now: float) -> Instance:
        """Return an instance whose state its GPUs' load does not contradict; `now` is monotonic, in seconds."""
        if row.state is InstanceState.RUNNING:
            self._ran.add(row.instance_id)
        elif row.state is not InstanceState.UNKNOWN and row.state not in _DOUBTED:
            self._ran.discard(row.instance_id)
        load = row.gpu_util or 0.0
        if self._listings <= 1 and load >= LEAST_LOAD and row.state in _DOUBTED:
            self._ran.add(row.instance_id)
        if row.state not in _DOUBTED or row.instance_id not in self._ran or load < LEAST_LOAD:
            self._same_since.pop(row.instance_id, None)
            return row
        known, since = self._same_since.get(row.instance_id, (load, now))
        self._same_since[row.instance_id] = load, since if load == known else now
        if now - self._same_since[row.instance_id][1] >= PATIENCE_SECONDS:
            return row
        return msgspec.structs.replace(row, state=InstanceState.UNKNOWN, may_bill_gpu=True)
