"""The addresses of machines: each has one of its own on loopback, so that its ports have the numbers it publishes.

Simulators on one machine take different addresses, by the number of their process, as far as there are any.
"""

import itertools
import os

_MACHINES = 250
_count = itertools.count()


def drawn() -> str:
    """Return an address that no other machine of this process has, until all have been used."""
    process = os.getpid() % 4096
    return f"127.{96 + process // 256}.{process % 256}.{next(_count) % _MACHINES + 1}"
