"""Point 4 for an order to end what is missing and was never proven: it never leaves (rule 18), and its time counts."""

import dataclasses
from collections.abc import Iterator
from datetime import datetime
from unittest import mock

import pytest
import structlog

from agent.decide.facts import Fact
from agent.decide.reconcile import absence
from agent.domain.fleet import Fleet, MarketView
from agent.domain.record.lease import Lease
from tests.disasters import play, seed_runs
from tests.disasters.story import Deed, Story, Strike, Work


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    seed_runs.quietly()
    yield
    # A process that logs nothing would fail the next test that reads the log.
    structlog.reset_defaults()


UNPROVEN = Strike("vast", "look", 1, "death_after")
GONE, ORDERED, AWAY = Deed(3, "host_gone"), Deed(12, "release"), Deed(12, "daemon_away", amount=0.6)
"""The host ends it before a process lives that could have proven it, and the next one dies before it gives it up."""
STORY = Story(7, ("vast",), (Work("w0", "service", "ondemand", 1),), 30.0, 0.0, 0, (UNPROVEN,), (GONE, ORDERED, AWAY))


def test_what_is_ordered_to_end_while_it_is_missing_counts_to_the_first_listing_of_the_next_process() -> None:
    assert play.play(STORY).broken is None


def test_what_nobody_ordered_to_end_counts_no_longer_for_that() -> None:
    """A process that forgot which listing lacked it first, where the ledger still has it."""
    unordered = dataclasses.replace(STORY, deeds=(GONE, AWAY))
    assert play.play(unordered).broken is None
    never_seen = absence._never_seen

    def late(fleet: Fleet, view: MarketView, lease: Lease, between: tuple[datetime, datetime]) -> list[Fact]:
        return never_seen(fleet, view, lease, (between[0], fleet.now))

    with mock.patch.object(absence, "_never_seen", late):
        broken = play.play(unordered).broken
    assert broken is not None
    assert broken.point == 4
