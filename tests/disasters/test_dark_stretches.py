"""Point 4 after a dark stretch: in it a host may have come back, or a market given a GPU back, and nothing tells so."""

import datetime as dt
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
import structlog

from agent.decide.reconcile import agreed_rate, billed_times, reconcile
from agent.decide.reconcile.pass_memory import Memory
from agent.domain.fleet import Fleet
from agent.domain.market.instance import Instance
from agent.domain.record.lease import Bills
from tests.disasters import draw, play, seed_runs
from tests.disasters.points import given_back
from tests.disasters.sight import Broken
from tests.disasters.story import Deed, Story, Strike, Work


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    seed_runs.quietly()
    yield
    # A process that logs nothing would fail the next test that reads what is logged.
    structlog.reset_defaults()


@pytest.mark.nightly
def test_what_may_have_run_again_on_a_silent_host_counts_where_it_is_gone_before_anybody_looks() -> None:
    """The host is silent for four minutes, the program is dead for half an hour, and the host is gone in between."""
    works = (Work("w0", "service", "ondemand", 1),)

    def gone_at(cycle: int) -> Broken | None:
        deeds = (Deed(40, "host_offline", amount=0.1), Deed(44, "kill_9", amount=0.9), Deed(cycle, "host_gone"))
        return play.play(Story(7, ("vast",), works, 45.0, 0.0, 0, deeds=deeds)).broken

    assert gone_at(46) is None
    assert gone_at(75) is None
    with mock.patch.object(billed_times, "_is_silent", return_value=False):
        broken = gone_at(75)
    assert broken is not None
    assert broken.point == 4


@pytest.mark.nightly
def test_what_may_have_run_again_on_a_silent_host_counts_until_its_contract_ends() -> None:
    """The host is silent for twenty minutes, the machine sleeps for hours, and no record tells of the end."""
    works = (Work("w0", "batch", "patient", 1),)
    deeds = (
        Deed(34, "near_end", pick=37, amount=0.77),
        Deed(40, "maintenance", amount=0.63),
        Deed(43, "sleep", amount=0.7),
    )
    story = Story(161036, ("vast",), works, 43.0, 4.0, 0, deeds=deeds)
    assert play.play(story).broken is None
    turned = billed_times.turned

    def endless(*about: Any, **more: Any) -> billed_times.Turned:
        return turned(*about, **more | {"ends_at": None})

    with mock.patch.object(billed_times, "turned", endless):
        broken = play.play(story).broken
    assert broken is not None
    assert broken.point == 4


@pytest.mark.nightly
def test_what_a_kill_ends_in_a_dark_market_may_have_been_given_back_before() -> None:
    """An on-demand renter took the GPU and left; no listing and no record tells that it ran again before the kill."""
    story = _killed_in_the_dark(Strike("vast", "listing", 40, "lost_before", times=40))
    assert play.play(story).broken is None
    with mock.patch.object(billed_times, "_may_be_given_back", return_value=False):
        broken = play.play(story).broken
    assert broken is not None
    assert broken.point == 4


@pytest.mark.nightly
def test_what_an_order_starts_after_a_dark_stretch_may_have_been_given_back_in_it() -> None:
    """The account's credit was spent and filled up again, and the record of that time cannot be read."""
    story = draw.story(697)
    assert play.play(story).broken is None
    with mock.patch.object(given_back, "STARTS", frozenset()):
        broken = play.play(story).broken
    assert broken is not None
    assert (broken.point, "were unseen" in broken.sentence) == (4, True)


def _killed_in_the_dark(*dark: Strike) -> Story:
    """Return the story of a lost lease that ran again and was ended by a kill, while its market is `dark`."""
    strikes = (
        Strike("runpod", "listing", 19, "death_after"),
        Strike("runpod", "rent", 1, "http_401"),
        Strike("runpod", "rent", 2, "http_404", times=4),
        Strike("vast", "listing", 8, "death_after"),
        Strike("vast", "listing", 39, "death_before"),
        *dark,
    )
    works = (Work("w0", "service", "hedged", 1, is_read=True),)
    return Story(70566, ("vast", "runpod"), works, 56.0, 4.0, 0, strikes, (Deed(50, "kill"),))


def test_what_ran_before_a_release_whose_answer_was_lost_counts_too() -> None:
    """The ledger counted $0.0302 where $0.0516 were charged: nothing shows when the release was done."""
    dark = (
        Strike("vast", "listing", 40, "lost_before", times=8),
        Strike("vast", "release", 1, "lost_after", 5),
        Strike("vast", "inbox", 2, "lost_before", times=60),
    )
    assert play.play(_killed_in_the_dark(*dark)).broken is None


@pytest.mark.parametrize("market", ["vast", "runpod"])
def test_what_we_paused_ourselves_is_not_given_back_in_a_dark_market(market: str) -> None:
    """A person pauses it, nobody can list it for a while, and a kill ends it there."""
    works, dark = (Work("w0", "service", "ondemand", 1),), Strike(market, "listing", 50, "lost_before", times=40)
    story = Story(7, (market,), works, 60.0, 0.0, 0, (dark,), (Deed(30, "pause"), Deed(60, "kill")))
    assert play.play(story).broken is None
    with mock.patch.object(billed_times, "_may_be_given_back", lambda held, _: held.bills is Bills.DISK):
        broken = play.play(story).broken
    assert broken is not None
    assert broken.point == 4


def test_a_lost_lease_that_is_gone_counts_from_the_last_listing_that_had_it_to_the_kill() -> None:
    """Credit runs out, hosts die while nobody looks, and a kill ends what listings lacked since: it may have run."""
    works = (Work("w0", "batch", "ondemand", 2, ("vast",), is_read=True), Work("w2", "batch", "patient", 1))
    deeds = (
        Deed(50, "no_credit", 5, 0.3678609789717362),
        Deed(63, "storm", 55, 0.35771688714543304),
        Deed(106, "kill"),
    )
    story = Story(140, ("vast",), works, 25.0, 0.0, 0, deeds=deeds)
    assert play.play(story).broken is None


@pytest.mark.nightly
def test_it_counts_from_no_earlier_look_than_that() -> None:
    """A product that forgets the last look counts from the last metering on, and that may be long before."""
    works = (Work("w0", "batch", "ondemand", 2, ("vast",), is_read=True), Work("w2", "batch", "patient", 1))
    deeds = (Deed(50, "no_credit", 5, 0.97), Deed(88, "storm", 55, 0.35771688714543304), Deed(125, "kill"))
    story = Story(140, ("vast",), works, 25.0, 0.0, 0, deeds=deeds)

    def forgotten(fleet: Fleet, _: Memory) -> dict[str, billed_times.Look]:
        events = {name: view.events for name, view in fleet.markets.items()}
        return {each.lease_id: billed_times.Look(each.accrued_until, events[each.market]) for each in fleet.leases}

    with mock.patch.object(reconcile, "METER_EVERY", dt.timedelta(hours=1)):
        assert play.play(story).broken is None
        with mock.patch.object(billed_times, "looks", forgotten):
            broken = play.play(story).broken
    assert broken is not None
    assert broken.point == 4


@pytest.mark.nightly
def test_what_a_stale_listing_shows_at_work_before_the_program_dies_counts_until_the_next_true_one() -> None:
    """A kill paused three; a listing of before shows them at work, and the program is dead for twenty minutes."""
    strikes = (
        Strike("ledger", "commit", 63, "death_before"),
        Strike("vast", "account", 9, "lost_after"),
        Strike("vast", "account", 13, "lost_before", times=12),
        Strike("vast", "account", 20, "never_left", times=12),
        Strike("vast", "listing", 4, "lost_after"),
        Strike("vast", "listing", 41, "id", amount=4.0),
        Strike("vast", "listing", 101, "stale"),
        Strike("vast", "look", 10, "http_404"),
        Strike("vast", "state", 4, "lost_after"),
    )
    lives = (Deed(48, "second", amount=0.9830568495543002), Deed(86, "kill_9", amount=0.6575571801542892))
    works = (Work("w0", "batch", "ondemand", 3),)
    story = Story(75011, ("vast",), works, 34.0, 0.0, 3, strikes, (lives[0], Deed(64, "kill_keep"), lives[1]))
    assert play.play(story).broken is None
    with mock.patch.object(Instance, "bills_gpu", new_callable=mock.PropertyMock, return_value=True):
        broken = play.play(story).broken
    assert broken is not None
    assert broken.point == 4


@pytest.mark.nightly
@pytest.mark.parametrize(("cycle", "is_doubted"), [(50, True), (100, False)])
def test_what_its_host_ends_while_a_fall_is_doubted_counts_as_agreed_for_all_of_the_dark_stretch(
    cycle: int, *, is_doubted: bool
) -> None:
    """A deposit lowers what is charged; the host is gone soon or late after it, while the program is dead for hours."""
    works = (Work("w0", "service", "ondemand", 1),)
    deeds = (Deed(45, "prepay", amount=0.9), Deed(cycle, "host_gone"), Deed(cycle, "daemon_away", amount=0.8))
    story = Story(7, ("vast",), works, 30.0, 0.0, 0, deeds=deeds)
    assert play.play(story).broken is None
    with mock.patch.object(agreed_rate, "PATIENCE", dt.timedelta(hours=5)):
        broken = play.play(story).broken
    assert (broken is None) is is_doubted
    assert broken is None or broken.point == 4


@pytest.mark.nightly
@pytest.mark.parametrize(("cycle", "loads"), [(22, False), (26, True)], ids=["stopped", "loading"])
def test_what_loads_again_may_have_run_until_the_first_look_that_lacks_it(cycle: int, *, loads: bool) -> None:
    """The credit was out. The machine sleeps for hours, and the host is gone, before or while it loads again."""
    deeds = (Deed(9, "no_credit", amount=0.48), Deed(cycle, "host_gone"), Deed(cycle, "sleep", amount=0.9))
    works = (Work("w0", "service", "patient", 1),)
    story = Story(90918, ("vast",), works, 59.0, 0.0, 0, deeds=deeds)
    assert play.play(story).broken is None
    with mock.patch.object(billed_times, "_is_starting", return_value=True):
        broken = play.play(story).broken
    assert (broken is None) is loads
    assert broken is None or broken.point == 4


@pytest.mark.parametrize("market", ["vast", "runpod"])
def test_what_a_program_rented_before_it_died_is_not_counted_from_before_its_order(market: str) -> None:
    """The program dies at its first rent, and the machine's clock is a day behind when it is started again."""
    works, rent = (Work("w0", "service", "ondemand", 1),), Strike(market, "rent", 1, "death_after")
    story = Story(7, (market,), works, 60.0, 0.0, 0, (rent,), (Deed(1, "clock", 3),))
    assert play.play(story).broken is None
