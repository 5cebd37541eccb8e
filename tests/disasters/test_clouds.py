"""dstack's server in the disasters: it is drawn beside all that was drawn before, and its defects are found."""

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from unittest import mock

import msgspec
import pytest
import structlog

from agent.domain.fleet import Fleet
from agent.domain.market.instance import Instance, InstanceState
from agent.markets.dstack import market as dstack
from agent.markets.dstack import states
from agent.markets.dstack.cloud_clients import CloudClients
from agent.markets.dstack.endings import TERMINATED, Endings
from agent.markets.dstack.listing import Listed
from agent.markets.dstack.rows import Machine, Run
from agent.markets.dstack.states import Standing
from tests.disasters import draw, play, seed_runs
from tests.disasters.clouds import cloud_draw
from tests.disasters.clouds.cloud_draw import MARKET
from tests.disasters.clouds.false_returns import FalseReturns
from tests.disasters.story import CALM_FROM, Clouds, Deed, Story, Strike, Work

WORKS = (Work("w0", "service", "ondemand", 1), Work("w1", "batch", "patient", 1))
QUIET = Story(7, (MARKET,), WORKS, 30.0, 0.0, 0, clouds=Clouds())
LOOKS = tuple(Deed(CALM_FROM + after, "called_gone") for after in (2, 8, 14))


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    seed_runs.quietly()
    yield
    structlog.reset_defaults()


def test_a_share_of_the_seeds_has_clouds_and_all_others_are_as_they_were() -> None:
    with mock.patch.object(cloud_draw, "SHARE", 0.0):
        before = [draw.story(seed) for seed in range(600)]
    after = [draw.story(seed) for seed in range(600)]
    drawn = [story for story in after if MARKET in story.markets]
    assert 40 < len(drawn) < 110
    assert {len(story.markets) for story in drawn} == {1, 2, 3}
    assert [story for story in after if MARKET not in story.markets] == [
        one for one, story in zip(before, after, strict=True) if MARKET not in story.markets
    ]


def test_good_weather_at_clouds_breaks_nothing_and_every_slot_is_judged() -> None:
    verdict = play.play(QUIET)
    assert verdict.broken is None
    assert verdict.judged[3] > 100
    assert verdict.judged[5] >= 10


def test_the_word_of_the_server_alone_proves_no_end() -> None:
    """A kill ends what the server then gives up: its machine goes on billing."""
    story = dataclasses.replace(QUIET, clouds=Clouds(gives_up=1.0), deeds=(Deed(40, "kill"), Deed(60, "lift"), *LOOKS))
    assert play.play(story).broken is None

    def believed(_: Endings, machine: Machine) -> bool:
        return machine.status == TERMINATED

    with mock.patch.object(Endings, "is_gone", believed):
        broken = play.play(story).broken
    assert broken is not None
    assert broken.point in {1, 4}


def test_the_word_of_a_server_without_a_client_of_its_cloud_proves_no_end() -> None:
    deeds = (*(Deed(39, "client_lost", each, 1.0) for each in range(4)), Deed(40, "kill"), Deed(60, "lift"), *LOOKS)
    story = dataclasses.replace(QUIET, deeds=deeds)
    assert play.play(story).broken is None

    def believed(_: CloudClients, backends: Collection[str]) -> Mapping[str, float]:
        return dict.fromkeys(backends, 1e12)

    with mock.patch.object(CloudClients, "proven", believed):
        broken = play.play(story).broken
    assert broken is not None
    assert broken.point in {1, 4}


def test_an_end_that_was_watched_is_believed() -> None:
    story = dataclasses.replace(QUIET, deeds=(Deed(40, "kill"),))
    assert play.play(story).broken is None
    with mock.patch.object(Endings, "is_gone", return_value=False):
        broken = play.play(story).broken
    assert broken is not None
    assert (broken.point, "its end was watched" in broken.sentence) == (4, True)


def test_two_false_words_for_a_machine_that_is_over_do_not_charge_the_hours_since() -> None:
    """A kill ended it, and its server calls it idle an hour later, in two listings with their looks."""
    told = Strike(MARKET, "machines", 100, "state", 4, 2.0)
    story = dataclasses.replace(QUIET, poll=60.0, strikes=(told,), deeds=(Deed(20, "kill"),))
    assert play.play(story).broken is None

    def bare(market: dstack.DstackMarket, run: Run, where: Standing, listed: Listed) -> Instance:
        return msgspec.structs.replace(shown(market, run, where, listed), was_over_at=None)

    shown = dstack.DstackMarket._shown
    with mock.patch.object(dstack.DstackMarket, "_shown", bare):
        broken = play.play(story).broken
    assert broken is not None
    assert (broken.point, "were unseen" in broken.sentence) == (4, True)


def test_a_false_word_soon_after_a_start_charges_from_the_end_on() -> None:
    """The new process has had no look that called it over, so the time since its end is unknown."""
    told = Strike(MARKET, "machines", 87, "state", 4, 2.0)
    story = dataclasses.replace(QUIET, poll=60.0, strikes=(told,), deeds=(Deed(20, "kill"), Deed(80, "restart")))
    assert play.play(story).broken is None
    with mock.patch.object(FalseReturns, "grow", return_value=0.0):
        broken = play.play(story).broken
    assert broken is not None
    assert (broken.point, "were unseen" in broken.sentence) == (4, True)


@pytest.mark.nightly
def test_a_slot_does_not_wait_for_a_person_to_look_at_a_console() -> None:
    """A kill that is lifted again ended what the server then gave up, and nobody looks."""
    story = dataclasses.replace(QUIET, clouds=Clouds(gives_up=1.0), deeds=(Deed(90, "kill"), Deed(93, "lift")))
    assert play.play(story).broken is None
    with mock.patch.object(Fleet, "is_leaving", return_value=False):
        broken = play.play(story).broken
    assert broken is not None
    assert broken.point == 6


def test_a_slot_is_filled_once_clouds_have_machines_again() -> None:
    """Until then each run finds no machine, and only its end says so."""
    works = (Work("w0", "service", "ondemand", 3),)
    deeds = (Deed(20, "clouds_dry", 0, 1.0), Deed(22, "host_gone", 1))
    story = dataclasses.replace(QUIET, works=works, deeds=deeds)
    assert play.play(story).broken is None

    def unended(run: Run, machines: Sequence[Machine], endings: Endings) -> states.Standing:
        found = standing(run, machines, endings)
        return states.Standing(InstanceState.PENDING) if found.is_out_of_capacity else found

    standing = states.standing
    with mock.patch.object(states, "standing", unended):
        broken = play.play(story).broken
    assert broken is not None
    assert broken.point == 6


def test_a_false_word_soon_forgotten_charges_only_from_the_last_look() -> None:
    """The listing after the false one calls the machine over again, once: its lease is made in that one."""
    told = Strike(MARKET, "machines", 100, "state", 1, 2.0)
    story = dataclasses.replace(QUIET, poll=60.0, strikes=(told,), deeds=(Deed(20, "kill"),))
    assert play.play(story).broken is None
