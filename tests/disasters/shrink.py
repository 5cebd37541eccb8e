"""Shrinks a failing story to a smaller one that fails at the same point, by removing faults one by one."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from tests.disasters.story import Deed, Story, Strike

T = TypeVar("T")
MOST_TRIES = 250

Fails = Callable[[Story], bool]
"""Whether a story still fails at the same point."""


def shrunk(story: Story, fails: Fails, most_tries: int = MOST_TRIES) -> Story:
    """Return a story with as little in it as was found within so many tries; it fails as the given one does."""
    budget = iter(range(most_tries))

    def tried(smaller: Story) -> bool:
        return next(budget, None) is not None and fails(smaller)

    before = None
    while story != before:
        before = story
        for smaller in _fewer_parts(story):
            if tried(smaller):
                story = smaller
                break
        story = _least(story, story.strikes, _with_strikes, tried)
        story = _least(story, story.deeds, _with_deeds, tried)
        story = dataclasses.replace(story, strikes=tuple(_briefer(story, tried)))
    return story


def _fewer_parts(story: Story) -> Iterator[Story]:
    """Yield stories with one market, one workload, one slot or one guard less."""
    for market in story.markets if len(story.markets) > 1 else ():
        works = tuple(work for work in story.works if market in (work.markets or (market,)))
        if works:
            yield dataclasses.replace(story, markets=(market,), works=works)
    for work in story.works if len(story.works) > 1 else ():
        yield dataclasses.replace(story, works=tuple(each for each in story.works if each is not work))
    for work in story.works:
        if work.slots > 1:
            fewer = tuple(dataclasses.replace(each, slots=1) if each is work else each for each in story.works)
            yield dataclasses.replace(story, works=fewer)
        if work.guard is not None:
            bare = tuple(dataclasses.replace(each, guard=None) if each is work else each for each in story.works)
            yield dataclasses.replace(story, works=bare)


def _with_strikes(story: Story, kept: Sequence[Strike]) -> Story:
    return dataclasses.replace(story, strikes=tuple(kept))


def _with_deeds(story: Story, kept: Sequence[Deed]) -> Story:
    return dataclasses.replace(story, deeds=tuple(kept))


def _least(story: Story, entries: Sequence[T], having: Callable[[Story, Sequence[T]], Story], tried: Fails) -> Story:
    """Return a story without the entries it can do without: half of them at a time, then a quarter, then one by one."""
    size = len(entries)
    while size >= 1 and entries:
        at = 0
        while at < len(entries):
            kept = [*entries[:at], *entries[at + size :]]
            if tried(having(story, kept)):
                entries = kept
            else:
                at += size
        size //= 2
    return having(story, entries)


def _briefer(story: Story, tried: Fails) -> Iterator[Strike]:
    """Yield the strikes, each struck once where that is enough."""
    strikes = list(story.strikes)
    for number, strike in enumerate(strikes):
        once = dataclasses.replace(strike, times=1)
        if strike.times > 1:
            changed = (*strikes[:number], once, *strikes[number + 1 :])
            if tried(dataclasses.replace(story, strikes=changed)):
                strikes[number] = once
    yield from strikes


def size(story: Story) -> int:
    """Return how many things go wrong or are ordered in a story."""
    entries: tuple[Strike | Deed, ...] = (*story.strikes, *story.deeds)
    return len(entries)
