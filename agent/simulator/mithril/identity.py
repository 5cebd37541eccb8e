"""The ids of this market: a word for the kind and sixteen letters and digits."""

import random
import string

_LETTERS = string.ascii_letters + string.digits


def fid(rng: random.Random, kind: str) -> str:
    """Draw an id."""
    return f"{kind}_{''.join(rng.choices(_LETTERS, k=16))}"
