"""Points 3 and 5: what a kill ends, and when a lift ends a kill."""

import dataclasses
from collections.abc import Iterator
from unittest import mock

import pytest
import structlog

from tests.disasters import play, seed_runs
from tests.disasters.judge import Judge
from tests.disasters.story import Deed, Story, Strike, Work


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    seed_runs.quietly()
    yield
    # A process that logs nothing would fail the next test that reads what is logged.
    structlog.reset_defaults()


WORKS = (Work("w0", "service", "ondemand", 1, ("vast",)),)
STORY = Story(4348, ("vast",), WORKS, 52.0, 0.0, 0, deeds=(Deed(10, "kill"), Deed(13, "lift")))


@pytest.mark.parametrize(("fault", "ends"), [("full_after", True), ("full", False)])
def test_a_lift_that_was_told_as_failed_ends_the_kill_if_the_ledger_has_it(fault: str, *, ends: bool) -> None:
    """The next commit fails too: until it is over, the program still has the kill in memory."""
    strikes = tuple(Strike("ledger", "commit", number, fault) for number in (28, 29))
    with mock.patch.object(Judge, "look", autospec=True, side_effect=Judge.look) as looked:
        assert play.play(dataclasses.replace(STORY, strikes=strikes)).broken is None
    judge = looked.call_args.args[0]
    assert (judge.killed_at is None) is ends


def test_a_kill_also_ends_what_runs_of_a_workload_that_the_file_no_longer_has() -> None:
    """Another daemon rented it, so that this one's file could lose it while it ran."""
    kinds = (("hedged", 2), ("patient", 0), ("hedged", 0), ("hedged", 0))
    works = tuple(
        Work(f"w{number}", "batch", name, 1, (), at_once=at) for number, (name, at) in enumerate(kinds, start=2)
    )
    deeds = (Deed(2, "second", 7, 0.6), Deed(12, "edit_remove", 3), Deed(16, "kill"))
    assert play.play(Story(6359, ("vast",), works, 44.0, 0.0, 3, deeds=deeds)).broken is None
