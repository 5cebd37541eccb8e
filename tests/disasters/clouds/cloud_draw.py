"""Draws from a seed whether dstack's server is in its story, and what befalls it and its clouds there.

It has dice of its own and draws last, so that all other stories stay the same.
"""

import dataclasses
import random
from collections.abc import Iterator

from tests.disasters import strikes
from tests.disasters.story import CALM_FROM, Clouds, Deed, Story, Work

MARKET = "dstack"
SHARE = 1 / 8
ALONE = 0.35
"""The share of these stories in which it is the only market."""
PLACES = {
    "listing": (300, 0.05),
    "machines": (300, 0.04),
    "project": (300, 0.03),
    "look": (40, 0.15),
    "inbox": (40, 0.10),
    "rent": (24, 0.35),
    "release": (60, 0.25),
    "search": (120, 0.06),
    "log": (60, 0.05),
}
LIES = {
    "listing": ("id", "label", "price", "state", "host", "twice", "missing_row", "empty", "stale", "date", "deleted"),
    "machines": ("state", "missing_row", "empty", "twice", "stale", "host"),
    "project": ("no_cloud",),
    "look": ("price", "state", "host", "label", "http_404", "deleted"),
    "inbox": ("empty",),
    "rent": ("wrong_id", "refused_with_id", "no_id"),
    "release": strikes.RELEASE_LIES,
}
FATES = ("host_gone", "host_offline", "rival", "cloud_gives_up", "cloud_lost", "fleet_lost", "called_gone")
FALLBACKS = 0.5
"""The share of the works for all markets that use clouds only as a fallback."""
CLIENT_LOST = 0.5
"""The share of these stories in which the server cannot make its client of a cloud for a while."""
DRY = 0.5
"""The share of these stories in which no cloud has a machine left for a while."""
MEETINGS = ("kill", "kill_9", "restart", "pause", "sleep", "release", "cloud_lost")
"""What comes soon after a machine is lost: while the server ends it."""


def clouded(story: Story) -> Story:
    """Return the story of a seed with dstack's server, or as it is."""
    dice = random.Random(f"disaster/{story.seed}/clouds")
    # The auctions have their own numbers of rows and prices; the two would only hide each other's troubles.
    if dice.random() >= SHARE or story.auctions is not None:
        return story
    is_alone, fallbacks = dice.random() < ALONE, random.Random(f"disaster/{story.seed}/fallbacks")
    clouds = Clouds(
        gives_up=dice.choice((0.0, 0.0, 0.3, 1.0)), capacity=dice.choice((1, 3, 6)), per_hour=dice.choice((0, 0, 0, 2))
    )
    kept = [each for each in story.strikes if not is_alone or each.market not in story.markets]
    struck = (*kept, *strikes.drawn(dice, (MARKET,), PLACES, LIES))
    return dataclasses.replace(
        story,
        markets=(MARKET,) if is_alone else (*story.markets, MARKET),
        works=tuple(
            _behind(fallbacks, _work(dice, each, story.markets, is_alone=is_alone), story.markets)
            for each in story.works
        ),
        clouds=clouds,
        strikes=tuple(sorted(struck, key=lambda each: (each.market, each.place, each.number))),
        deeds=tuple(sorted((*story.deeds, *_deeds(dice), *_droughts(story.seed)), key=lambda each: each.cycle)),
    )


def _work(dice: random.Random, work: Work, others: tuple[str, ...], *, is_alone: bool) -> Work:
    """Let some works run at clouds alone. The guards and ports of these stories know no machines of them."""
    is_own, is_bare = dice.random() < 0.4, work.guard is None and work.health is None
    if is_alone:
        at_once = 0 if work.guard is not None and work.guard.keeps_host else work.at_once
        return dataclasses.replace(work, guard=None, health=None, idle=None, markets=(), at_once=at_once)
    if not is_bare:
        return work if work.markets else dataclasses.replace(work, markets=others)
    if is_own:
        return dataclasses.replace(work, markets=(MARKET,), idle=None)
    return work if work.markets else dataclasses.replace(work, idle=None)


def _behind(dice: random.Random, work: Work, others: tuple[str, ...]) -> Work:
    """Let some works that may run anywhere use clouds only once a slot was down for a while."""
    after = dice.choice((120.0, 600.0))
    if work.markets or dice.random() >= FALLBACKS:
        return work
    return dataclasses.replace(work, markets=others, fallback_after=after)


def _deeds(dice: random.Random) -> Iterator[Deed]:
    for _ in range(dice.randint(1, 5)):
        began, pick = dice.randrange(2, CALM_FROM), dice.randrange(64)
        fate = dice.choice(FATES)
        yield Deed(began, fate, pick, dice.random())
        if dice.random() < 0.4:
            yield Deed(min(began + dice.randint(1, 12), CALM_FROM - 1), dice.choice(MEETINGS), pick, dice.random())
    if dice.random() < 0.8:
        # In good weather a person looks at the consoles of the clouds, as often as the alerts say so.
        yield from (Deed(CALM_FROM + after, "called_gone") for after in (2, 8, 14, 20, 26))
    if dice.random() < CLIENT_LOST:
        began, pick = dice.randrange(2, CALM_FROM), dice.randrange(64)
        yield Deed(began, "client_lost", pick, dice.random())
        for fate in ("cloud_gives_up", "kill", "release", "rival"):
            if dice.random() < 0.3:
                yield Deed(min(began + dice.randint(0, 8), CALM_FROM - 1), fate, dice.randrange(64), dice.random())


def _droughts(seed: int) -> Iterator[Deed]:
    """Yield a time without stock, and often one in which machines are lost meanwhile; with dice of its own."""
    dice = random.Random(f"disaster/{seed}/dry")
    if dice.random() >= DRY:
        return
    began = dice.randrange(2, CALM_FROM)
    yield Deed(began, "clouds_dry", 0, dice.random())
    for fate in ("host_gone", "rival", "kill_9", "restart"):
        if dice.random() < 0.4:
            yield Deed(min(began + dice.randint(1, 12), CALM_FROM - 1), fate, dice.randrange(64), dice.random())
