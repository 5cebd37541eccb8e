"""Draws from a seed an array whose tasks go on with the host of the one before, beside all other works.

It has dice of its own and draws after all that was there before, so that all other stories stay the same.
"""

import dataclasses
import random
from collections.abc import Iterator

from tests.disasters.auctions.auction_draw import MARKET
from tests.disasters.story import BUCKET, CALM_FROM, Deed, Guarded, Story, Strike, Work

SHARE = 1 / 8
FATES = ("rival", "exit", "host_gone", "near_end", "maintenance", "kill_9", "restart", "release")
OF_THE_BUCKET = ("bucket_away", "bucket_slow", "lie_deaf", "lie_false_done", "lie_mute", "lie_stale")
KINDS = ("away", "refused", "slow", "too_slow", "lost_after", "death_before", "death_after")


def kept(story: Story) -> Story:
    """Return the story of a seed with such an array, or as it is."""
    dice = random.Random(f"disaster/{story.seed}/kept hosts")
    markets = tuple(market for market in story.markets if market != MARKET)
    if dice.random() >= SHARE or not markets:
        return story
    strikes = (*story.strikes, *_strikes(dice))
    return dataclasses.replace(
        story,
        works=(*story.works, _array(dice, f"w{len(story.works)}", markets)),
        strikes=tuple(sorted(strikes, key=lambda each: (each.market, each.place, each.number))),
        deeds=tuple(sorted((*story.deeds, *_deeds(dice)), key=lambda each: each.cycle)),
    )


def _array(dice: random.Random, name: str, markets: tuple[str, ...]) -> Work:
    guard = Guarded(
        is_on_disk=dice.random() < 0.3,
        needs=dice.choice((300.0, 600.0, 1200.0)),
        code=dice.choice((0, 0, 0, 0, 1)),
        interval=dice.choice((120.0, 300.0)),
        takes=dice.choice((1.0, 5.0)),
        upload=dice.choice((2.0, 10.0)),
        deadman=dice.choice((0.0, 0.0, 3600.0)),
        is_warned=dice.random() < 0.5,
        keeps_host=True,
    )
    strategy, at_once = dice.choice(("patient", "ondemand", "ondemand", "hedged")), dice.choice((1, 2))
    return Work(name, "batch", strategy, dice.choice((3, 5, 8)), markets, at_once=at_once, guard=guard)


def _strikes(dice: random.Random) -> Iterator[Strike]:
    """Draw faults of the notes with the next task."""
    for number in range(1, 9):
        if dice.random() < 0.25:
            yield Strike(BUCKET, "next", number, dice.choice(KINDS), dice.choice((1, 1, 2)))


def _deeds(dice: random.Random) -> Iterator[Deed]:
    for _ in range(dice.randint(0, 3)):
        began, pick = dice.randrange(10, CALM_FROM - 10), dice.randrange(64)
        yield Deed(began, dice.choice((*FATES, *OF_THE_BUCKET)), pick, dice.uniform(0.05, 0.6))
        if dice.random() < 0.4:
            yield Deed(began + dice.randint(0, 8), dice.choice(FATES), pick, dice.uniform(0.05, 0.6))
