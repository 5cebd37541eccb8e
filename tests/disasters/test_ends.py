"""Point 3: a release because work is done is believed only where it is, or where a person said so."""

import dataclasses
import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Any
from unittest import mock

import pytest
import structlog

from agent.decide.facts import Marked
from agent.decide.reconcile import reconcile, workload_end
from agent.domain.fleet import Fleet
from agent.domain.record.lease import Lease
from tests.disasters import play, seed_runs
from tests.disasters.story import Deed, Guarded, Story, Strike, Work


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    seed_runs.quietly()
    yield
    # A process that logs nothing would fail the next test that reads the log.
    structlog.reset_defaults()


BATCH = Work("w0", "batch", "ondemand", 1)
QUIET = Story(7, ("vast",), (BATCH,), 30.0, 0.0, 0)


@pytest.mark.parametrize(
    ("work", "deeds"),
    [
        (Work("w0", "batch", "ondemand", 1, ends_after=1200.0), ()),
        (BATCH, (Deed(40, "exit"),)),
        (BATCH, (Deed(40, "done"),)),
        (Work("w0", "service", "ondemand", 1), (Deed(40, "done"),)),
    ],
)
def test_what_is_truly_done_may_be_released_for_that(work: Work, deeds: tuple[Deed, ...]) -> None:
    assert play.play(Story(7, ("vast",), (work,), 30.0, 0.0, 0, deeds=deeds)).broken is None


def test_what_is_done_may_be_released_although_the_release_cannot_be_recorded() -> None:
    """The ledger has the mark of the slot, and takes no intent a moment later (rule 13)."""
    guarded = Work("w0", "batch", "ondemand", 1, guard=Guarded(accept="reject"))
    strikes, deeds = (Strike("ledger", "commit", 32, "full"),), (Deed(14, "lie_false_done"),)
    assert play.play(Story(7, ("vast",), (guarded,), 30.0, 0.0, 0, strikes, deeds)).broken is None


def _hasty() -> Any:
    """Return the defect that calls a batch done after ten minutes of its work."""
    of_batches = workload_end._of_batches

    def hasty(fleet: Fleet, changed: Mapping[str, Lease]) -> Iterator[Marked]:
        yield from of_batches(fleet, changed)
        for held in fleet.leases:
            if held.run_since is not None and fleet.now - held.run_since > dt.timedelta(minutes=10):
                yield workload_end.done(fleet, held, "a line of its log")

    return mock.patch.object(workload_end, "_of_batches", hasty)


@pytest.mark.parametrize("ends_after", [0.0, 86_400.0])
def test_what_is_called_done_and_works_is_found(ends_after: float) -> None:
    work = Work("w0", "batch", "ondemand", 1, ends_after=ends_after)
    with _hasty():
        broken = play.play(Story(7, ("vast",), (work,), 30.0, 0.0, 0)).broken
    assert broken is not None
    assert (broken.point, "nor has its work ended" in broken.sentence) == (3, True)


def test_what_is_called_done_and_works_is_found_where_its_release_cannot_be_recorded() -> None:
    with _hasty():
        broken = play.play(dataclasses.replace(QUIET, strikes=(Strike("ledger", "commit", 29, "full"),))).broken
    assert broken is not None
    assert (broken.point, "no reason is recorded" in broken.sentence) == (3, True)


def test_a_false_end_in_listings_is_no_end_while_the_look_by_id_has_no_answer() -> None:
    """The listings call it exited for minutes; the first look by its id is refused, the next shows that it works."""
    work = Work("w0", "batch", "hedged", 1, ("vast",))
    strikes = (Strike("vast", "listing", 5, "state", 12, 4.0), Strike("vast", "look", 3, "throttled", 1, -1.0))
    story = Story(98774, ("vast",), (work,), 56.0, 1.0, 0, strikes)
    assert play.play(story).broken is None
    with mock.patch.object(reconcile, "ANSWER_WITHIN", dt.timedelta()):
        broken = play.play(story).broken
    assert broken is not None
    assert broken.point == 3
