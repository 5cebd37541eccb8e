"""Addresses of a machine: its shell, and the ports that our start script published.

Addresses are untrusted: anything that is no address or port is dropped.
"""

import ipaddress
import re
from collections.abc import Iterable

_DESTINATION = re.compile(r"(?:[a-z_][a-z0-9_-]{0,31}@)?([A-Za-z0-9.-]{1,100}|\[[0-9a-fA-F:]{2,45}\])(?::(\d{1,5}))?")
_SSH = 22
_HIGHEST = 65_535


def ssh(destination: str | None) -> str:
    """Return the address of a shell as HOST:PORT, or an empty text; its user is `ubuntu`."""
    place = _place(destination)
    return "" if place is None else f"{place[0]}:{place[1]}"


def ports(destination: str | None, published: Iterable[int]) -> str:
    """Return "8000/tcp=1.2.3.4:8000 ..." of the ports that the machine publishes under its own address."""
    place = _place(destination)
    if place is None or not _is_address(place[0]):
        return ""
    return " ".join(f"{port}/tcp={place[0]}:{port}" for port in sorted(set(published)))


def _place(destination: str | None) -> tuple[str, int] | None:
    match = _DESTINATION.fullmatch((destination or "").strip()[:200])
    if match is None:
        return None
    port = int(match[2] or _SSH)
    return (match[1], port) if 0 < port <= _HIGHEST else None


def _is_address(place: str) -> bool:
    try:
        ipaddress.ip_address(place.strip("[]"))
    except ValueError:
        return False
    return True
