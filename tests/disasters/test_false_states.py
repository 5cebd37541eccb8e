"""False states: a listing and a look that agree cannot be told from the truth; one alone counts until the next."""

import math
from collections.abc import Iterable, Iterator
from datetime import timedelta
from unittest import mock

import pytest
import structlog

from agent.decide.reconcile import reconcile
from agent.domain.fleet import MarketView
from agent.markets.vast import states
from agent.observe.poller import Poller
from tests.disasters import play, seed_runs
from tests.disasters.points.false_states import FalseStates
from tests.disasters.story import Deed, Story, Strike, Work


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    seed_runs.quietly()
    yield
    # A process that logs nothing would fail the next test that reads the log.
    structlog.reset_defaults()


WORKS = (Work("w0", "batch", "patient", 1, ("vast",)),)
LISTED = Strike("vast", "listing", 20, "state", 12, 4.0)
"""Twelve listings in a row show its instance as ended."""
LOOKED = Strike("vast", "look", 4, "state", 1, 5.0)
"""The look that asks about them says so too."""


def story(*strikes: Strike) -> Story:
    return Story(103186, ("vast",), WORKS, 29.0, 0.0, 3, strikes)


def test_what_a_listing_and_a_look_call_ended_may_be_released_as_done() -> None:
    assert play.play(story(LISTED, LOOKED)).broken is None


def test_listings_alone_end_no_work() -> None:
    assert play.play(story(LISTED)).broken is None


def test_a_program_that_believes_listings_without_a_look_is_found() -> None:
    """Nor may the load of its GPUs contradict the end of the instance."""
    look_closer = Poller.look_closer

    async def blind(self: Poller, _: Iterable[str]) -> MarketView:
        return await look_closer(self, ())

    blinded = mock.patch.object(Poller, "look_closer", blind)
    idle = mock.patch.object(states, "LEAST_LOAD", math.inf)
    with blinded, idle, mock.patch.object(reconcile, "ANSWER_WITHIN", timedelta()):
        broken = play.play(story(LISTED)).broken
    assert broken is not None
    assert (broken.point, "recorded is 'done'" in str(broken)) == (3, True)


def test_a_stopped_instance_with_an_unclear_state_counts_through_the_time_without_a_daemon() -> None:
    """A new process has not seen it stopped: the first listing after an hour and a half has an unclear word."""
    shown = Strike("vast", "listing", 43, "state", amount=3.0)
    deeds = (Deed(30, "pause"), Deed(42, "daemon_away", amount=0.5))
    works = (Work("w0", "batch", "ondemand", 1, ("vast",)),)
    told = Story(7, ("vast",), works, 30.0, 0.0, 0, (shown,), deeds)
    assert play.play(told).broken is None
    with mock.patch.object(FalseStates, "grow", return_value=0.0):
        broken = play.play(told).broken
    assert broken is not None
    assert (broken.point, "were unseen" in broken.sentence) == (4, True)
