"""Point 4 while a price is doubted: what a rise or a fall counts is as ARCHITECTURE.md bounds it, whatever fails."""

from collections.abc import Iterator

import pytest
import structlog

from tests.disasters import __main__ as disasters
from tests.disasters import play
from tests.disasters.story import Deed, Story, Strike, Work


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    disasters.quietly()
    yield
    # A process that logs nothing would fail the next test that reads what is logged.
    structlog.reset_defaults()


def test_a_rise_that_was_listed_while_nothing_could_be_recorded_is_owed_from_before() -> None:
    """The disk is full for longer than between two meterings, and a person accepts a rise in that time."""
    full = Strike("ledger", "commit", 40, "full", times=20)
    works, deeds = (Work("w0", "service", "ondemand", 1),), (Deed(20, "rise", 1, 0.8),)
    assert play.play(Story(7, ("vast",), works, 60.0, 0.0, 0, (full,), deeds)).broken is None
