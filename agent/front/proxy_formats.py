"""The useful leases of a service in the forms that proxies read from a file or over HTTP."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agent.config.front_settings import Format
from agent.front.served_leases import ServedLease


def written(name: str, leases: Sequence[ServedLease], form: Format) -> str:
    """Return the list of a front as JSON, with a newline at its end; a leaving lease is not in it."""
    kept = [_address(lease) for lease in leases if not lease.is_leaving]
    content = _traefik(name, kept) if form is Format.TRAEFIK else _caddy(kept)
    return json.dumps(content, indent=2) + "\n"


def _traefik(name: str, addresses: Sequence[str]) -> Mapping[str, Any]:
    """Return Traefik's dynamic configuration with one service; a router of the operator's own refers to it."""
    servers = [{"url": f"http://{address}"} for address in addresses]
    return {"http": {"services": {f"gpubid_{name}": {"loadBalancer": {"servers": servers}}}}}


def _caddy(addresses: Sequence[str]) -> Sequence[Mapping[str, str]]:
    """Return the upstreams of Caddy's reverse proxy, as its API takes them."""
    return [{"dial": address} for address in addresses]


def _address(lease: ServedLease) -> str:
    host = f"[{lease.address}]" if ":" in lease.address else lease.address
    return f"{host}:{lease.port}"
