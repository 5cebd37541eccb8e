"""Ports for programs that must be told theirs before they bind it.

A port that the kernel chose and that was closed again may be given to any other program before ours binds it. So these
are below the kernel's range, and each worker of a run has its own.
"""

import itertools
import os
import socket
from collections.abc import Iterator
from pathlib import Path

FIRST = 10_000
BELOW = 32_768
"""The kernel's range begins here, unless the machine is set otherwise."""
WORKERS = 20
"""Workers with ports of their own."""
APART = 61
"""Ports between the first ones of two runs that were started together."""
KERNEL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def share(worker: int, below: int = BELOW) -> range:
    """Return the ports of one worker, out of those from FIRST up to `below`."""
    size = (below - FIRST) // WORKERS
    start = FIRST + worker % WORKERS * size
    return range(start, start + size)


def below_kernel() -> int:
    """Return the first port that the kernel may choose; BELOW where it leaves us none."""
    lowest = int(KERNEL_RANGE.read_text().split()[0]) if KERNEL_RANGE.exists() else BELOW
    return lowest if lowest >= FIRST + WORKERS * 100 else BELOW


def free() -> int:
    """Return a port of 127.0.0.1 that nobody serves, and that this process was not given before."""
    return next(_FREE)


def _found() -> Iterator[int]:
    mine = share(int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")), below_kernel())
    # Another run on this machine has the same workers: it begins elsewhere, also if it was started just after this one.
    first = os.getpid() * APART % len(mine)
    for port in itertools.chain(mine[first:], mine[:first]):
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        yield port


_FREE = _found()
