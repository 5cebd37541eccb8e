"""Draws from a seed which works are watched for their health, and what befalls them.

It has dice of its own, and only seeds that no census had played before have any of it: all others stay the same.
"""

import dataclasses
import random

from tests.disasters.story import Health, Story, Work

FIRST = 100_000_000
"""Seeds from here on. The seeds of a night are far above it."""
SHARE = 0.4


def watched(story: Story) -> Story:
    """Return the story of a seed with watched works, or as it is."""
    dice = random.Random(f"disaster/{story.seed}/health")
    if story.seed < FIRST or "vast" not in story.markets or dice.random() >= SHARE:
        return story
    return dataclasses.replace(story, works=tuple(_work(dice, work) for work in story.works))


def _work(dice: random.Random, work: Work) -> Work:
    health = Health(
        serves=work.kind == "service" and dice.random() < 0.8,
        silent_after=dice.choice((0.0, 0.0, 600.0, 1800.0)),
        stalled_after=dice.choice((0.0, 300.0, 900.0)),
        hangs_after=dice.choice((0.0, 0.0, 600.0, 1800.0)),
    )
    if work.guard is not None or work.strategy == "deadline" or work.ends_after:
        return work
    # Some pods have no address to the outside, and are never ready by a port.
    return dataclasses.replace(work, markets=("vast",), health=health, is_read=work.is_read and not health.serves)
