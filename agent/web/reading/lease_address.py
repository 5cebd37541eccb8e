"""The addresses of a lease: its ssh command and its open ports. Addresses come from the market and are not trusted."""

import re

from agent.domain.record.lease import Lease

_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:-]{0,252}")
"""A name must not begin with a dash, because ssh would read it as an option."""


def ssh(lease: Lease) -> list[str] | None:
    """Return the ssh command, or None while the address is not known."""
    host, _, port = lease.ssh_address.rpartition(":")
    if not _HOST.fullmatch(host) or not port.isdecimal():
        return None
    return ["ssh", "-p", port, f"root@{host}"]


def ports(lease: Lease) -> dict[str, str]:
    """Return each open port of the container and its outside address: {"8080/tcp": "1.2.3.4:41234"}."""
    pairs = (entry.partition("=") for entry in lease.ports.split())
    return {name: place for name, _, place in pairs if place}
