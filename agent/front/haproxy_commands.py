"""The commands that make the servers of a HAProxy backend equal to the useful leases of a service.

Invariants:
1. A lease keeps its server as long as its address stays the same; no two servers in use have one address.
2. A server that is not wanted any more is put into maintenance: it gets no new connection, and no request is cut.
3. Equal servers and leases give no command, so that either side may restart.
4. New leases get traffic before the leaving ones lose it.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from agent.front.haproxy_state import Server
from agent.front.served_leases import ServedLease


@dataclass(frozen=True, slots=True)
class Changes:
    """Commands in their order, and the leases for which the backend has no server left."""

    commands: tuple[str, ...]
    unplaced: tuple[ServedLease, ...] = ()


def changes(shown: Sequence[Server], wanted: Sequence[ServedLease], backend: str) -> Changes:
    """Return the commands for a backend that has the servers `shown` and should have the leases `wanted`."""
    places = {lease.place for lease in wanted}
    taken: dict[tuple[str, int], Server] = {}
    for each in sorted(shown, key=lambda each: each.is_off):
        if each.place in places:
            taken.setdefault(each.place, each)
    # A server that still answers requests of its former lease is given to a new one last.
    free = iter(sorted(_free(shown, taken.values()), key=lambda each: (not each.is_off, each.sessions, each.name)))
    commands: list[str] = []
    unplaced: list[ServedLease] = []
    for lease in sorted(wanted, key=lambda each: each.is_leaving):
        server = taken.get(lease.place)
        if server is not None and not server.is_off and server.is_drained is lease.is_leaving:
            continue
        if server is None and (server := next(free, None)) is not None:
            commands += _off([server], backend)
            commands.append(f"set server {backend}/{server.name} addr {lease.address} port {lease.port}")
        if server is None:
            unplaced.append(lease)
        else:
            commands.append(f"set server {backend}/{server.name} state {'drain' if lease.is_leaving else 'ready'}")
    return Changes((*commands, *_off(free, backend)), tuple(unplaced))


def _free(shown: Iterable[Server], taken: Collection[Server]) -> Iterator[Server]:
    return (server for server in shown if server not in taken)


def _off(servers: Iterable[Server], backend: str) -> Iterator[str]:
    return (f"set server {backend}/{server.name} state maint" for server in servers if not server.is_off)
