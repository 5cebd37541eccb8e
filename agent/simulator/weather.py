"""The weather: which declared faults are active now, which of them strike a call, and their effect on the world.

1. Faults of the climate begin at their second; those of POST /weather begin at once.
2. A fault that ends, by time or by hand, undoes its effect: silent hosts answer, hanging pulls go on, credit returns. A
   host that is gone stays gone.
3. Seeded: the same declarations and the same calls are struck alike.
4. A field lie changes the bytes of an answer alone; it counts an answer only where it found something to change.
"""

import dataclasses
import heapq
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from agent.simulator import faults, field_lies
from agent.simulator.faults import Fault
from agent.simulator.instances.rented import Rented
from agent.simulator.market_model import Refusal

CALM: Mapping[str, Fault] = {}
PERSONS_LABEL = "a person's"


class _Host(Protocol):
    is_gone: bool


class _Containers(Protocol):
    notice_seconds: float
    gpu_lies: dict[int, Mapping[str, Any]]


class Land(Protocol):
    """The weather's access to the world of either market."""

    @property
    def now(self) -> float: ...  # noqa: D102 - as in world.py, all of them
    @property
    def containers(self) -> _Containers: ...  # noqa: D102
    @property
    def credit(self) -> float: ...  # noqa: D102
    @property
    def hosts(self) -> Mapping[int, _Host]: ...  # noqa: D102
    def advance_to(self, now: float) -> None: ...  # noqa: D102
    def live_contracts(self) -> Sequence[Rented]: ...  # noqa: D102
    def set_credit(self, dollars: float) -> None: ...  # noqa: D102
    def set_host_offline(self, machine_id: int, until: float | None) -> None: ...  # noqa: D102
    def set_host_online(self, machine_id: int) -> None: ...  # noqa: D102
    def set_host_gone(self, machine_id: int) -> None: ...  # noqa: D102
    def fail_pull(self, contract_id: int | None = None, *, probability: float = 1.0) -> None: ...  # noqa: D102
    def stick_loading(self, contract_id: int | None = None, *, probability: float = 1.0) -> None: ...  # noqa: D102
    def calm_pulls(self) -> None: ...  # noqa: D102


class StillLand:
    """A world in which no fault finds anything: for a market of a package that takes faults of calls alone."""

    credit = 0.0

    def __init__(self, start: float) -> None:
        """Begin at `start`, epoch seconds."""
        self.now = start
        self.containers = StillContainers()
        self.hosts: Mapping[int, _Host] = {}

    def advance_to(self, now: float) -> None:
        """Move its time alone."""
        self.now = max(self.now, now)

    def live_contracts(self) -> Sequence[Rented]:
        """Return nothing."""
        return ()

    def set_credit(self, dollars: float) -> None:
        """Do nothing, as every method below."""

    def set_host_offline(self, machine_id: int, until: float | None) -> None: ...  # noqa: D102
    def set_host_online(self, machine_id: int) -> None: ...  # noqa: D102
    def set_host_gone(self, machine_id: int) -> None: ...  # noqa: D102
    def fail_pull(self, contract_id: int | None = None, *, probability: float = 1.0) -> None: ...  # noqa: D102
    def stick_loading(self, contract_id: int | None = None, *, probability: float = 1.0) -> None: ...  # noqa: D102
    def calm_pulls(self) -> None: ...  # noqa: D102


@dataclasses.dataclass(slots=True)
class StillContainers:
    """The settings of containers that do not exist."""

    notice_seconds: float = 0.0
    gpu_lies: dict[int, Mapping[str, Any]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(slots=True)
class Blow:
    """An active fault: its span of time, and the state that it took from the world."""

    fault_id: int
    fault: Fault
    since: float
    until: float
    dice: random.Random
    hosts: tuple[int, ...] = ()
    credit: float = 0.0
    labels: tuple[tuple[Rented, str | None], ...] = ()
    left: float = math.inf  # calls that it may still strike
    is_waiting: bool = False  # a fault of hosts that found none of ours yet


class Weather:
    """The faults of one market; it drives the world through their beginnings and ends."""

    def __init__(
        self,
        world: Land,
        seed: int,
        declarations: Iterable[Mapping[str, Any]] = (),
        *,
        market: str = "",
        is_first: bool = False,
    ) -> None:
        """Schedule the climate's declarations for this market; `at_seconds` count from now.

        Faults without the name of a market are for the one that `is_first`.
        """
        self._world = world
        self._markets = {faults.ALL, market} | ({""} if is_first else set())
        self._seed = seed
        self._blows: dict[int, Blow] = {}
        self.next_id = 1
        self._due: list[tuple[float, int, Fault]] = []
        self.on_begin: Callable[[Fault], None] | None = None
        for order, declaration in enumerate(declarations):
            at = world.now + float(declaration.get("at_seconds", 0.0))
            fault = faults.parse(declaration)
            if self.is_for(fault):
                heapq.heappush(self._due, (at, order, fault))

    def is_for(self, fault: Fault) -> bool:
        """Return whether a fault is for this market."""
        return fault.market in self._markets

    def names(self) -> list[tuple[int, str]]:
        """Return id and name of the active faults."""
        return [(blow.fault_id, blow.fault.name) for blow in self._blows.values()]

    def add(self, fault: Fault, fault_id: int | None = None) -> int:
        """Start a fault now and return its id. Raises Refusal for a host or contract that does not exist."""
        self.next_id = self.next_id if fault_id is None else fault_id
        try:
            return self._begin(fault, self._world.now)
        except Refusal:
            del self._blows[self.next_id - 1]
            raise

    def clear(self, fault_id: int) -> bool:
        """End one fault. Return False if no active fault has that id."""
        blow = self._blows.pop(fault_id, None)
        if blow is None:
            return False
        self._end(blow)
        return True

    def clear_all(self) -> int:
        """End every fault and cancel those that the climate has still scheduled. Return how many ended."""
        blows = list(self._blows.values())
        self._blows.clear()
        self._due.clear()
        for blow in blows:
            self._end(blow)
        return len(blows)

    def advance_to(self, now: float) -> None:
        """Move the world to `now`, stopping at every beginning and end of a fault on the way."""
        while (edge := self._next_edge()) <= now:
            self._world.advance_to(edge)
            for blow in [blow for blow in self._blows.values() if blow.until <= edge]:
                self.clear(blow.fault_id)
            while self._due and self._due[0][0] <= edge:
                _, _, fault = heapq.heappop(self._due)
                self._begin(fault, edge)
        self._world.advance_to(now)
        for blow in self._blows.values():
            if blow.is_waiting:
                self._strike_hosts(blow)

    def struck(self, method: str, path: str) -> Mapping[str, Fault]:
        """Return the faults that strike this call, by name; the newest of a name wins."""
        if not self._blows:
            return CALM
        found: dict[str, Fault] = {}
        for blow in list(self._blows.values()):
            if blow.fault.name != faults.FIELD_LIE and _strikes(blow, method, path):
                found[blow.fault.name] = blow.fault
                self._spend(blow)
        return found

    def falsified(
        self,
        method: str,
        route: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        words: field_lies.Vocabulary,
    ) -> tuple[Mapping[str, str], bytes]:
        """Return the headers and the body of an answer after the active field lies have changed them."""
        for blow in list(self._blows.values()):
            if blow.fault.name != faults.FIELD_LIE or not _strikes(blow, method, route):
                continue
            lie = blow.fault.lie
            false_headers = field_lies.header(lie, headers)
            false_body = field_lies.body(lie, body, path, words) if false_headers is None else None
            headers, body = false_headers or headers, false_body or body
            if false_headers is not None or false_body is not None:
                self._spend(blow)
        return headers, body

    def _spend(self, blow: Blow) -> None:
        blow.left -= 1
        if blow.left <= 0:
            self.clear(blow.fault_id)

    def _next_edge(self) -> float:
        first_due = self._due[0][0] if self._due else math.inf
        return min([first_due, *(blow.until for blow in self._blows.values())])

    def _begin(self, fault: Fault, now: float) -> int:
        fault_id = self.next_id
        self.next_id += 1
        dice = random.Random(f"{self._seed}/weather/{fault_id}")
        blow = Blow(fault_id, fault, now, now + fault.seconds, dice, left=fault.count)
        self._blows[fault_id] = blow
        if fault.name in faults.WORLD_FAULTS:
            self._strike_world(blow)
        if self.on_begin is not None:
            self.on_begin(fault)
        return fault_id

    def _strike_world(self, blow: Blow) -> None:
        fault = blow.fault
        contract_id = int(fault.extra["contract_id"]) if "contract_id" in fault.extra else None
        if fault.name == "no_credit":
            left = fault.number("credit", 0.0)
            blow.credit = self._world.credit - left
            self._world.set_credit(left)
        elif fault.name == "stuck_loading":
            self._world.stick_loading(contract_id, probability=fault.probability)
        elif fault.name == "pull_failure":
            self._world.fail_pull(contract_id, probability=fault.probability)
        elif fault.name == "label_edit":
            self._edit_labels(blow, contract_id)
        elif fault.name == "interruption_notice":
            self._world.containers.notice_seconds = fault.number("notice", 10.0)
        elif fault.name == "gpu_lie":
            self._world.containers.gpu_lies[blow.fault_id] = fault.extra
        else:
            self._strike_hosts(blow)

    def _edit_labels(self, blow: Blow, contract_id: int | None) -> None:
        share = blow.fault.probability
        edited = [
            contract
            for contract in self._world.live_contracts()
            if contract_id in (None, contract.contract_id) and (share >= 1.0 or blow.dice.random() < share)
        ]
        blow.labels = tuple((contract, contract.label) for contract in edited)
        for contract in edited:
            contract.label = str(blow.fault.extra.get("label", PERSONS_LABEL))

    def _strike_hosts(self, blow: Blow) -> None:
        if "machine_id" in blow.fault.extra:
            machines = [int(blow.fault.extra["machine_id"])]
        else:
            machines = sorted({contract.host.machine_id for contract in self._held()})
        blow.is_waiting = not machines
        # A fault that waits for a host of ours lasts its seconds from the moment it finds one.
        blow.until = math.inf if blow.is_waiting else self._world.now + blow.fault.seconds
        share = blow.fault.probability
        blow.hosts = tuple(machine for machine in machines if share >= 1.0 or blow.dice.random() < share)
        for machine_id in blow.hosts:
            if blow.fault.name == "host_gone":
                self._world.set_host_gone(machine_id)
            else:
                self._world.set_host_offline(machine_id, None)

    def _held(self) -> list[Rented]:
        return [contract for contract in self._world.live_contracts() if contract.holds_gpu]

    def _end(self, blow: Blow) -> None:
        name = blow.fault.name
        self._world.containers.gpu_lies.pop(blow.fault_id, None)
        if name == "no_credit":
            self._world.set_credit(self._world.credit + blow.credit)
        elif name == "host_offline":
            for machine_id in blow.hosts:
                if not self._world.hosts[machine_id].is_gone:
                    self._world.set_host_online(machine_id)
        elif name == "interruption_notice":
            self._world.containers.notice_seconds = 0.0
        elif name in ("stuck_loading", "pull_failure"):
            self._world.calm_pulls()
        for contract, label in blow.labels:
            contract.label = label


def _strikes(blow: Blow, method: str, path: str) -> bool:
    fault = blow.fault
    return fault.matches(method, path) and (fault.probability >= 1.0 or blow.dice.random() < fault.probability)
