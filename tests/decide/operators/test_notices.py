"""A notice about the whole fleet appears once, with its fix."""

import msgspec
import pytest
from msgspec.structs import replace

from agent.decide.operators import notices
from agent.domain.fleet import MarketView
from agent.domain.money import ZERO
from agent.domain.record.lease import LeaseState
from tests.support import builders

VIEW = builders.view()


def told(view: MarketView = VIEW, stopped_because: str = "", why_unwritable: str = "") -> list[tuple[str, str]]:
    made = notices.notices({view.market: view}, stopped_because, (), why_unwritable)
    return [(notice.code, notice.sentence) for notice in made]


def test_a_fleet_that_may_pay_has_nothing_to_tell() -> None:
    assert told() == []


@pytest.mark.parametrize(
    ("view", "code", "part"),
    [
        (
            msgspec.structs.replace(VIEW, is_fresh=False, trouble="it answered 503."),
            "unreadable",
            "UTC: it answered 503; leases that ran then",
        ),
        (
            msgspec.structs.replace(VIEW, is_fresh=False, listed_at=None),
            "unreadable",
            "could not be read yet: no answer",
        ),
        (msgspec.structs.replace(VIEW, no_spend_because="spend = false"), "no_spend", "spend = false"),
        (msgspec.structs.replace(VIEW, clock_skew_seconds=-86_400.0), "clock_skew", "1 day, 0:00:00 ahead of"),
        (msgspec.structs.replace(VIEW, clock_skew_seconds=61.0), "clock_skew", "0:01:01 behind"),
        (msgspec.structs.replace(VIEW, credit=ZERO), "no_credit", "top it up"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_keeps_a_market_from_being_paid(view: MarketView, code: str, part: str) -> None:
    ((said, sentence),) = told(view)
    assert said == code
    assert part in sentence


def test_a_small_difference_of_clocks_is_none() -> None:
    assert told(msgspec.structs.replace(VIEW, clock_skew_seconds=-60.0)) == []


def test_what_stopped_all_writing_is_told_once_and_first() -> None:
    view = msgspec.structs.replace(VIEW, no_spend_because="a second daemon")
    assert told(view, "a second daemon", "the server is away: start it") == [
        ("writing_stopped", "a second daemon"),
        ("unwritable", "the server is away: start it; running leases go on"),
    ]


def test_a_held_lease_waits_for_a_person_until_it_is_on_its_way_out() -> None:
    held = builders.lease(is_held=True)
    (notice,) = notices.held_back([held, builders.lease(2)])
    assert (notice.about, notice.code) == (held.lease_id, "held")
    assert f"`gpubid adopt {held.lease_id} --into WORKLOAD/SLOT` or `gpubid release {held.lease_id}`" in notice.sentence
    assert not list(notices.held_back([replace(held, state=LeaseState.RELEASING)]))
