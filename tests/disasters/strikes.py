"""Draws the faults of exchanges: a few kinds for a seed, at an intensity of its own."""

import itertools
import random
from collections.abc import Iterator, Mapping

from tests.disasters.story import Strike

# How many exchanges of a place are worth naming in one seed, and the share of them that is struck at full intensity.
PLACES = {
    "listing": (260, 0.06),
    "look": (40, 0.15),
    "rent": (24, 0.30),
    "release": (24, 0.30),
    "state": (24, 0.25),
    "rebid": (12, 0.25),
    "search": (60, 0.06),
    "account": (40, 0.08),
    "inbox": (30, 0.08),
    "log": (60, 0.05),
}
LOST = ("never_left", "lost_before", "lost_after", "half")
LATE = ("slow", "too_slow")
REFUSED = ("http_500", "http_503_after", "html_403", "throttled", "malformed", "http_401", "http_404")
DEATH = ("death_before", "death_after")
LISTING_LIES = ("id", "label", "price", "state", "host", "twice", "missing_row", "empty", "stale", "date")
LOOK_LIES = ("price", "state", "host", "label", "http_404")
RENT_LIES = ("wrong_id", "refused_with_id", "no_id")
RELEASE_LIES = ("refused", "gone")
ENDLESS, NO_NUMBER = -1.0, -2.0
"""A Retry-After that says "inf", and one that says no number at all."""
WAITS = (0.0, 1.0, 30.0, 600.0, 31_536_000.0, ENDLESS, NO_NUMBER)
"""What Retry-After says."""
FACTORS = (1000.0, 0.1, 1.3, 0.0, -1.0, -2.0, -3.0)
"""Factors of a price; -1 is no number, -2 a text, and -3 leaves the field out."""


LIES: Mapping[str, tuple[str, ...]] = {
    "listing": LISTING_LIES,
    "look": LOOK_LIES,
    "rent": RENT_LIES,
    "release": RELEASE_LIES,
}


def drawn(
    dice: random.Random,
    markets: tuple[str, ...],
    places: Mapping[str, tuple[int, float]] = PLACES,
    lies_of: Mapping[str, tuple[str, ...]] = LIES,
) -> Iterator[Strike]:
    """Draw faults of exchanges: a few kinds for this seed, at an intensity of its own."""
    kinds = [kind for kind in (LOST, LATE, REFUSED, DEATH) if dice.random() < 0.4]
    lies = dice.random() < 0.6
    intensity = dice.choice((0.3, 1.0, 2.0))
    for market, (place, (most, share)) in itertools.product(markets, places.items()):
        faults = [*itertools.chain(*kinds), *(_lies(dice, lies_of.get(place, ())) if lies else ())]
        for number in range(1, most + 1) if faults else ():
            if dice.random() < share * intensity * 0.5:
                yield _strike(dice, market, place, number, dice.choice(faults))


def _lies(dice: random.Random, lies: tuple[str, ...]) -> list[str]:
    """Return the lies of a place in this seed, each as often as all other faults of a kind together."""
    return [each for each in lies if dice.random() < 0.6] * 2


def _strike(dice: random.Random, market: str, place: str, number: int, fault: str) -> Strike:
    times = dice.choices((1, 2, 4, 12), (12, 3, 2, 1))[0]
    amount = {
        "throttled": dice.choice(WAITS),
        "price": dice.choice(FACTORS),
        "date": dice.choice((-3600.0, 120.0, 86_400.0)),
    }.get(fault, float(dice.randrange(8)))
    if fault == "price" and dice.random() < 0.5:
        times = dice.randint(2, 40)
    if fault in {"wrong_id", "label", "id", *DEATH}:
        times = 1
    return Strike(market, place, number, fault, times, amount)
