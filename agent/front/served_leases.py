"""The useful leases of a service at their addresses, as a proxy may be given them."""

import ipaddress
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from agent.decide.reconcile.probes import probing
from agent.domain.record.lease import Lease
from agent.domain.work import usefulness
from agent.domain.work.workload import Workload

_PORTS = range(1, 65536)


@dataclass(frozen=True, slots=True, order=True)
class ServedLease:
    """One useful lease of a service. `address` is an IP address, since a proxy resolves no names at run time."""

    lease_id: str
    address: str
    port: int
    is_leaving: bool = False
    """Whether its ending waits until its requests are answered."""

    @property
    def place(self) -> tuple[str, int]:
        """The address and the port: a proxy knows a server by them alone."""
        return self.address, self.port


def served_leases(
    leases: Iterable[Lease],
    work: Workload,
    port: int,
    leaving: Collection[str] = (),
    *,
    may_be_local: Collection[str] = (),
) -> tuple[ServedLease, ...]:
    """Return the useful leases of a workload at one port of its containers, in the order of their slots.

    Addresses come from the market and from hosts. One that is no public IP address is left out, except in the markets
    `may_be_local`; so is a second lease at an address that is given already: the market has not noticed a change yet.
    """
    found: dict[tuple[str, int], ServedLease] = {}
    for lease in sorted(leases, key=lambda each: (each.slot.index, each.opened_at, each.lease_id)):
        if lease.slot.workload != work.name or lease.is_held or not usefulness.is_useful(lease, work):
            continue
        place = _place(lease, port, is_local=lease.market in may_be_local)
        if place is not None:
            found.setdefault(place, ServedLease(lease.lease_id, *place, is_leaving=lease.lease_id in leaving))
    return tuple(found.values())


def _place(lease: Lease, port: int, *, is_local: bool) -> tuple[str, int] | None:
    """Return where a port of a lease's container is reached, or None."""
    host, _, number = probing.place_of(lease.ports, port).rpartition(":")
    if not (number.isascii() and number.isdecimal() and len(number) < 6 and int(number) in _PORTS):  # noqa: PLR2004 - five digits
        return None
    try:
        address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None
    return (str(address), int(number)) if address.is_global or is_local else None
