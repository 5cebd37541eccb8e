"""Services with probes and work that may hang, in a story: each verdict on them is true, and a false one is found."""

import dataclasses
from collections.abc import Iterator
from unittest import mock

import pytest
import structlog

from agent.decide.reconcile.probes import probing
from agent.observe.prober import Prober
from tests.disasters import draw, play, seed_runs
from tests.disasters.health import health_draw
from tests.disasters.health.verdicts import Verdicts
from tests.disasters.story import Deed, Health, Story, Strike, Work


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    seed_runs.quietly()
    yield
    structlog.reset_defaults()


SERVES = Work("w0", "service", "ondemand", 1, health=Health(serves=True))
TRAINS = Work("w1", "batch", "ondemand", 1, health=Health(stalled_after=300.0))
WELL = Story(7, ("vast",), (SERVES, TRAINS), 60.0, 0.0, 0)
ILL = dataclasses.replace(
    WELL,
    works=(
        dataclasses.replace(SERVES, health=Health(serves=True, silent_after=600.0)),
        dataclasses.replace(TRAINS, health=Health(stalled_after=300.0, hangs_after=600.0)),
    ),
)


def verdicts(story: Story) -> int:
    """Play a story that holds; return how many verdicts were true."""
    judges: list[Verdicts] = []
    made = Verdicts.__init__

    def kept(self: Verdicts, *rest: object) -> None:
        judges.append(self)
        made(self, *rest)  # type: ignore[arg-type]

    with mock.patch.object(Verdicts, "__init__", kept):
        assert play.play(story).broken is None
    return judges[0].judged


def test_a_service_and_work_that_are_well_are_never_judged_ill_in_the_dark_or_by_lies() -> None:
    dark = tuple(Strike("vast", "listing", number, "http_500", 12) for number in (20, 60))
    lies = (Strike("vast", "listing", 45, "stale", 2), Strike("vast", "listing", 90, "empty", 2))
    logs = (Strike("vast", "log", 10, "http_500", 12), Strike("vast", "log", 40, "malformed", 12))
    assert verdicts(dataclasses.replace(WELL, strikes=(*dark, *lies, *logs), deeds=(Deed(70, "kill_9"),))) == 0


def test_silence_and_a_hang_are_found_and_true() -> None:
    assert verdicts(ILL) >= 3, "the service once, and the training at least for its warning and its restart"


def test_a_service_that_is_called_silent_falsely_is_found() -> None:
    async def never(*_: object) -> tuple[bool, str]:
        return False, "port 8000 does not answer"

    answers, asked = Prober._answers, iter(range(10_000))

    async def seldom(prober: Prober, target: probing.Target) -> tuple[bool, str]:
        return await (answers(prober, target) if next(asked) < 20 else never())

    with mock.patch.object(Prober, "_answers", seldom):
        broken = play.play(WELL).broken
    assert broken is not None
    assert broken.point == 3
    assert "it refused 0 connections" in broken.sentence


def test_work_that_is_called_stalled_falsely_is_found() -> None:
    with mock.patch.object(probing, "news", return_value=()):
        broken = play.play(WELL).broken
    assert broken is not None
    assert broken.point == 3
    assert "lease.stalled" in broken.sentence


def test_only_seeds_that_no_census_has_played_draw_any_of_it() -> None:
    assert not any(draw.story(seed).is_watched for seed in (*range(1, 60), *range(200_001, 200_010)))
    drawn = [draw.story(seed) for seed in range(health_draw.FIRST, health_draw.FIRST + 40)]
    healths = [work.health for story in drawn for work in story.works if work.health is not None]
    assert 8 <= sum(story.is_watched for story in drawn) <= 24
    assert any(health.serves for health in healths)
    assert any(health.silent_after for health in healths)
    assert any(health.stalled_after and health.hangs_after for health in healths)
