"""Proxies in front of services, as the program uses them."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path


class Format(StrEnum):
    """The form of a list of leases that a proxy reads from a file or over HTTP."""

    TRAEFIK = "traefik"
    CADDY = "caddy"


@dataclass(frozen=True, slots=True)
class Front:
    """A proxy in front of one port of a service: a backend of HAProxy, or a file that a proxy reads."""

    name: str
    workload: str
    """The service behind it."""
    port: int
    """The port of the service's containers."""
    haproxy: Path | None = None
    """HAProxy's runtime socket; None for a proxy that reads a file."""
    backend: str = ""
    """HAProxy's backend for this front."""
    file: Path | None = None
    """The file with the list of leases; None with HAProxy."""
    format: Format = Format.TRAEFIK
    """The form of that file."""
    drain: timedelta = timedelta()
    """How long an ending of ours waits for the requests of its lease; zero: it waits for none."""
