"""Point 6: a slot may wait for hosts that load slowly and for what a person alone can tell, and for nothing else."""

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
import structlog

from agent.decide import slot_releases
from agent.decide.reconcile import doubt
from agent.simulator import recorded_figures
from agent.simulator.vast.world import World
from tests.disasters import play, seed_runs, stage
from tests.disasters.sight import Broken
from tests.disasters.story import Deed, Story, Strike, Work


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    seed_runs.quietly()
    yield
    # A process that logs nothing would fail the next test that reads the log.
    structlog.reset_defaults()


def test_a_slot_must_run_although_each_host_loads_for_hours() -> None:
    """Nobody lists the market for an hour while the first one loads, and that hour counts against no host."""
    lifted_late = Deed(2, "kill"), Deed(106, "lift"), Deed(110, "sleep", amount=0.13)
    story = Story(7, ("vast",), (Work("w0", "batch", "hedged", 1),), 30.0, 0.0, 0, deeds=lifted_late)

    def slow(*about: Any, **more: Any) -> World:
        world = World(*about, **more)
        for host in world.hosts.values():
            host.inet_down = 285.0
        return world

    with mock.patch.object(recorded_figures, "PULL_MBITS", 4.0), mock.patch.object(stage, "World", slow):
        assert play.play(story).broken is None
        with mock.patch.object(slot_releases, "is_overdue", return_value=False):
            broken = play.play(story).broken
    assert broken is not None
    assert (broken.point, "does not run for" in broken.sentence) == (6, True)


def refused_rent(*deeds: Deed, slots: int = 1, cap: int = 0) -> Broken | None:
    """Play a story whose first rent is answered with a status that proves nothing."""
    work, refused = Work("w0", "service", "ondemand", slots), Strike("vast", "rent", 1, "http_404")
    return play.play(Story(28, ("vast",), (work,), 30.0, 0.0, cap, strikes=(refused,), deeds=deeds)).broken


@pytest.mark.parametrize(("slots", "cap"), [(1, 0), (2, 1)])
def test_a_rent_that_may_be_an_instance_without_a_label_waits_for_a_person(slots: int, cap: int) -> None:
    """Somebody rents on the same host right after it. It also counts as an instance under a cap on them."""
    assert refused_rent(Deed(1, "foreign", amount=0.9), slots=slots, cap=cap) is None


def test_a_rent_in_doubt_keeps_no_slot_empty_for_long() -> None:
    assert refused_rent() is None
    with mock.patch.object(doubt, "_is_over", return_value=False):
        broken = refused_rent()
    assert broken is not None
    assert (broken.point, "is in doubt until a listing settles it" in broken.sentence) == (6, True)


def test_on_demand_a_slot_waits_for_its_host_through_maintenance_that_began_in_good_weather() -> None:
    maintained = Deed(81, "maintenance", 35, 0.99)
    story = Story(350148, ("vast",), (Work("w0", "service", "ondemand", 1),), 17.0, 0.0, 0, deeds=(maintained,))
    verdict = play.play(story)
    assert verdict.broken is None
    assert verdict.judged[5] > 0
