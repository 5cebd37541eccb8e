"""Draws from a seed what is done about idle GPUs, and after which running the GPUs of its containers idle.

It has dice of its own and draws after all that was there before, so that all other stories stay the same.
"""

import dataclasses
import random

from tests.disasters.auctions.auction_draw import MARKET
from tests.disasters.story import Idle, Story, Work

SHARE = 1 / 8


def idled(story: Story) -> Story:
    """Return the story of a seed with idle GPUs, or as it is."""
    dice = random.Random(f"disaster/{story.seed}/idle")
    if dice.random() >= SHARE:
        return story
    return dataclasses.replace(story, works=tuple(_work(dice, work, story.markets) for work in story.works))


def _work(dice: random.Random, work: Work, markets: tuple[str, ...]) -> Work:
    then = dice.choice(("warn", "pause", "release", "release"))
    idle = Idle(then, lasts=dice.choice((300.0, 900.0, 1800.0)), after=dice.choice((0.0, 120.0, 600.0, 1800.0)))
    if MARKET in (work.markets or markets) and len(work.markets or markets) == 1:
        # No market of auctions shows the use of GPUs.
        return work
    if work.guard is not None:
        # A file that releases the only copy is refused (rule 11).
        kept = "pause" if work.guard.is_on_disk and then == "release" else then
        idle = Idle(kept, idle.lasts)
    return dataclasses.replace(work, idle=idle)
