"""The market of auctions in the disasters: it is drawn beside all that was drawn before, and its defects are found."""

from collections.abc import Iterator
from unittest import mock

import pytest
import structlog

from agent.decide.operators import operator_holds
from agent.domain.market.instance import Instance
from agent.markets.mithril import rows
from tests.disasters import __main__ as disasters
from tests.disasters import draw, play
from tests.disasters.auctions import auction_draw
from tests.disasters.auctions.auction_draw import MARKET
from tests.disasters.story import Auctions, Deed, Story, Work

WORKS = (Work("w0", "service", "patient", 1), Work("w1", "batch", "patient", 1))
QUIET = Story(7, (MARKET,), WORKS, 30.0, 0.0, 0, auctions=Auctions(tells=1.0))


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    disasters.quietly()
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
