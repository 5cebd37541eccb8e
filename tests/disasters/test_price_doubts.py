"""Point 4 while a price is doubted: what a rise or a fall counts is as spend-bounds.md bounds it, whatever fails."""

import dataclasses
import datetime as dt
from collections.abc import Iterator
from unittest import mock

import pytest
import structlog

from agent.decide.reconcile import agreed_rate
from agent.domain.record.lease import Lease
from tests.disasters import play, seed_runs
from tests.disasters.story import Deed, Story, Strike, Work


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    seed_runs.quietly()
    yield
    # A process that logs nothing would fail the next test that reads what is logged.
    structlog.reset_defaults()


ONE = Story(7, ("vast",), (Work("w0", "service", "ondemand", 1),), 60.0, 0.0, 0)


def test_a_rise_that_was_listed_while_nothing_could_be_recorded_is_owed_from_before() -> None:
    """The disk is full for longer than between two meterings, and a person accepts a rise in that time."""
    full = Strike("ledger", "commit", 40, "full", times=20)
    story = dataclasses.replace(ONE, strikes=(full,), deeds=(Deed(20, "rise", 1, 0.8),))
    assert play.play(story).broken is None


def test_a_steep_rise_that_falls_before_it_is_believed_counts_at_its_last_price_from_the_first_look() -> None:
    """A person accepts more than three times the price, and ten minutes later a deposit takes a part of it off."""
    story = dataclasses.replace(ONE, deeds=(Deed(20, "rise", 1, 0.99), Deed(58, "prepay", amount=0.3)))
    assert play.play(story).broken is None

    def since_its_fall(_: Lease, since: dt.datetime) -> dt.datetime:
        return since

    with mock.patch.object(agreed_rate, "_shown_at", since_its_fall):
        broken = play.play(story).broken
    assert broken is not None
    assert broken.point == 4


def test_a_false_price_begins_the_doubt_of_a_rise_anew_also_where_the_program_dies_with_it() -> None:
    """The look by id shows another price, and the program dies as it records that."""
    strikes = (Strike("vast", "look", 2, "price", 1, 1.3), Strike("ledger", "commit", 39, "death_after"))
    story = dataclasses.replace(ONE, strikes=strikes, deeds=(Deed(20, "rise", 1, 0.5),))
    assert play.play(story).broken is None
    with mock.patch.object(agreed_rate, "FURTHER_LISTINGS", 30):
        broken = play.play(story).broken
    assert broken is not None
    assert broken.point == 4


def test_looks_alone_make_a_false_rise_believed_where_the_listings_lack_the_instance() -> None:
    strikes = (
        Strike("vast", "listing", 20, "missing_row", times=12),
        Strike("vast", "look", 2, "price", times=11, amount=2.9),
    )
    assert play.play(dataclasses.replace(ONE, strikes=strikes)).broken is None
