"""Idle GPUs in stories: what is held or released for them truly idled, and a false reason is found."""

import dataclasses
from collections.abc import Iterator
from unittest import mock

import pytest
import structlog

from agent.decide.reconcile.probes import idleness
from agent.domain.work import usefulness
from tests.disasters import draw, play, seed_runs
from tests.disasters.idleness import idle_draw
from tests.disasters.idleness.idle_times import IdleTimes
from tests.disasters.story import Deed, Guarded, Idle, Story, Strike, Work

WORK = Work("w0", "batch", "ondemand", 1, idle=Idle("release", 900.0, after=1800.0))
IDLES = Story(7, ("vast",), (WORK,), 60.0, 0.0, 0)
BUSY = dataclasses.replace(IDLES, works=(dataclasses.replace(WORK, idle=Idle("release", 900.0)),))


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    seed_runs.quietly()
    yield
    structlog.reset_defaults()


def judged(story: Story) -> int:
    """Play a story that holds; return how many times a slot was held for idle GPUs."""
    judges: list[IdleTimes] = []
    made = IdleTimes.__init__

    def kept(self: IdleTimes, *rest: object) -> None:
        judges.append(self)
        made(self, *rest)  # type: ignore[arg-type]

    with mock.patch.object(IdleTimes, "__init__", kept):
        assert play.play(story).broken is None
    return judges[0].judged


@pytest.mark.parametrize(
    ("market", "then"),
    [
        ("vast", "release"),
        ("runpod", "pause"),
        *(
            pytest.param(*case, marks=pytest.mark.nightly)
            for case in (("vast", "warn"), ("vast", "pause"), ("runpod", "warn"), ("runpod", "release"))
        ),
    ],
)
def test_a_slot_is_held_once_its_gpus_idle_and_not_where_only_a_warning_is_asked_for(market: str, then: str) -> None:
    work = dataclasses.replace(WORK, idle=Idle(then, 900.0, after=1800.0))
    assert judged(dataclasses.replace(IDLES, markets=(market,), works=(work,))) == int(then != "warn")


@pytest.mark.nightly
def test_idle_gpus_are_released_also_while_the_ledger_takes_no_reason() -> None:
    """The disk is full for ten minutes when the time of the rule is over (rule 13)."""
    story = draw.story(4905)
    assert play.play(story).broken is None
    with mock.patch.object(IdleTimes, "may_release", return_value=False):
        broken = play.play(story).broken
    assert broken is not None
    assert (broken.point, "no reason is recorded" in broken.sentence) == (3, True)


def test_what_works_is_never_held_in_the_dark_or_by_lies() -> None:
    dark = tuple(Strike("vast", "listing", number, "http_500", 14) for number in (20, 60))
    lies = (Strike("vast", "listing", 45, "stale", 2), Strike("vast", "listing", 90, "empty", 2))
    assert judged(dataclasses.replace(BUSY, strikes=(*dark, *lies), deeds=(Deed(70, "kill_9"),))) == 0


def test_a_lease_that_is_released_although_its_gpus_work_is_found() -> None:
    with mock.patch.object(usefulness, "is_idle", lambda lease, *_: lease.began is not None):
        assert play.play(BUSY).broken is None, "nothing idles since any time"
    with mock.patch.object(idleness, "_use", return_value=0.0):
        broken = play.play(BUSY).broken
    assert broken is not None
    assert (broken.point, "its GPUs were busy" in broken.sentence) == (3, True), broken


def test_an_eighth_of_the_seeds_has_idle_gpus_and_all_others_are_as_they_were() -> None:
    with mock.patch.object(idle_draw, "SHARE", 0.0):
        before = [draw.story(seed) for seed in range(300)]
    after = [draw.story(seed) for seed in range(300)]
    drawn = [one for one, other in zip(after, before, strict=True) if one != other]
    assert 15 < len(drawn) < 60
    assert all(work.idle is None or work.guard is None or work.idle.after == 0.0 for one in drawn for work in one.works)
    on_disk = [work for one in drawn for work in one.works if work.guard is not None and work.guard.is_on_disk]
    assert all(work.idle is None or work.idle.then != "release" for work in on_disk)


@pytest.mark.nightly
def test_work_under_a_guard_that_waits_for_its_bucket_is_idle_and_held_truly() -> None:
    work = Work("w0", "batch", "ondemand", 1, guard=Guarded(needs=1200.0, code=1), idle=Idle("pause", 300.0))
    assert judged(dataclasses.replace(IDLES, works=(work,), deeds=(Deed(60, "bucket_away", 0, 1.0),))) <= 1
