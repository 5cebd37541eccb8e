"""Guards in stories: scripts on the world's clock, whose notes the real daemon reads from a bucket in memory."""

import dataclasses
from collections.abc import Iterator
from contextlib import ExitStack
from unittest import mock

import pytest
import structlog

from tests.disasters import draw, play, seed_runs, stage
from tests.disasters.auctions import auction_draw
from tests.disasters.clouds import cloud_draw
from tests.disasters.guards import guard_draw
from tests.disasters.guards.guard_world import GuardWorld
from tests.disasters.idleness import idle_draw
from tests.disasters.kept_hosts import kept_draw
from tests.disasters.life import Verdict
from tests.disasters.story import Deed, Guarded, Story, Work


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    seed_runs.quietly()
    yield
    # A process that logs nothing would fail the next test that reads the log.
    structlog.reset_defaults()


def story(guard: Guarded, *deeds: Deed, kind: str = "batch", market: str = "vast") -> Story:
    return Story(7, (market,), (Work("w0", kind, "ondemand", 1, guard=guard),), 30.0, 0.0, 0, deeds=deeds)


def played(told: Story) -> tuple[Verdict, GuardWorld]:
    """Play a story; return its guards too."""
    made: list[GuardWorld] = []

    def noted(*about: object) -> GuardWorld:
        made.append(GuardWorld(*about))  # type: ignore[arg-type]
        return made[-1]

    with mock.patch.object(stage, "GuardWorld", noted):
        verdict = play.play(told)
    return verdict, made[0]


@pytest.mark.parametrize("market", ["vast", "runpod"])
def test_work_goes_on_from_its_checkpoint_on_another_host_and_is_done_once(market: str) -> None:
    """Its host is gone after half of the work, which a person has to explain; the bucket has nearly all of it."""
    deeds = Deed(60, "host_gone"), Deed(70, "resume")
    verdict, guards = played(story(Guarded(needs=3600.0, interval=300.0), *deeds, market=market))
    assert verdict.broken is None
    first, second = guards.guards.values()
    kept = max(first.disk.counts.values())
    assert kept > 600.0
    assert min(second.disk.counts.values()) == kept
    assert max(second.disk.counts.values()) == 3600.0
    assert len(guards.done) == 1


def test_work_that_fails_is_no_reason_to_rent_again() -> None:
    verdict, guards = played(story(Guarded(needs=1800.0, code=1)))
    assert verdict.broken is None
    assert len(guards.guards) == 1
    assert not guards.done


def test_guards_change_nothing_else_about_a_seed() -> None:
    """About a third of the seeds have them. Later draws add some or take some off, so none of those is made here."""
    with ExitStack() as opened:
        for later in (auction_draw, kept_draw, idle_draw, cloud_draw):
            opened.enter_context(mock.patch.object(later, "SHARE", 0.0))
        drawn = [draw.story(seed) for seed in range(100)]
        with mock.patch.object(guard_draw, "SHARE", 0.0):
            bare = [draw.story(seed) for seed in range(100)]
    guarded = [each.is_guarded for each in drawn]
    assert 20 < sum(guarded) < 45
    for one, other in zip(drawn, bare, strict=True):
        assert not other.is_guarded
        assert one == other if not one.is_guarded else set(other.deeds) <= set(one.deeds)
        works = [dataclasses.replace(work, guard=None, ends_after=0.0) for work in one.works]
        assert works == [dataclasses.replace(work, ends_after=0.0) for work in other.works]


def test_a_switch_stops_what_nobody_looks_after_and_the_slot_runs_again() -> None:
    """The machine sleeps for hours, longer than the switch waits."""
    verdict, guards = played(story(Guarded(deadman=3600.0), Deed(40, "sleep", amount=0.5)))
    assert verdict.broken is None
    assert sum(guard.starts for guard in guards.guards.values()) == 2
