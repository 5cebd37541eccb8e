"""Point 6: a slot must run if its strategy pays what hosts ask, but not if it pays less for their slow cards."""

import dataclasses
from collections.abc import Iterator, Mapping
from unittest import mock

import pytest
import structlog

from agent.decide.pricing.worth import work_value
from agent.domain.market.gpu import GpuModel
from agent.domain.work.workload import Workload
from tests.disasters import play, seed_runs
from tests.disasters.story import Deed, Story, Work


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    seed_runs.quietly()
    yield
    # A process that logs nothing would fail the next test that reads the log.
    structlog.reset_defaults()


WORKS = (Work("w0", "batch", "hedged", 1), Work("w1", "service", "patient", 3))
ENDS = Deed(101, "near_end", amount=0.82)
"""The host of the hedged slot leaves in good weather. The other slots hold the cheapest hosts."""
STORY = Story(63306, ("vast",), WORKS, 30.0, 0.0, 0, deeds=(ENDS,))


def test_a_slot_may_stay_empty_where_only_slow_cards_cost_less_than_the_price() -> None:
    """At $0.43 an hour on an RTX 3090 is worth $0.19 beside an RTX 4090, and all that are left cost more."""
    story = dataclasses.replace(STORY, deeds=(Deed(10, "edit_price", amount=0.23), ENDS))
    assert play.play(story).broken is None


def test_a_slot_must_run_where_a_slow_card_costs_less_than_it_is_worth() -> None:
    """At $0.90 it is worth $0.40, unless the speeds are wrong."""
    assert play.play(STORY).broken is None
    fastest = work_value.fastest

    def doubled(known: Mapping[tuple[GpuModel, int], float], work: Workload) -> float:
        return 2.0 * fastest(known, work)

    with mock.patch.object(work_value, "fastest", doubled):
        broken = play.play(STORY).broken
    assert broken is not None
    assert (broken.point, "does not run for" in broken.sentence) == (6, True)
