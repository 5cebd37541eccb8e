"""The addresses that a file of a market may have: the market names them, and must not name our own network.

Invariants:
1. A file comes by https from an address of the public internet. The name is checked once it is resolved, in the
   connection that asks for it, so that it cannot change in between.
2. A market may name its own host, as it is asked itself. One that is on this machine, as a simulated one is, may also
   name this machine, by http too.
"""

import ipaddress
import socket

import yarl
from aiohttp import abc, resolver

_LOCAL = "localhost"


class InnerAddressError(OSError):
    """A name is that of an address that is not of the public internet."""


def refusal(url: str, market_url: str) -> str:
    """Return why a file is not fetched from an address that a market gave, or an empty text."""
    try:
        parts = yarl.URL(url)
    except ValueError:
        return "it cannot be read"
    if not parts.host or parts.user is not None:
        return "it is not of the web"
    own = yarl.URL(market_url)
    if (parts.scheme, parts.host) == (own.scheme, own.host):
        return ""
    is_here = _is_local(own.host or "") and _is_local(parts.host)
    if parts.scheme != "https" and not (is_here and parts.scheme == "http"):
        return "it is not https"
    if not is_here and (parts.host == _LOCAL or _is_inner(parts.host)):
        return "it is not of the public internet"
    return ""


class OuterResolver(abc.AbstractResolver):
    """Resolves the names of the public internet, and the names that a market may use besides."""

    def __init__(self, market_url: str) -> None:
        """Take the address at which the market is asked, or an empty text."""
        self._resolver = resolver.DefaultResolver()
        self._own = yarl.URL(market_url).host or ""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[abc.ResolveResult]:
        """Return the addresses of a name.

        Raises:
            InnerAddressError: one of them is not allowed.
            OSError: the name is not found.
        """
        found = await self._resolver.resolve(host, port, family)
        is_here = _is_local(self._own)
        for address in (address["host"] for address in found if host != self._own):
            if _is_inner(address) and not (is_here and _is_local(address)):
                raise InnerAddressError(f"{host} is not of the public internet")
        return found

    async def close(self) -> None:
        """Close the resolver."""
        await self._resolver.close()


def _is_local(host: str) -> bool:
    address = _address(host)
    return host == _LOCAL if address is None else address.is_loopback


def _is_inner(host: str) -> bool:
    address = _address(host)
    return address is not None and (not address.is_global or address.is_multicast)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address that a host is, or None for a name; an IPv4 address in IPv6 counts as itself."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
