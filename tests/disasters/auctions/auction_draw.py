"""Draws from a seed whether the market of auctions is in its story, and what befalls it there.

It has dice of its own and draws last, so that all other stories stay the same.
"""

import dataclasses
import random
from collections.abc import Iterator

from tests.disasters import strikes
from tests.disasters.story import CALM_FROM, Auctions, Deed, Story, Work

MARKET = "mithril"
SHARE = 1 / 6
ALONE = 0.35
"""The share of these stories in which it is the only market."""
PLACES = {
    "listing": (300, 0.05),
    "machines": (300, 0.04),
    "look": (40, 0.15),
    "named": (30, 0.20),
    "paid": (120, 0.08),
    "notice": (12, 0.20),
    "rent": (24, 0.35),
    "release": (24, 0.30),
    "state": (24, 0.25),
    "rebid": (24, 0.25),
    "search": (120, 0.06),
    "account": (40, 0.08),
    "inbox": (60, 0.08),
}
LIES = {
    "listing": ("id", "label", "limit", "state", "host", "twice", "missing_row", "empty", "stale", "date"),
    "machines": ("state", "missing_row", "empty", "twice", "stale"),
    "look": ("limit", "state", "host", "label", "http_404"),
    "paid": ("paid",),
    "rent": ("wrong_id", "refused_with_id", "no_id", "invalid", "low_limit"),
    "rebid": ("invalid", "low_limit"),
    "state": ("invalid",),
    "release": strikes.RELEASE_LIES,
    "search": ("untold",),
}
FATES = ("pool_taken", "pool_taken", "pool_rival", "pool_rival", "pool_reserved", "host_gone", "host_offline")
MEETINGS = ("kill", "kill_9", "restart", "pause", "sleep", "pool_rival", "release")
"""What comes soon after a pool is taken: in its notice, or while its bids wait."""


def auctioned(story: Story) -> Story:
    """Return the story of a seed with the market of auctions, or as it is."""
    dice = random.Random(f"disaster/{story.seed}/auctions")
    if dice.random() >= SHARE:
        return story
    is_alone = dice.random() < ALONE
    markets = (MARKET,) if is_alone else (*story.markets, MARKET)
    auctions = Auctions(
        tells=dice.choice((0.0, 0.0, 0.5, 1.0)),
        bills_notice=dice.random() < 0.7,
        rows=dice.choice((0, 0, 1, 2)),
        most=dice.choice((0.9, 1.6)),
        per_hour=dice.choice((0.0, 0.0, 0.0, 2.0)),
    )
    works = tuple(_work(dice, work, story.markets, is_alone=is_alone) for work in story.works)
    kept = story.strikes if not is_alone else [each for each in story.strikes if each.market not in story.markets]
    struck = (*kept, *strikes.drawn(dice, (MARKET,), PLACES, LIES))
    deeds = (*story.deeds, *_deeds(dice))
    return dataclasses.replace(
        story,
        markets=markets,
        works=works,
        auctions=auctions,
        strikes=tuple(sorted(struck, key=lambda each: (each.market, each.place, each.number))),
        deeds=tuple(sorted(deeds, key=lambda each: each.cycle)),
    )


def _work(dice: random.Random, work: Work, others: tuple[str, ...], *, is_alone: bool) -> Work:
    """Let some works run on auctions alone. No log of theirs is kept there, and these guards know no machines."""
    is_own = dice.random() < 0.4
    if is_alone:
        strategy = "patient" if work.strategy == "ondemand" else work.strategy
        bare = dataclasses.replace(work, guard=None, health=None, strategy=strategy)
        return dataclasses.replace(bare, markets=(), is_read=False, ends_after=0.0)
    if work.guard is not None or work.health is not None:
        return work if work.markets else dataclasses.replace(work, markets=others)
    if is_own and work.strategy != "ondemand":
        return dataclasses.replace(work, markets=(MARKET,), is_read=False, ends_after=0.0)
    return work if work.markets else dataclasses.replace(work, is_read=False, ends_after=0.0)


def _deeds(dice: random.Random) -> Iterator[Deed]:
    for _ in range(dice.randint(1, 5)):
        began, pick = dice.randrange(2, CALM_FROM), dice.randrange(64)
        fate = dice.choice(FATES)
        yield Deed(began, fate, pick, dice.random())
        if fate.startswith("pool") and dice.random() < 0.3:
            yield Deed(min(began + dice.randint(1, 20), CALM_FROM - 1), dice.choice(MEETINGS), pick, dice.random())
    if dice.random() < 0.3:
        yield Deed(0, "pool_taken", dice.randrange(64), dice.uniform(0.1, 0.4))
