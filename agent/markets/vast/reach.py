"""Addresses of an instance: the market's proxy for ssh, and the public address of each open port.

Addresses are untrusted: anything that is no address or port is dropped.
"""

import ipaddress
from typing import Any

from agent.markets import text

MOST_PORTS = 64
_HIGHEST = 65_535


def ssh(host: str | None, port: int | None, public_address: str | None) -> str:
    """Return the ssh address as HOST:PORT, or the public address alone, or an empty text."""
    if host and port:
        return f"{text.clean(host)}:{port}"
    return text.clean(public_address or "")


def ports(mappings: Any, public_address: str | None) -> str:  # noqa: ANN401 - the vendor's JSON
    """Return "8080/tcp=1.2.3.4:41234 ..." of the market's {"8080/tcp": [{"HostPort": "41234"}]}; empty without any."""
    try:
        address = ipaddress.ip_address((public_address or "").strip())
    except ValueError:
        return ""
    if not isinstance(mappings, dict):
        return ""
    shown = f"[{address}]" if address.version == 6 else str(address)  # noqa: PLR2004 - of the protocol
    found = []
    for name, places in sorted(mappings.items(), key=str)[:MOST_PORTS]:
        outside = _outside(places)
        number, _, kind = str(name).partition("/")
        if outside and _is_port(number) and kind in {"tcp", "udp"}:
            found.append(f"{number}/{kind}={shown}:{outside}")
    return " ".join(found)


def _outside(places: Any) -> str:  # noqa: ANN401 - the vendor's JSON
    place = places[0] if isinstance(places, list) and places else None
    port = str(place.get("HostPort", "")) if isinstance(place, dict) else ""
    return port if _is_port(port) else ""


def _is_port(number: str) -> bool:
    return number.isascii() and number.isdecimal() and len(number) <= 5 and 0 < int(number) <= _HIGHEST  # noqa: PLR2004
