"""Bounds of point 4 that are as sharp as the product: each finds a defect that an older, blunter bound excused."""

import contextlib
import dataclasses
import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import msgspec
import pytest
import structlog

from agent.app import App
from agent.config.settings import Config
from agent.decide import slot_releases
from agent.decide.accounting import meter
from agent.decide.facts import LeaseChanged
from agent.decide.reconcile import absence, agreed_rate, doubt, readback, row_metering
from agent.decide.reconcile.pass_memory import Absence
from agent.domain import money
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market.offer import Offer
from agent.domain.record.lease import Lease
from agent.simulator.vast.world import World
from tests.disasters import draw, play, seed_runs
from tests.disasters.orders import Order
from tests.disasters.points.money import Money
from tests.disasters.points.prices import Prices
from tests.disasters.sight import Broken
from tests.disasters.story import Deed, Story, Strike, Work
from tests.support.steered import Simulator


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    seed_runs.quietly()
    yield
    # A process that logs nothing would fail the next test that reads the log.
    structlog.reset_defaults()


QUIET = Story(7, ("vast",), (Work("w0", "service", "ondemand", 1),), 60.0, 0.0, 0)
LOOKS = Strike("vast", "look", 2, "price", 2, 3.0)


@pytest.mark.nightly
def test_a_price_that_moves_under_the_agreed_one_is_followed() -> None:
    """Deposit after deposit lowers the rate before the last one is believed."""
    deeds = (Deed(25, "prepay", amount=0.8), *(Deed(cycle, "prepay", amount=0.02) for cycle in range(39, 119, 14)))
    story = dataclasses.replace(QUIET, deeds=deeds)
    assert play.play(story).broken is None

    def is_same(lease: Lease, rate: money.UsdPerHour) -> bool:
        return lease.doubted_rate == rate

    with mock.patch.object(agreed_rate, "_is_still_doubted", is_same):
        assert _point(play.play(story).broken) == 4


@pytest.mark.nightly
def test_a_fall_is_doubted_for_a_quarter_of_an_hour_however_far_apart_the_listings_are() -> None:
    """A deposit just before the polls are spread by clock steps, at a poll of 15 seconds."""
    story = dataclasses.replace(QUIET, poll=15.0, deeds=(Deed(118, "prepay", amount=0.8),))
    assert play.play(story).broken is None
    with mock.patch.object(agreed_rate, "PATIENCE", dt.timedelta(hours=1)):
        assert _point(play.play(story).broken) == 4


def test_an_ask_that_rises_between_the_search_and_the_rent_is_read_back_and_given_up() -> None:
    """An order on demand names no price, so what it got is compared with what was searched for (rule 16)."""
    with _dearer_rent() as risen:
        assert play.play(QUIET).broken is None
        assert risen == [5.0, 1.0]
        risen.clear()
        with mock.patch.object(readback, "difference", return_value=""):
            assert _point(play.play(QUIET).broken) == 2


@pytest.mark.nightly
def test_what_costs_too_much_and_becomes_no_lease_is_judged_too() -> None:
    """The answer to the rent is lost, and its doubt is settled by the listings; or by nothing."""
    story = dataclasses.replace(QUIET, strikes=(Strike("vast", "rent", 1, "lost_after"),))
    with _dearer_rent():
        assert play.play(story).broken is None
    with _dearer_rent(), mock.patch.object(doubt, "settle", return_value=((), {})):
        assert _point(play.play(story).broken) == 2


def test_what_no_listing_ever_meters_is_found() -> None:
    """Such a lease excused the count for as long as it lasted."""
    metered = row_metering.metered

    def never(*given: Any) -> tuple[Lease, tuple[meter.Charge, ...]]:
        after, _ = metered(*given)
        return msgspec.structs.replace(after, accrued_until=given[2].accrued_until), ()

    def nothing(*_: Any) -> money.Usd:
        return money.ZERO

    with mock.patch.object(row_metering, "metered", never), mock.patch.object(meter, "outstanding", nothing):
        assert _point(play.play(QUIET).broken) == 4


@contextlib.contextmanager
def _dearer_rent() -> Iterator[list[float]]:
    """Let every ask rise between the search and the first rent, and fall before the next order. Yield the factors."""
    leaves, risen = Prices.leaves, list[float]()

    def dearer(self: Prices, order: Order, config: Config) -> None:
        simulator = self._truth._simulator
        if order.kind == "rent" and not risen:
            risen.append(5.0)
            _reprice(simulator, 5.0)
        elif risen == [5.0]:
            risen.append(1.0)
            _reprice(simulator, 0.2)
        leaves(self, order, config)

    with mock.patch.object(Prices, "leaves", dearer):
        yield risen


def _reprice(simulator: Simulator, factor: float) -> None:
    for host in simulator.world.hosts.values():
        host.ask_per_gpu *= factor


def _as_of_now(gone: Callable[..., LeaseChanged]) -> Callable[..., LeaseChanged]:
    """Return a way to end what is gone that counts it up to the listing at which that is believed."""

    def as_of_now(
        fleet: Fleet, view: MarketView, lease: Lease, between: tuple[dt.datetime, dt.datetime], now: dt.datetime
    ) -> LeaseChanged:
        return gone(fleet, view, lease, (between[0], now), now)

    return as_of_now


def _point(broken: Broken | None) -> int | None:
    return broken.point if broken is not None else None


@pytest.mark.nightly
def test_what_its_hosts_ended_is_counted_to_the_first_listing_that_lacked_it_however_late_it_is_believed() -> None:
    """Two vanish from one listing, which is doubted for an hour: no order ends them, so that hour adds nothing."""
    works = (Work("w0", "service", "ondemand", 2),)
    story = dataclasses.replace(QUIET, works=works, deeds=(Deed(40, "host_gone"), Deed(40, "host_gone")))
    assert play.play(story).broken is None
    with mock.patch.object(absence, "_gone", _as_of_now(absence._gone)):
        assert _point(play.play(story).broken) == 4


@pytest.mark.nightly
def test_what_is_gone_counts_to_the_last_listing_that_shows_it_also_if_that_is_a_stale_one() -> None:
    """Two vanish from one listing, which is doubted for an hour; half of it later an old listing has them again."""
    works = (Work("w0", "service", "ondemand", 2),)
    deeds = (Deed(30, "kill_9", amount=0.01), Deed(40, "host_gone"), Deed(40, "host_gone"))
    stale = Strike("vast", "listing", 90, "stale")
    story = dataclasses.replace(QUIET, works=works, strikes=(stale,), deeds=deeds)
    assert play.play(story).broken is None
    with mock.patch.object(absence, "_gone", _as_of_now(absence._gone)):
        assert _point(play.play(story).broken) == 4


@pytest.mark.nightly
def test_a_stale_listing_that_lacks_what_is_gone_raises_no_bound() -> None:
    """As above, but the old listing was taken after both had vanished."""
    works = (Work("w0", "service", "ondemand", 2),)
    deeds = (Deed(40, "host_gone"), Deed(40, "host_gone"), Deed(50, "kill_9", amount=0.01))
    stale = Strike("vast", "listing", 150, "stale")
    story = dataclasses.replace(QUIET, works=works, strikes=(stale,), deeds=deeds)
    assert play.play(story).broken is None
    with mock.patch.object(absence, "_gone", _as_of_now(absence._gone)):
        assert _point(play.play(story).broken) == 4


@pytest.mark.nightly
def test_a_false_rise_counts_nothing_before_it_is_believed() -> None:
    """Two listings of a threefold price, which no look by id is asked for."""
    story = dataclasses.replace(QUIET, strikes=(Strike("vast", "listing", 40, "price", 2, 3.0),))
    assert play.play(story).broken is None
    with mock.patch.object(agreed_rate, "MOST_RISE", 5.0):
        assert _point(play.play(story).broken) == 4


@pytest.mark.parametrize("listings", [2, 20])
def test_a_rise_of_up_to_three_times_is_believed_after_three_listings_and_a_look(listings: int) -> None:
    lies = (Strike("vast", "listing", 40, "price", listings, 3.0), LOOKS)
    assert play.play(dataclasses.replace(QUIET, strikes=lies)).broken is None


def test_two_listings_and_a_look_are_not_enough() -> None:
    story = dataclasses.replace(QUIET, strikes=(Strike("vast", "listing", 40, "price", 2, 3.0), LOOKS))
    with mock.patch.object(agreed_rate, "FURTHER_LISTINGS", 0):
        assert _point(play.play(story).broken) == 4


@pytest.mark.nightly
@pytest.mark.parametrize(("vanish", "point"), [((105,), 6), ((105, 106), 6), ((105, 105), None)], ids=str)
def test_an_hour_of_patience_is_for_several_that_vanish_from_one_listing(
    vanish: tuple[int, ...], point: int | None
) -> None:
    """What vanishes alone, or a minute apart, is believed gone after two minutes, and its slot is filled again."""
    works = (Work("w0", "service", "ondemand", 2),)
    deeds = tuple(Deed(cycle, "host_gone") for cycle in vanish)
    story = dataclasses.replace(QUIET, works=works, deeds=deeds)
    assert play.play(story).broken is None

    def faulty(monotonic: float, listings: int, **_: Any) -> Absence:
        return Absence(monotonic, listings, in_fault=True)

    with mock.patch.object(absence, "Absence", faulty):
        assert _point(play.play(story).broken) == point


@pytest.mark.nightly
@pytest.mark.parametrize("place", [("listing", 60), ("look", 2)], ids=str)
def test_a_false_price_begins_the_doubt_of_a_true_rise_anew_and_ends_no_belief(place: tuple[str, int]) -> None:
    """A person accepts a threefold price; a listing, or the look by id, shows another one."""
    lies = tuple(Strike("vast", place[0], number, "price", 1, 1.3) for number in (place[1], 130))
    works, deeds = (Work("w0", "service", "ondemand", 1),), (Deed(20, "rise", pick=1, amount=0.99),)
    story = dataclasses.replace(QUIET, works=works, strikes=lies, deeds=deeds)
    assert play.play(story).broken is None
    with mock.patch.object(agreed_rate, "PATIENCE", dt.timedelta(minutes=45)):
        assert _point(play.play(story).broken) == 4


@pytest.mark.nightly
def test_what_loads_on_a_host_that_was_silent_is_waited_for_anew_and_not_for_ever() -> None:
    """Its slow pull may begin anew when the host is back; one that hangs there is given up all the same."""
    works = (Work("w0", "batch", "hedged", 1, ("runpod",), is_read=True), Work("w1", "service", "patient", 1))
    deeds = (Deed(79, "storm"), Deed(101, "host_offline", pick=13, amount=0.42242407993311515))
    strikes = (Strike("ledger", "commit", 12, "death_before"),)
    story = Story(71329, ("vast", "runpod"), works, 29.0, 4.0, 0, strikes, deeds)
    assert play.play(story).broken is None
    hangs = dataclasses.replace(story, deeds=(deeds[0], Deed(100, "stuck", 1), deeds[1]))
    with mock.patch.object(World, "calm_pulls", return_value=None):
        assert play.play(hangs).broken is None
        with mock.patch.object(slot_releases, "is_overdue", return_value=False):
            assert _point(play.play(hangs).broken) == 6


@pytest.mark.nightly
def test_what_a_workload_may_cost_is_held_against_its_gpu_and_its_disk() -> None:
    """A person lowers the price to $0.16, which a GPU costs without its disk, and the host is gone."""
    deeds = (Deed(40, "edit_price", amount=-0.04), Deed(42, "host_gone"))
    story = dataclasses.replace(QUIET, markets=("runpod",), deeds=deeds)
    assert play.play(story).broken is None
    with mock.patch.object(Offer, "disk_rate", return_value=money.FREE):
        assert _point(play.play(story).broken) == 2


def test_after_a_person_lowered_the_price_nothing_is_rented_at_the_old_one() -> None:
    deeds = (Deed(40, "edit_price", amount=0.05), Deed(42, "host_gone"))
    story = dataclasses.replace(QUIET, deeds=deeds)
    assert play.play(story).broken is None
    taken = App.reload

    def without_prices(app: App, config: Config, *about: Any) -> None:
        before = {work.name: work.max_price for work in app.rules.workloads}
        works = (dataclasses.replace(work, max_price=before[work.name]) for work in config.workloads)
        taken(app, dataclasses.replace(config, workloads=tuple(works)), *about)

    with mock.patch.object(App, "reload", without_prices):
        assert _point(play.play(story).broken) == 2


@pytest.mark.nightly
def test_what_another_daemon_rented_and_ended_before_a_look_by_id_is_in_no_ledger() -> None:
    """RunPod answered looks too late for nine minutes, so the instance was no lease before its end (rule 18)."""
    story = draw.story(4746)
    assert play.play(story).broken is None
    with mock.patch.object(Money, "_is_ended_by_us", lambda _, box: box.was_destroyed):
        assert _point(play.play(story).broken) == 4
