"""The ids of this market, a word for the kind and sixteen letters and digits, and the addresses of its machines.

Each machine has an address of its own on loopback, so that its ports have the numbers that it publishes. Simulators on
one machine take different addresses, by the number of their process, as far as there are any.
"""

import itertools
import os
import random
import string

_LETTERS = string.ascii_letters + string.digits
_MACHINES = 250
_count = itertools.count()


def fid(rng: random.Random, kind: str) -> str:
    """Draw an id."""
    return f"{kind}_{''.join(rng.choices(_LETTERS, k=16))}"


def address() -> str:
    """Return an address that no other machine of this process has, until all have been used."""
    process = os.getpid() % 4096
    return f"127.{96 + process // 256}.{process % 256}.{next(_count) % _MACHINES + 1}"
