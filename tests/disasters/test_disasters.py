"""The engine itself: the same seed is the same story, and its parts can fail."""

import dataclasses
import datetime as dt
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from unittest import mock

import msgspec
import pytest
import structlog

from agent.decide import slot_releases
from agent.decide.accounting.meter import Charge
from agent.decide.facts import LeaseChanged
from agent.decide.moves import cooldowns_after_writes
from agent.decide.reconcile import absence, agreed_rate, orphans, outcomes, reconcile
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market.instance import Instance
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import Pause, Reason, Release, Resume
from tests.disasters import __main__ as disasters
from tests.disasters import draw, play, regressions, seed_runs, shrink, tell
from tests.disasters.sight import Broken
from tests.disasters.story import Deed, Story, Strike, Work

SEEDS = 200
QUIET = Story(7, ("vast",), (Work("w0", "service", "patient", 1),), 30.0, 0.0, 0)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    seed_runs.quietly()
    yield
    # A process that logs nothing would fail the next test that reads the log.
    structlog.reset_defaults()


@pytest.mark.nightly
def test_a_seed_tells_the_same_story_every_time() -> None:
    assert draw.story(3) == draw.story(3)
    assert play.play(draw.story(3)) == play.play(draw.story(3))


def test_good_weather_breaks_nothing_and_every_slot_is_judged() -> None:
    verdict = play.play(QUIET)
    assert verdict.broken is None
    assert verdict.judged[0] > 100
    assert verdict.judged[3] > 100
    assert verdict.judged[5] >= 10


def test_a_story_shrinks_to_what_it_takes_to_fail() -> None:
    needed, idle = Strike("vast", "rent", 2, "lost_after"), Strike("vast", "look", 1, "slow", times=3)
    story = dataclasses.replace(QUIET, strikes=(idle, needed), deeds=(Deed(5, "pause"), Deed(9, "kill")))
    small = shrink.shrunk(story, lambda each: needed in each.strikes and len(each.deeds) > 0)
    assert small.strikes == (needed,)
    assert len(small.deeds) == 1
    assert "the answer is lost" in "\n".join(tell.story(small))


def test_own_releases_that_nobody_answered_make_no_fault_of_the_market() -> None:
    """A workload of two slots ends while the answers to its releases are lost: both vanish from one listing."""
    works = (Work("w0", "service", "ondemand", 2), Work("w1", "service", "ondemand", 1))
    unanswered = Strike("vast", "release", 1, "lost_after", times=8)
    story = dataclasses.replace(QUIET, works=works, strikes=(unanswered,), deeds=(Deed(30, "kill_workload"),))
    assert play.play(story).broken is None
    with regressions.taken_out("1.8"):
        broken = play.play(story).broken
    assert broken is not None
    assert (broken.point, "our own releases ended them all" in broken.sentence) == (6, True)


def test_a_false_price_in_both_answers_counts_once_it_is_to_be_believed_and_not_before() -> None:
    """Fifteen minutes of listings and a look by id agree on a thousand times the price (rule 21)."""
    works = (Work("w0", "service", "ondemand", 1),)

    def lie(listings: int) -> Story:
        looks = Strike("vast", "look", 2, "price", 99, 1000.0)
        strikes = (Strike("vast", "listing", 40, "price", listings, 1000.0), looks)
        return dataclasses.replace(QUIET, works=works, strikes=strikes)

    assert play.play(lie(listings=45)).broken is None
    with mock.patch.object(agreed_rate, "PATIENCE", dt.timedelta()):
        broken = play.play(lie(listings=20)).broken
    assert broken is not None
    assert broken.point == 4


def test_a_false_price_that_a_look_confirmed_of_one_instance_is_no_bound_of_another() -> None:
    """Both are listed at a thousand times their price; only one is asked for by its id, and both are believed."""
    works = (Work("w0", "service", "ondemand", 1), Work("w1", "service", "ondemand", 1))
    lies = (Strike("vast", "listing", 40, "price", 45, 1000.0), Strike("vast", "look", 3, "price", 99, 1000.0))
    story = dataclasses.replace(QUIET, works=works, strikes=lies)
    asked = agreed_rate.unconfirmed

    def one(fleet: Fleet, view: MarketView, leases: Iterable[Lease]) -> frozenset[str]:
        return frozenset(sorted(asked(fleet, view, leases))[: 0 if view.looked_up else 1])

    def accepted(fleet: Fleet, view: MarketView, held: Lease, row: Instance) -> bool:
        is_listed_enough = agreed_rate._is_listed_enough(fleet, held, row)
        return bool(view.looked_up) and not agreed_rate._is_plausible(held, row) and is_listed_enough

    with mock.patch.object(agreed_rate, "unconfirmed", one):
        assert play.play(story).broken is None
        with mock.patch.object(agreed_rate, "_is_accepted", accepted):
            broken = play.play(story).broken
    assert broken is not None
    assert broken.point == 4


def test_what_rose_while_nobody_looked_may_have_run_at_the_new_price_until_the_next_look() -> None:
    """The end of the credit stops the instance, its host's rise is accepted, and no record dates the stop."""
    deeds = (
        Deed(37, "kill_9", amount=0.8),
        Deed(42, "no_credit", amount=0.98),
        Deed(42, "rise", pick=1, amount=0.21),
        Deed(60, "sleep", amount=0.8),
    )
    works = (Work("w0", "service", "ondemand", 1),)
    story = dataclasses.replace(QUIET, works=works, deeds=deeds)
    assert play.play(story).broken is None
    owed = agreed_rate.Rise.owed

    def twice(self: agreed_rate.Rise, charges: Sequence[Charge], until: dt.datetime) -> tuple[Charge, ...]:
        return (*owed(self, charges, until), *owed(self, charges, until))

    with mock.patch.object(agreed_rate.Rise, "owed", twice):
        broken = play.play(story).broken
    assert broken is not None
    assert broken.point == 4


def test_what_is_missing_when_the_machine_falls_asleep_is_counted_until_a_kill_ends_it() -> None:
    """Two vanish at once, which is doubted for an hour; then no listing is taken for hours before the kill."""
    works = (Work("w0", "service", "ondemand", 1), Work("w1", "batch", "deadline", 1))
    deeds = (Deed(44, "host_gone", 3), Deed(100, "sleep", amount=0.96), Deed(100, "kill"))
    story = Story(81025, ("runpod",), works, 45.0, 0.0, 0, deeds=deeds)
    assert play.play(story).broken is None


@pytest.mark.parametrize("vanished", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_what_is_missing_when_the_machine_falls_asleep_is_counted_no_longer_where_no_order_ends_it(
    vanished: int,
) -> None:
    """Two vanish at once, or one; after hours of sleep listings give them up, as of the first that lacked them."""
    works = (Work("w0", "service", "ondemand", 1), Work("w1", "batch", "deadline", 1))[:vanished]
    deeds = (Deed(44, "host_gone", 3), Deed(100 if vanished == 2 else 46, "sleep", amount=0.96))
    story = Story(81025, ("runpod",), works, 45.0, 0.0, 0, deeds=deeds)
    assert play.play(story).broken is None
    gone = absence._gone

    def as_of_now(
        fleet: Fleet, view: MarketView, held: Lease, between: tuple[dt.datetime, dt.datetime], now: dt.datetime
    ) -> LeaseChanged:
        return gone(fleet, view, held, (between[0], now), now)

    with mock.patch.object(absence, "_gone", as_of_now):
        broken = play.play(story).broken
    assert broken is not None
    assert broken.point == 4


def test_what_costs_more_is_excused_only_where_no_whole_cycle_wrote_its_terms_down() -> None:
    """A host's rise is accepted while nobody looks at a rent that loads; it runs when the program is back (rule 16)."""
    deeds = (Deed(6, "rise", pick=1, amount=0.06), Deed(7, "kill_9", amount=0.2))
    works = (Work("w0", "service", "ondemand", 1),)
    is_fresh_rent = reconcile._is_fresh_rent

    def broken(fault: Strike) -> Broken | None:
        return play.play(dataclasses.replace(QUIET, works=works, strikes=(fault,), deeds=deeds)).broken

    def forgetful(fleet: Fleet, held: Lease) -> bool:
        return is_fresh_rent(fleet, msgspec.structs.replace(held, read_back_at=None))

    once = Strike("ledger", "commit", 12, "full")
    assert broken(dataclasses.replace(once, number=10, times=12)) is None
    assert broken(once) is None
    with mock.patch.object(reconcile, "_is_fresh_rent", forgetful):
        found = broken(once)
    assert found is not None
    assert (found.point, "mismatch: it costs" in found.sentence) == (3, True)


def test_fate_strikes_nothing_that_the_deed_before_has_ended() -> None:
    works = (Work("w0", "service", "ondemand", 1),)
    deeds = tuple(Deed(40, name) for name in ("host_gone", "rise", "maintenance", "near_end", "prepay"))
    assert play.play(dataclasses.replace(QUIET, works=works, deeds=deeds)).broken is None


def test_what_its_host_ends_before_the_ledger_has_a_lease_of_it_is_not_counted() -> None:
    """The answer to a rent is lost, and the host is gone before the market lists anything again."""
    strikes = (Strike("vast", "listing", 2, "http_500", times=150), Strike("vast", "rent", 1, "lost_after"))
    story = dataclasses.replace(QUIET, strikes=strikes, deeds=(Deed(40, "host_gone"),))
    assert play.play(story).broken is None


def test_a_kill_carries_out_a_release_that_was_decided_before_the_instance_ran() -> None:
    """The market denies that there is such an instance, a person takes its label, and it runs until the kill."""
    fates = (Deed(4, "maintenance", 32, 0.9), Deed(7, "rival", 41, 0.12), Deed(10, "relabel", 53, 0.63))
    denied = Strike("vast", "release", 1, "gone")
    works = (Work("w0", "batch", "patient", 1),)
    story = Story(62212, ("vast",), works, 33.0, 0.0, 0, strikes=(denied,), deeds=(*fates, Deed(98, "kill")))
    assert play.play(story).broken is None
    # Another release, of a running instance, has only a false reason, although a kill was given before.
    lifted = dataclasses.replace(QUIET, works=works, deeds=(Deed(30, "kill"), Deed(36, "lift")))
    assert play.play(lifted).broken is None
    broken = _broken_where_what_runs_is_released_as(lifted, "move_lost")
    assert broken is not None
    assert (broken.point, "its slot runs nowhere else" in broken.sentence) == (3, True)


@pytest.mark.parametrize("code", ["host_full", "contract_end", "start_overdue"])
@pytest.mark.parametrize("market", ["vast", "runpod"])
def test_no_lease_that_listings_show_running_is_released_as_one_that_cannot_start(code: str, market: str) -> None:
    broken = _broken_where_what_runs_is_released_as(dataclasses.replace(QUIET, markets=(market,)), code)
    assert broken is not None
    assert (broken.point, "true listings showed it running" in broken.sentence) == (3, True)


def test_a_release_that_was_not_recorded_excuses_none_of_a_lease_that_came_to_run() -> None:
    """A start hangs, and the market refuses its release, which no ledger takes. In good weather it runs."""
    refused = (Strike("vast", "release", 1, "refused", 500), Strike("ledger", "commit", 14, "full", 100_000))
    works = (Work("w0", "service", "ondemand", 1),)
    story = dataclasses.replace(QUIET, works=works, poll=60.0, strikes=refused, deeds=(Deed(1, "stuck"),))
    assert play.play(story).broken is None
    broken = _broken_where_what_runs_is_released_as(story, "start_overdue", dt.timedelta(hours=3))
    assert broken is not None
    assert (broken.point, "true listings showed it running" in broken.sentence) == (3, True)


def _broken_where_what_runs_is_released_as(
    story: Story, code: str, after: dt.timedelta = dt.timedelta(hours=2)
) -> Broken | None:
    """Play it where all that runs so long after the program's start is released for a reason that is not true."""
    releases = slot_releases.releases

    def moved(fleet: Fleet) -> Iterator[Release]:
        yield from releases(fleet)
        for held in fleet.leases:
            if held.state is LeaseState.RUNNING and fleet.now - fleet.started_at > after:
                yield Release(held, Reason(code, "it is lost"))

    with mock.patch.object(slot_releases, "releases", moved):
        return play.play(story).broken


@pytest.mark.parametrize("market", ["vast", "runpod"])
def test_orders_that_a_market_calls_invalid_are_drawn_and_played(market: str) -> None:
    """A person's pause is refused twice, and later the start that takes it back."""
    drawn = [strike for seed in range(SEEDS) for strike in draw.story(seed).strikes if strike.fault == "invalid"]
    assert {(strike.market, strike.place) for strike in drawn} == {
        ("vast", "rebid"),
        ("vast", "state"),
        ("runpod", "state"),
        ("mithril", "rent"),
        ("mithril", "rebid"),
        ("mithril", "state"),
    }
    strikes = (Strike(market, "state", 1, "invalid", 2), Strike(market, "state", 4, "invalid"))
    deeds = (Deed(30, "pause"), Deed(40, "resume"))
    works = (Work("w0", "service", "ondemand", 1),)
    story = dataclasses.replace(QUIET, markets=(market,), works=works, strikes=strikes, deeds=deeds)
    with mock.patch.object(
        cooldowns_after_writes, "after_refusal", wraps=cooldowns_after_writes.after_refusal
    ) as refused:
        assert play.play(story).broken is None
    orders = [(type(call.args[0]), call.args[1]) for call in refused.call_args_list]
    assert orders == [(Pause, "invalid_args"), (Pause, "invalid_args"), (Resume, "invalid_args")]


@pytest.mark.nightly
def test_what_no_look_by_its_id_can_show_is_not_to_be_known() -> None:
    """A second daemon rents beside ours while the market refuses to show single instances (rule 18)."""
    kinds = ("batch", "batch", "service", "service")
    works = tuple(Work(f"w{number}", kind, "patient", 1) for number, kind in enumerate(kinds))
    silent = Strike("vast", "look", 16, "throttled", 12, 600.0)
    story = Story(62909, ("vast",), works, 21.0, 1.0, 3, strikes=(silent,), deeds=(Deed(103, "second", 20, 0.94),))
    assert play.play(story).broken is None
    with mock.patch.object(orphans, "LOOKS", 1_000):
        broken = play.play(story).broken
    assert broken is not None
    assert broken.point == 1


def test_patience_with_what_vanished_while_nobody_looked_begins_with_the_first_listing() -> None:
    """Two hosts end while nothing of ours runs and the machine sleeps: the hour begins with the next start."""
    works = (Work("w0", "service", "ondemand", 2),)
    gone = Deed(101, "host_gone")
    deeds = (Deed(100, "kill_9", amount=0.9), gone, gone, Deed(101, "sleep", amount=0.5))
    story = dataclasses.replace(QUIET, works=works, deeds=deeds)
    assert play.play(story).broken is None
    with mock.patch.object(absence, "FAULT_PATIENCE", 2 * absence.FAULT_PATIENCE):
        broken = play.play(story).broken
    assert broken is not None
    assert (broken.point, "is not listed" in broken.sentence) == (6, True)


@pytest.mark.parametrize(
    "between",
    [(), (Deed(37, "kill_9", amount=0.7),)],
    ids=["while listed", "while no daemon runs"],
)
def test_each_new_rate_below_the_agreed_one_is_doubted_from_the_first_listing_that_shows_it(
    between: tuple[Deed, ...],
) -> None:
    """A second deposit comes before the first fall, or after it, is believed; then nobody looks for hours."""
    works = (Work("w0", "service", "ondemand", 1),)
    deposits = Deed(25, "prepay", amount=0.9), *between, Deed(45, "prepay", amount=0.02)
    story = dataclasses.replace(QUIET, works=works, deeds=(*deposits, Deed(84 if between else 74, "sleep", amount=0.5)))
    assert play.play(story).broken is None
    with mock.patch.object(agreed_rate, "PATIENCE", dt.timedelta(hours=5)):
        broken = play.play(story).broken
    assert broken is not None
    assert broken.point == 4


def test_a_pod_whose_host_is_silent_before_anybody_lists_it_counts_at_its_rate_and_no_more() -> None:
    works = (Work("w0", "service", "ondemand", 1),)
    silent = tuple(Deed(cycle, "host_offline", amount=1.0) for cycle in (1, 2, 3))
    dies = Strike("runpod", "rent", 1, "death_after")
    story = Story(7, ("runpod",), works, 30.0, 0.0, 0, strikes=(dies,), deeds=silent)
    assert play.play(story).broken is None
    settle = agreed_rate.settle

    def doubled(fleet: Fleet, view: MarketView, held: Lease, row: Instance, previous: dt.datetime) -> agreed_rate.Rated:
        rated = settle(fleet, view, held, row, previous)
        row = msgspec.structs.replace(rated.row, gpu_rate=rated.row.gpu_rate.scaled(2))
        return dataclasses.replace(rated, row=row)

    with mock.patch.object(agreed_rate, "settle", doubled):
        broken = play.play(story).broken
    assert broken is not None
    assert broken.point == 4


def test_what_ends_under_a_clock_that_is_behind_is_counted_to_the_time_of_that_clock() -> None:
    """A process begins on a clock 90 s behind, and a person ends the workload before the market's time is believed."""
    works = (Work("w0", "service", "ondemand", 8),)
    # Longer than it is behind, or the records would prove it wrong at once.
    deeds = (Deed(40, "clock"), Deed(42, "kill_9", amount=0.1), Deed(50, "kill_workload"))
    story = dataclasses.replace(QUIET, works=works, deeds=deeds)
    assert play.play(story).broken is None
    broken = _broken_where_our_ends_are_dated_early(story)
    assert broken is not None
    assert broken.point == 4


def test_so_is_what_a_process_ends_that_dies_before_it_looks_again() -> None:
    """The next process begins on a clock that is right."""
    works = (Work("w0", "service", "ondemand", 8),)
    deeds = (Deed(40, "clock"), Deed(62, "kill_9", amount=0.1), Deed(69, "kill"))
    dies = Strike("vast", "release", 8, "death_after")
    story = dataclasses.replace(QUIET, works=works, strikes=(dies,), deeds=deeds)
    assert play.play(story).broken is None
    broken = _broken_where_our_ends_are_dated_early(story)
    assert broken is not None
    assert broken.point == 4


def _broken_where_our_ends_are_dated_early(story: Story) -> Broken | None:
    """Play it where what we end counts up to five minutes before its end: more than the clock is behind."""
    accrued = outcomes._accrued

    def early(held: Lease, now: dt.datetime, *rest: Any) -> tuple[Charge, ...]:
        return accrued(held, max(held.accrued_until, now - dt.timedelta(minutes=5)), *rest)

    with mock.patch.object(outcomes, "_accrued", early):
        return play.play(story).broken


def test_a_defect_of_the_engine_is_told_with_its_seed_and_ends_no_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = dataclasses.replace(QUIET, deeds=(Deed(3, "no such deed"),))
    monkeypatch.setattr(draw, "story", lambda seed: QUIET if seed % 2 else broken)
    monkeypatch.setattr(sys, "argv", ["disasters", "--seeds", "2", "--first", "2", "--processes", "1", "--shrink", "0"])
    assert disasters.main() == 1
    told = capsys.readouterr().out
    assert "seed 2: point 0" in told
    assert "KeyError: 'no such deed'" in told
    assert "2 seeds" in told
    assert "1 failed" in told
