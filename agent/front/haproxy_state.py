"""The servers of one backend of HAProxy, as its runtime socket reports them."""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_MAINTENANCE = 0x01 | 0x02 | 0x20
"""Administrative states in which a server gets nothing: by an order, by a server that it tracks, without an address.
The state 0x04, by the configuration, stays set after an order has ended the maintenance."""
_DRAIN = 0x08 | 0x10
_LEAST_FIELDS = 19
MOST_SERVERS = 4096


class UnreadableStateError(ValueError):
    """The answer of a proxy is no state of servers."""


@dataclass(frozen=True, slots=True)
class Server:
    """One server of the backend."""

    name: str
    address: str
    port: int
    is_off: bool
    """Whether it is in maintenance: it gets no connection and is not checked."""
    is_drained: bool
    """Whether it gets no new connection, and finishes its present ones."""
    sessions: int = 0
    """The requests that it has, or that wait for it."""
    status: str = ""
    """HAProxy's own word, such as UP, DOWN or MAINT."""

    @property
    def place(self) -> tuple[str, int]:
        """The address and the port."""
        return self.address, self.port

    @property
    def is_up(self) -> bool:
        """Whether it gets new connections by HAProxy's own health check."""
        return not self.is_off and not self.is_drained and self.status.startswith(("UP", "no check"))


def question(backend: str) -> str:
    """Return the commands whose answer `servers` reads."""
    return f"show servers state {backend}; show stat {backend} 4 -1"


def servers(answer: str, backend: str) -> tuple[Server, ...]:
    """Return the servers of a backend from the answer to `question`, in HAProxy's order.

    Raises:
        UnreadableStateError: with a sentence.
    """
    if "Can't find backend" in answer:
        raise UnreadableStateError(f"it has no backend {backend}")
    states, _, figures = answer.partition("\n# pxname,")
    sessions = dict(_sessions(f"# pxname,{figures}")) if figures else {}
    found = tuple(_server(line.split(), sessions) for line in _rows(states.splitlines(), backend))
    if not found:
        raise UnreadableStateError("its answer has no server; check the backend's server-template")
    if len(found) > MOST_SERVERS:
        raise UnreadableStateError(f"its backend has more than {MOST_SERVERS} servers")
    return found


def _rows(lines: Iterable[str], backend: str) -> Iterator[str]:
    for line in lines:
        fields = line.split()
        if len(fields) >= _LEAST_FIELDS and fields[1] == backend:
            yield line


def _server(fields: list[str], sessions: dict[str, tuple[int, str]]) -> Server:
    try:
        admin, port = int(fields[6]), int(fields[18])
    except ValueError as error:
        raise UnreadableStateError("its answer has a word where a number belongs") from error
    busy, status = sessions.get(fields[3], (0, ""))
    return Server(fields[3], fields[4], port, bool(admin & _MAINTENANCE), bool(admin & _DRAIN), busy, status)


def _sessions(table: str) -> Iterator[tuple[str, tuple[int, str]]]:
    """Yield the requests that each server has or that wait for it, and its status, by its name."""
    for row in csv.DictReader(table.removeprefix("# ").splitlines()):
        name = row.get("svname")
        try:
            if name:
                yield name, (int(row.get("scur") or 0) + int(row.get("qcur") or 0), row.get("status") or "")
        except ValueError as error:
            raise UnreadableStateError("its figures have a word where a number belongs") from error
