"""Draws from a seed which works have guards, and the faults of the guards.

It has dice of its own, so that all else stays.
"""

import dataclasses
import random
from collections.abc import Iterator

from tests.disasters.guards import host_lies
from tests.disasters.story import BUCKET, CALM_FROM, Deed, Guarded, Story, Strike, Work

SHARE = 1 / 3
PLACES = {"beat": 400, "end": 400, "switch": 100, "check": 60, "order": 12, "alive": 60, "checkpoint": 60, "program": 9}
"""How many of the daemon's calls are worth naming in one seed."""
KINDS = (("away",), ("refused",), ("slow", "too_slow"), ("missing", "truncated", "junk", "enormous"), ("lost_after",))
DEATH = ("death_before", "death_after")
WRITTEN = frozenset({"order", "alive", "program"})
"""Places that the daemon writes to."""
FATES = ("bucket_away", "bucket_away", "bucket_slow")
LOSSES = ("rival", "rival", "near_end", "near_end", "near_end", "near_end", "host_gone", "exit", "kill_9", "release")
MEETINGS = (
    "bucket_away",
    "bucket_slow",
    "lie_deaf",
    "lie_false_answer",
    "lie_objects_missing",
    "lie_other_checksum",
    "lie_pointer_behind",
    "lie_stale",
    "near_end",
)
LIES = tuple(f"lie_{lie}" for lie in host_lies.ALL)
EDITS = ("edit_paths", "edit_accept", "edit_deadman", "edit_final_within", "edit_guard_away")
NEVER_MISSING = frozenset({"end", "checkpoint", "order", "alive", "program"})
"""A store shows every object that it has. An end that it calls missing would be a defect of the store."""


def guarded(story: Story) -> Story:
    """Return the story of a seed with guards, or as it is."""
    dice = random.Random(f"disaster/{story.seed}/guards")
    if dice.random() >= SHARE:
        return story
    chosen = {dice.choice(story.works).name, *(work.name for work in story.works if dice.random() < 0.5)}
    works = tuple(
        _work(dice, work, is_first=work is story.works[0]) if work.name in chosen else work for work in story.works
    )
    strikes = (*story.strikes, *_strikes(dice))
    deeds = (*story.deeds, *_deeds(dice), *_meetings(dice), *_absences(story.seed))
    return dataclasses.replace(
        story,
        works=works,
        strikes=tuple(sorted(strikes, key=lambda each: (each.market, each.place, each.number))),
        deeds=tuple(sorted(deeds, key=lambda each: each.cycle)),
    )


def _work(dice: random.Random, work: Work, *, is_first: bool) -> Work:
    # The first never ends, so that there is a slot to judge at the end of every story.
    may_end = work.kind == "batch" and not is_first
    hours, due = dice.choice(((6.0, 30.0), (3.0, 4.5), (3.5, 4.0)))
    guard = Guarded(
        is_on_disk=dice.random() < 0.5,
        needs=dice.choice((0.0, 1200.0, 3600.0, 7200.0)) if may_end else 0.0,
        code=dice.choice((0, 0, 0, 1)),
        interval=dice.choice((300.0, 600.0, 900.0)),
        takes=dice.choice((1.0, 5.0, 30.0)),
        upload=dice.choice((2.0, 10.0, 90.0)),
        final_within=dice.choice((8.0, 20.0, 60.0)),
        deadman=dice.choice((0.0, 0.0, 3600.0, 7200.0)),
        accept=dice.choice(("off", "tell", "reject")),
        work_hours=hours,
        due_hours=due,
        is_warned=dice.random() < 0.5,
    )
    return dataclasses.replace(work, guard=guard, ends_after=0.0)


def _strikes(dice: random.Random) -> Iterator[Strike]:
    """Draw faults of the daemon's calls to the bucket."""
    kinds = [kind for kind in KINDS if dice.random() < 0.3]
    faults = [fault for kind in kinds for fault in kind]
    share = dice.choice((0.01, 0.03, 0.1))
    for place, most in PLACES.items():
        mine = [each for each in faults if _may_strike(place, each)]
        for number in range(1, most + 1) if mine else ():
            if dice.random() < share:
                yield Strike(BUCKET, place, number, dice.choice(mine), dice.choice((1, 1, 2, 8)))
    if dice.random() < 0.4:
        for number in range(1, 1 + dice.randint(1, 3)):
            yield Strike(BUCKET, "order", number, dice.choice(DEATH))


def _may_strike(place: str, fault: str) -> bool:
    if fault == "missing":
        return place not in NEVER_MISSING
    return fault != "lost_after" or place in WRITTEN


def _meetings(dice: random.Random) -> Iterator[Deed]:
    """Draw faults that matter only together: a lie or an outage, and soon after it the loss or the end of a lease."""
    for _ in range(dice.randint(0, 2)):
        began, pick = dice.randrange(15, CALM_FROM - 20), dice.randrange(64)
        first, then = dice.choice(MEETINGS), dice.choice(LOSSES)
        yield Deed(began, first, pick, 0.5 + dice.random() / 2)
        yield Deed(began + dice.randint(1, 18), then, pick, dice.uniform(0.05, 0.3))


def _deeds(dice: random.Random) -> Iterator[Deed]:
    for kinds, often in ((FATES, 3), (LIES, 4), (EDITS, 2)):
        for _ in range(dice.randint(0, often)):
            yield Deed(dice.randrange(2, CALM_FROM), dice.choice(kinds), dice.randrange(64), dice.random())


def _absences(seed: int) -> Iterator[Deed]:
    """Draw hours without the daemon, by dice of their own, and often what befalls a lease just before them."""
    dice = random.Random(f"disaster/{seed}/absences")
    if dice.random() < 0.4:
        began, pick = dice.randrange(15, CALM_FROM - 20), dice.randrange(64)
        if dice.random() < 0.7:
            yield Deed(began, dice.choice((*MEETINGS, *LOSSES)), pick, dice.uniform(0.05, 1.0))
        yield Deed(began, "daemon_away", pick, dice.random())
