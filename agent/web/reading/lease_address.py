"""Where a lease is reached: its ssh command and its open ports. Addresses come from the market and are not trusted."""

import re

from agent.domain.record.lease import Lease

_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:-]{0,252}")
"""A name that begins with a dash would be read as an option of ssh."""


def ssh(held: Lease) -> list[str] | None:
    """Return the command that goes there, or None while nobody knows where that is."""
    host, _, port = held.ssh_address.rpartition(":")
    if not _HOST.fullmatch(host) or not port.isdecimal():
        return None
    return ["ssh", "-p", port, f"root@{host}"]


def ports(held: Lease) -> dict[str, str]:
    """Return {"8080/tcp": "1.2.3.4:41234"}: each open port of the container and where it is from outside."""
    pairs = (entry.partition("=") for entry in held.ports.split())
    return {name: place for name, _, place in pairs if place}
