"""The market of auctions in the disasters: it is drawn beside all that was drawn before, and its defects are found."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
import structlog

from agent.decide.limits import limit_cut
from agent.decide.operators import operator_holds
from agent.domain.market.instance import Instance
from agent.domain.market.label import Label
from agent.domain.slot import Slot
from agent.markets.mithril import rows
from agent.simulator.mithril.model import Status
from tests.disasters import draw, play, seed_runs, stage
from tests.disasters.auctions import auction_deeds, auction_draw
from tests.disasters.auctions.auction_draw import MARKET
from tests.disasters.points import open_bids, rate_cap
from tests.disasters.story import Auctions, Deed, Story, Work
from tests.disasters.truth import Truth
from tests.support.scene import FLEET

WORKS = (Work("w0", "service", "patient", 1), Work("w1", "batch", "patient", 1))
QUIET = Story(7, (MARKET,), WORKS, 30.0, 0.0, 0, auctions=Auctions(tells=1.0))


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    seed_runs.quietly()
    yield
    structlog.reset_defaults()


def test_a_sixth_of_the_seeds_has_auctions_and_all_others_are_as_they_were() -> None:
    with mock.patch.object(auction_draw, "SHARE", 0.0):
        before = [draw.story(seed) for seed in range(600)]
    after = [draw.story(seed) for seed in range(600)]
    drawn = [story for story in after if MARKET in story.markets]
    assert 60 < len(drawn) < 140
    assert {len(story.markets) for story in drawn} == {1, 2, 3}
    assert [story for story in after if MARKET not in story.markets] == [
        one for one, story in zip(before, after, strict=True) if MARKET not in story.markets
    ]


def test_good_weather_on_auctions_breaks_nothing_and_every_slot_is_judged() -> None:
    verdict = play.play(QUIET)
    assert verdict.broken is None
    assert verdict.judged[3] > 100
    assert verdict.judged[5] >= 10


def test_a_kill_ends_the_bids_that_wait_before_what_works() -> None:
    """Another renter takes the pool of one of them; a person kills while that bid waits to win again."""
    works = (Work("w0", "batch", "deadline", 1), Work("w1", "service", "patient", 1))
    deeds = (Deed(86, "pool_taken", 56, 0.785), Deed(100, "kill"))
    story = Story(40, (MARKET,), works, 41.0, 1.0, 0, deeds=deeds, auctions=Auctions(rows=1, most=1.6))
    assert play.play(story).broken is None
    with mock.patch.object(operator_holds, "open_bids_first", list):
        broken = play.play(story).broken
    assert broken is not None
    assert (broken.point, "before that of" in broken.sentence) == (5, True)


def test_what_is_counted_is_the_price_that_was_paid_and_never_the_limit() -> None:
    instance = rows.instance

    def at_limit(*rest: object) -> Instance:
        row = instance(*rest)  # type: ignore[arg-type]
        return Instance(**{**{name: getattr(row, name) for name in row.__struct_fields__}, "gpu_rate": row.limit})

    with mock.patch.object(rows, "instance", at_limit):
        broken = play.play(QUIET).broken
    assert broken is not None
    assert broken.point == 4


def test_a_person_may_end_what_another_daemon_bid_for_a_slot_that_its_label_does_not_name() -> None:
    works = (Work("w2", "batch", "deadline", 1, (MARKET,)),)
    deeds = (Deed(48, "second", 1, 0.676), Deed(82, "release", 41))
    story = Story(1954, (MARKET,), works, 21.0, 0.0, 0, deeds=deeds, auctions=Auctions(most=0.9))
    verdict = play.play(story)
    assert verdict.broken is None
    assert verdict.judged[2] == 1


@pytest.mark.nightly
def test_a_slot_that_fits_beside_what_a_cap_counts_has_to_run() -> None:
    """Three limits of $0.65 leave $0.05 of a cap of $2.00, which wins a cheap pool for the fourth slot."""
    four = Work("w0", "service", "patient", 4)
    story = dataclasses.replace(QUIET, seed=1, works=(four,), auctions=Auctions(tells=1.0, most=0.9, per_hour=2.0))
    assert play.play(story).broken is None
    with mock.patch.object(limit_cut, "within", return_value=None):
        broken = play.play(story).broken
    assert broken is not None
    assert (broken.point, "above the cap of $2.0000/h" in broken.sentence) == (6, True)


@pytest.mark.nightly
def test_a_strategy_may_choose_a_start_on_another_market_that_the_cap_forbids() -> None:
    """$0.11 of the cap is left, which wins a pool; the strategy prefers a host of Vast for $0.33."""
    story = draw.story(351370)
    assert play.play(story).broken is None
    with mock.patch.object(rate_cap, "_may_choose", return_value=False):
        broken = play.play(story).broken
    assert broken is not None
    assert (broken.point, "it would rent host" in broken.sentence) == (6, True)


def test_a_stopped_bid_counts_under_a_cap_only_while_it_is_held_for_a_person(tmp_path: Path) -> None:
    """Another daemon stopped it, and may start it again: the program counts it at its limit, and leaves slots empty."""
    made = stage.Stage(QUIET, tmp_path)
    world = made.simulator.mithril.world
    name = auction_deeds.by_hand(world, limit_cents=120)
    truth = Truth(made.simulator, (MARKET,))
    truth.refresh(made.clock.time())
    truth.boxes[MARKET, name].label = Label(FLEET, Slot("w0", 0), "1")
    assert open_bids.limits(truth) == 1.2
    world.bids[name].status = Status.PAUSED
    assert open_bids.limits(truth) == 0.0
    assert open_bids.limits(truth, {name}) == 1.2
