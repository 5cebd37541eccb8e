"""Paid time by phase: the parts are the whole to the microsecond, however it is cut, and losses take from useful."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.accounting import meter, phases
from agent.decide.accounting.phases import Promise, Ran
from agent.domain.record.lease import Bills, LeaseState
from agent.domain.record.paid_time import Phases
from agent.domain.work.ready_sign import Readiness, ReadySign
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from tests.support import builders

PROMISE = Promise(Checkpoint(timedelta(minutes=15), timedelta(minutes=2), place=CheckpointPlace.REMOTE))
ASKED = Promise(PROMISE.checkpoint, Readiness(ReadySign.LOG, line="ready"))
NOW = builders.NOW
MINUTE = 60_000_000


def at(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


def total(parts: Sequence[Phases]) -> dict[str, float]:
    """Sum parts as the ledger would, in minutes where they are whole."""
    sums: Counter[str] = Counter()
    for part in parts:
        sums.update(loading=part.loading, restoring=part.restoring + -part.redeemed)
        sums.update(useful=part.useful - part.spoiled + part.redeemed, lost=part.spoiled, paid=part.paid)
    return {name: value / MINUTE for name, value in sums.items() if value}


def running(**changes: Any) -> Any:
    """Build a lease that began to run at `NOW`, metered up to then."""
    return builders.lease(**{"run_since": NOW, "accrued_until": NOW, **changes})


def test_running_is_restoring_then_useful() -> None:
    found = phases.split(running(), at(10), (), PROMISE, Ran(NOW))
    assert total(found) == {"restoring": 2, "useful": 8, "paid": 10}


def test_an_interruption_takes_what_no_checkpoint_kept() -> None:
    lost = Ran(None, at(40), is_lost=True)
    found = phases.split(running(), at(45), ((at(40), Bills.DISK),), PROMISE, lost)
    assert total(found) == {"restoring": 2, "useful": 30, "lost": 8, "paid": 40}
    kept = phases.split(running(), at(45), ((at(40), Bills.DISK),), PROMISE, Ran(None, at(40)))
    assert total(kept) == {"restoring": 2, "useful": 38, "paid": 40}


@pytest.mark.parametrize(("is_lost", "useful"), [(False, 20), (True, 15)])
def test_time_without_progress_is_lost_once_its_stretch_ends(is_lost: bool, useful: int) -> None:
    stalled, turn = running(stalled_since=at(22)), ((at(40), Bills.DISK),)
    found = phases.split(stalled, at(45), turn, PROMISE, Ran(None, at(40), is_lost=is_lost))
    assert total(found) == {"restoring": 2, "useful": useful, "lost": 38 - useful, "paid": 40}
    goes_on = phases.split(stalled, at(40), (), PROMISE, Ran(NOW))
    assert total(goes_on) == {"restoring": 2, "useful": 38, "paid": 40}, "it may show progress yet"
    seconds = meter.stretch_seconds(stalled, at(40), PROMISE.checkpoint, PROMISE.ready, is_lost=is_lost)
    assert seconds == useful * 60
    before = running(stalled_since=at(1))
    assert meter.stretch_seconds(before, at(40), PROMISE.checkpoint, PROMISE.ready, is_lost=is_lost) == 0


def test_without_checkpoints_all_of_the_stretch_is_lost() -> None:
    promise = Promise(replace(PROMISE.checkpoint, place=CheckpointPlace.NONE))
    found = phases.split(running(), at(40), (), promise, Ran(NOW, at(40), is_lost=True))
    assert total(found) == {"restoring": 2, "lost": 38, "paid": 40}


def test_paid_time_before_the_container_runs_is_loading() -> None:
    starts = running(state=LeaseState.STARTING, run_since=None, bills=Bills.GPU_AND_DISK)
    found = phases.split(starts, at(10), (), PROMISE, Ran(at(4)))
    assert total(found) == {"loading": 4, "restoring": 2, "useful": 4, "paid": 10}
    assert total(phases.split(starts, at(10), (), PROMISE, Ran())) == {"loading": 10, "paid": 10}


def test_paid_time_after_the_container_ended_is_no_use() -> None:
    found = phases.split(running(), at(10), (), PROMISE, Ran(None, at(6), is_lost=True))
    assert total(found) == {"restoring": 2, "lost": 4, "loading": 4, "paid": 10}


def test_where_the_workload_tells_useful_time_begins_with_its_sign() -> None:
    assert total(phases.split(running(), at(10), (), ASKED, Ran(NOW))) == {"restoring": 10, "paid": 10}
    ready = running(ready_since=at(-5), run_since=at(-10), was_ready=True)
    found = phases.split(ready, at(18), (), ASKED, Ran(at(-10), at(18), is_lost=True))
    assert total(found) == {"useful": 10, "lost": 8, "paid": 18}
    late = running(ready_since=at(-5), accrued_until=at(1))
    assert sum(part.redeemed for part in phases.redeemed(late)) == 6 * MINUTE


def test_a_paused_disk_is_told_apart() -> None:
    held = builders.lease(state=LeaseState.PAUSED, accrued_until=NOW)
    [part] = phases.split(held, at(60), (), PROMISE, Ran())
    assert (part.paid, part.paused_disk) == (0, held.disk_rate.over(3600))


def test_a_loss_after_midnight_takes_from_the_day_before() -> None:
    midnight = NOW + timedelta(hours=12)
    held = running(run_since=midnight - timedelta(minutes=10), accrued_until=midnight - timedelta(minutes=10))
    found = phases.split(held, at(12 * 60 + 3), (), PROMISE, Ran(None, midnight + timedelta(minutes=3), is_lost=True))
    assert [(part.paid // MINUTE, part.spoiled // MINUTE) for part in found] == [(10, 8), (3, 3)]


spans = st.lists(st.tuples(st.integers(1, 40_000_000_000), st.sampled_from(Bills)), max_size=6)


@given(
    spans=spans,
    cuts=st.lists(st.integers(0, 200_000_000_000), max_size=4),
    promise=st.sampled_from([PROMISE, ASKED, Promise()]),
    first=st.sampled_from(Bills),
    is_lost=st.booleans(),
)
def test_the_parts_are_the_whole_to_the_microsecond(
    spans: list[tuple[int, Bills]], cuts: list[int], promise: Promise, first: Bills, is_lost: bool
) -> None:
    """However billing turned and wherever it was metered, the meter's running time is the sum of the phases."""
    turns, instant = [], NOW
    for micros, bills in spans:
        instant += timedelta(microseconds=micros)
        turns.append((instant, bills))
    end = instant + timedelta(minutes=7)
    runs = first is Bills.GPU_AND_DISK
    held = running(bills=first, run_since=NOW if runs else None, ready_since=NOW if runs else None)
    paid = 0
    for until in sorted({*(min(NOW + timedelta(microseconds=cut), end) for cut in cuts if cut), end}):
        mine = [turn for turn in turns if held.accrued_until < turn[0] <= until]
        last = mine[-1][1] if mine else held.bills
        ran = Ran(NOW if last is Bills.GPU_AND_DISK else None, is_lost=is_lost)
        parts = phases.split(held, until, mine, promise, ran)
        counted = sum(charge.running_seconds for charge in meter.accrue(held, until, mine))
        assert all(part.paid == part.loading + part.restoring + part.useful for part in parts)
        assert all(min(part.loading, part.restoring, part.useful, part.spoiled) >= 0 for part in parts)
        assert sum(part.paid for part in parts) == pytest.approx(counted * 1e6, abs=2)
        paid += sum(part.paid for part in parts)
        held = msgspec.structs.replace(
            held, accrued_until=max(until, held.accrued_until), bills=last, run_since=ran.since
        )
    whole = running(bills=first, run_since=NOW if runs else None)
    exact = sum(
        (stop - start) // timedelta(microseconds=1)
        for start, stop, bills in meter.spans(whole, end, turns)
        if bills is Bills.GPU_AND_DISK
    )
    assert paid == exact
