"""The address of a Dask scheduler, and which addresses may be used.

Invariants:
1. Dask sends pickles, and a pickle is code. Whoever can write to a connection runs code on both of its ends. So a
   connection over a network has TLS with certificates of both sides; without TLS it stays on this machine.
"""

import ipaddress
from urllib.parse import urlsplit

from agent.lab.workers.cluster_error import ClusterError

PORT = 8786
"""The scheduler's port by default, in Dask and here."""
FORM = "tls://HOST:8786, or tcp://127.0.0.1:8786 for a scheduler on this machine or the near end of an SSH tunnel"


def scheduler(text: str) -> str:
    """Return a scheduler's address with its port.

    Raises:
        ClusterError: it is no such address, or it would speak over a network without TLS.
    """
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", PORT if parts.port is None else parts.port
    except ValueError:
        raise ClusterError("bad_address", f"--on {text}: write {FORM}") from None
    is_plain = not (parts.path.strip("/") or parts.query or parts.fragment or parts.username or parts.password)
    if parts.scheme not in {"tls", "tcp"} or not host or not is_plain:
        raise ClusterError("bad_address", f"--on {text}: write {FORM}")
    address = f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}"
    if not is_safe(address):
        sentence = f"--on {text}: Dask sends code, and tcp:// to another machine has no TLS; write {FORM}"
        raise ClusterError("no_tls", sentence)
    return address


def is_safe(address: str) -> bool:
    """Return whether an address has TLS or is of this machine alone."""
    parts = urlsplit(address)
    if parts.scheme == "tls":
        return True
    host = parts.hostname or ""
    try:
        return parts.scheme == "tcp" and (host == "localhost" or ipaddress.ip_address(host).is_loopback)
    except ValueError:
        return False
