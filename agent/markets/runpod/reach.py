"""Addresses of a pod: its published TCP ports, and the market's proxy for HTTP.

Addresses are untrusted: anything that is no address or port is dropped.
"""

import ipaddress
from collections.abc import Iterable

import msgspec

MOST_PORTS = 64
_HIGHEST = 65_535


class Port(msgspec.Struct):
    """One published port of a running pod."""

    private: int | None = None
    public: int | None = None
    type: str | None = None
    ip: str | None = None


class Ends(msgspec.Struct):
    """The ssh address."""

    host: str | None = None
    port: int | None = None


def ports(mappings: Iterable[Port]) -> str:
    """Return "8000/tcp=1.2.3.4:41234 ..." of the ports that are open to the outside, without those behind the proxy."""
    found = {}
    for port in list(mappings)[:MOST_PORTS]:
        place = _place(port.ip or "", port.public)
        if place and port.type in {"tcp", "udp"} and _is_port(port.private):
            found[f"{port.private}/{port.type}"] = place
    return " ".join(f"{name}={found[name]}" for name in sorted(found))


def ssh(direct: Ends | None, proxy: Ends | None) -> str:
    """Return the ssh address as HOST:PORT: the pod's own rather than the market's proxy."""
    for ends in (direct, proxy):
        if ends is not None and ends.host and ends.host.isascii() and ends.host.isprintable() and _is_port(ends.port):
            return f"{ends.host[:100]}:{ends.port}"
    return ""


def _place(address: str, port: int | None) -> str:
    try:
        parsed = ipaddress.ip_address(address.strip())
    except ValueError:
        return ""
    shown = f"[{parsed}]" if parsed.version == 6 else str(parsed)  # noqa: PLR2004 - of the protocol
    return f"{shown}:{port}" if _is_port(port) else ""


def _is_port(number: int | None) -> bool:
    return number is not None and 0 < number <= _HIGHEST
