"""How long a service had enough warm slots: what counts, what does not, and when a look records nothing."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from agent.decide.service import warm_record
from agent.domain.fleet import Fleet
from agent.domain.record.lease import LeaseState
from agent.domain.warm_time import WarmTime
from agent.domain.work.ready_sign import Readiness, ReadySign
from agent.domain.work.workload import WorkloadKind
from tests.support import builders
from tests.support.expiring import held

NOW, MINUTE, POLL = builders.NOW, timedelta(minutes=1), timedelta(seconds=15)


def fleet(running: int, at: timedelta = timedelta(0), **changes: Any) -> Fleet:
    """A service of three slots, of which so many run."""
    kind, ready = changes.pop("kind", WorkloadKind.SERVICE), changes.pop("ready", Readiness())
    work = builders.workload(slots=3, kind=kind, ready=ready)
    leases = tuple(builders.lease(index, slot=builders.slot("train", index)) for index in range(running))
    return builders.fleet(now=NOW + at, workloads=(work,), leases=leases, poll=POLL, **changes)


def watched(known: WarmTime | None, seen: Fleet, needed: int = 2) -> WarmTime | None:
    return warm_record.watched({} if known is None else {"train": known}, seen, lambda _: needed).get("train")


def after(*looks: tuple[float, int]) -> WarmTime:
    """The record after looks, each with its minute and the running slots; the first has enough."""
    known: WarmTime | None = None
    for minute, running in looks:
        known = watched(known, fleet(running, minute * MINUTE))
    assert known is not None
    return known


def minutes(known: WarmTime) -> tuple[float, float]:
    return round(known.wanted_hours * 60, 6), round(known.short_hours * 60, 6)


def test_nothing_counts_before_enough_slots_are_warm() -> None:
    assert watched(None, fleet(1)) is None
    first = watched(None, fleet(2))
    assert first == WarmTime("train", NOW)


@pytest.mark.parametrize(
    ("looks", "wanted", "short"),
    [
        # Short from one poll before the seventh minute to one before the tenth.
        ([(0, 2), (2, 3), (5, 2), (7, 1), (8, 0), (10, 2)], 10.0, 3.0),
        # The state of the last recorded look lasts until one poll before the look that shows another.
        ([(0, 2), (1.5, 1)], 1.5, 0.25),
        # What nobody saw is unknown: one poll of it counts.
        ([(0, 2), (60, 2)], 0.25, 0.0),
        ([(0, 2), (60, 0)], 0.25, 0.25),
    ],
)
def test_the_time_counts_with_the_state_that_was_seen(
    looks: list[tuple[float, int]], wanted: float, short: float
) -> None:
    assert minutes(after(*looks)) == (wanted, short)


def test_a_look_without_news_records_nothing() -> None:
    known = after((0, 2))
    assert watched(known, fleet(3, MINUTE)) is known
    assert watched(known, fleet(2)) is known
    assert warm_record.news({"train": known}, {"train": known}) == ()
    (told,) = warm_record.news({"train": known}, {"train": after((0, 2), (2, 2))})
    assert minutes(told) == (2.0, 0.0)


def test_a_slot_that_runs_and_is_not_ready_is_not_warm() -> None:
    seen = fleet(2, 3 * MINUTE, ready=Readiness(ReadySign.PORT, port=80))
    found = watched(after((0, 2)), seen)
    assert found is not None
    assert found.is_short


def test_time_in_which_nothing_is_wanted_does_not_count() -> None:
    holds = tuple(held("pause", f"slot:train/{index}") for index in range(3))
    known = after((0, 2), (2, 2))
    still = watched(known, fleet(0, 5 * MINUTE, holds=holds))
    assert still is not None
    assert minutes(still) == minutes(known)
    again = watched(still, fleet(2, 7 * MINUTE))
    assert again is not None
    assert minutes(again) == (4.0, 0.0)


def test_a_held_slot_lowers_what_must_be_warm() -> None:
    holds = tuple(held("held", f"slot:train/{index}") for index in (1, 2))
    found = watched(after((0, 2)), fleet(1, 3 * MINUTE, holds=holds))
    assert found is not None
    assert not found.is_short


@pytest.mark.parametrize(("kind", "needed"), [(WorkloadKind.BATCH, 2), (WorkloadKind.SERVICE, 0)])
def test_only_services_that_are_kept_warm_are_watched(kind: WorkloadKind, needed: int) -> None:
    assert watched(None, fleet(3, kind=kind), needed) is None


def test_old_time_is_forgotten() -> None:
    known = after((0, 2), (2, 0), (4, 2))
    late = msgspec.structs.replace(known, seen_at=NOW + timedelta(days=15))
    found = watched(late, fleet(2, timedelta(days=15) + 3 * MINUTE))
    assert found is not None
    assert minutes(found) == (3.0, 0.0)


def test_a_lease_that_ends_makes_it_short() -> None:
    seen = fleet(2, 3 * MINUTE)
    gone = msgspec.structs.replace(seen.leases[0], state=LeaseState.PAUSED)
    found = watched(after((0, 2)), msgspec.structs.replace(seen, leases=(gone, *seen.leases[1:])))
    assert found is not None
    assert minutes(found) == (3.0, 0.25)
