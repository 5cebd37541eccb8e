"""Metering adds up, whatever the pieces, and stays within UTC days."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.accounting import meter
from agent.decide.pricing import loss_rate
from agent.domain.money import ZERO, Usd, UsdPerHour
from agent.domain.record.lease import Bills, Lease
from agent.domain.work.ready_sign import Readiness, ReadySign
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from tests.support import builders

START = datetime(2026, 12, 31, 20, tzinfo=UTC)
moments = st.integers(0, 60 * 60 * 72).map(lambda seconds: START + timedelta(seconds=seconds))
early = st.integers(0, 60 * 60 * 9).map(lambda seconds: START - timedelta(seconds=seconds))
turns = st.lists(st.tuples(moments | early, st.sampled_from(Bills)), max_size=5)
leases = st.builds(
    builders.lease,
    gpu_rate=st.builds(UsdPerHour, st.integers(0, 3_000_000)),
    disk_rate=st.builds(UsdPerHour, st.integers(0, 100_000)),
    bills=st.sampled_from(Bills),
    accrued_until=st.just(START),
)


def summed(charges: tuple[meter.Charge, ...]) -> tuple[Usd, float]:
    money = Usd(sum(charge.gpu.micros + charge.disk.micros for charge in charges))
    return money, sum(charge.running_seconds for charge in charges)


@given(leases, st.lists(moments, min_size=1, max_size=8))
def test_pieces_cost_what_the_whole_costs(held: Lease, cuts: list[datetime]) -> None:
    cuts = sorted(cuts)
    whole, ran = summed(meter.accrue(held, cuts[-1]))
    pieces: list[meter.Charge] = []
    since = START
    for until in cuts:
        part = builders.lease(gpu_rate=held.gpu_rate, disk_rate=held.disk_rate, bills=held.bills, accrued_until=since)
        pieces += meter.accrue(part, until)
        since = until
    parts, ran_in_parts = summed(tuple(pieces))
    # Half a micro-dollar for GPU and disk of every piece, and of every day of the whole.
    assert abs(parts.micros - whole.micros) <= len(pieces) + 4
    assert ran_in_parts == pytest.approx(ran)


@given(leases, moments, turns)
def test_every_charge_is_of_one_day_in_order(held: Lease, until: datetime, many: list[meter.Turn]) -> None:
    charges = meter.accrue(held, until, many)
    days = [charge.day for charge in charges]
    assert days == sorted(set(days))
    for charge in charges:
        assert START.date() <= charge.day <= until.date()
        assert 0 <= charge.running_seconds <= 86_400
        assert charge.gpu >= ZERO
        assert charge.disk >= ZERO


@given(leases, moments, turns)
def test_a_turn_divides_the_time_and_neither_adds_nor_drops_any(
    held: Lease, until: datetime, many: list[meter.Turn]
) -> None:
    seconds = dict.fromkeys(Bills, 0.0)
    at, bills = START, held.bills
    for moment, following in [*sorted(many, key=lambda turn: turn[0]), (until, Bills.NOTHING)]:
        stop = min(moment, until)
        seconds[bills] += max((stop - at).total_seconds(), 0)
        at, bills = max(stop, at), following
    money, ran = summed(meter.accrue(held, until, many))
    running, disk = seconds[Bills.GPU_AND_DISK], seconds[Bills.DISK]
    assert ran == pytest.approx(running)
    expected = held.gpu_rate.micros * running / 3600 + held.disk_rate.micros * (running + disk) / 3600
    assert abs(money.micros - expected) <= 2 * (len(many) + 5)


def test_midnight_divides_a_charge() -> None:
    held = builders.lease(gpu_rate=builders.per_hour("1.00"), disk_rate=builders.per_hour("0.10"), accrued_until=START)
    first, second = meter.accrue(held, datetime(2027, 1, 1, 2, tzinfo=UTC))
    assert (first.day.isoformat(), first.gpu, first.disk) == ("2026-12-31", builders.usd(4), builders.usd("0.4"))
    assert (second.day.isoformat(), second.gpu, second.running_seconds) == ("2027-01-01", builders.usd(2), 7200)


@given(st.lists(moments, min_size=1, max_size=8), st.integers(0, 100_000))
def test_hours_weighed_by_age_add_up_whatever_the_pieces(cuts: list[datetime], age: int) -> None:
    began = START - timedelta(seconds=age)
    held = builders.lease(run_since=began, accrued_until=START)
    weighed = 0.0
    for since, until in pairwise([START, *sorted(cuts)]):
        part = msgspec.structs.replace(held, accrued_until=since)
        weighed += sum(charge.weighed_hours for charge in meter.accrue(part, until))
    hours = age / 3600
    assert weighed == pytest.approx(loss_rate.weighed(hours, hours + (max(cuts) - START) / timedelta(hours=1)))


def test_hours_are_weighed_from_the_start_of_their_own_stay() -> None:
    starting = builders.lease(bills=Bills.DISK, run_since=None, opened_at=START, state_since=START, accrued_until=START)
    begun = START + timedelta(minutes=30)
    (charge,) = meter.accrue(starting, begun + timedelta(hours=2), [(begun, Bills.GPU_AND_DISK)])
    assert charge.weighed_hours == pytest.approx(loss_rate.weighed(0.0, 2.0))


def test_nothing_is_charged_backwards() -> None:
    held = builders.lease(accrued_until=START)
    assert meter.accrue(held, START - timedelta(hours=1)) == ()
    assert meter.accrue(held, START) == ()


def test_an_offline_host_charges_nothing_for_the_time() -> None:
    held = builders.lease(accrued_until=START, bills=Bills.NOTHING)
    charge = meter.accrue(held, START + timedelta(hours=1))[0]
    assert (charge.gpu, charge.disk, charge.running_seconds) == (ZERO, ZERO, 0.0)


@pytest.mark.parametrize(
    ("down", "up", "paid"),
    [(10.0, 1.0, "0.07"), (5.0, 1.0, "0.02"), (4.0, 0.5, "0"), (5.0, 0.0, "0")],
)
def test_traffic_is_paid_since_the_last_reading(down: float, up: float, paid: str) -> None:
    held = builders.lease(traffic_down_gb=5.0, traffic_up_gb=0.5)
    assert meter.traffic(held, down, up, 10_000, 40_000) == builders.usd(paid)


REMOTE = Checkpoint(timedelta(minutes=10), timedelta(minutes=2), place=CheckpointPlace.REMOTE)
NONE = Checkpoint(timedelta(minutes=10), timedelta(minutes=2), place=CheckpointPlace.NONE)


@pytest.mark.parametrize(
    ("minutes", "checkpoint", "is_lost", "useful"),
    [
        (35, REMOTE, False, 33),
        (35, REMOTE, True, 30),
        (12, REMOTE, True, 10),
        (11.9, REMOTE, True, 0),
        (1, REMOTE, False, 0),
        (35, NONE, False, 33),
        (35, NONE, True, 0),
        (35, Checkpoint(timedelta(0), timedelta(0)), True, 0),
    ],
)
def test_useful_is_what_reached_a_checkpoint(
    minutes: float, checkpoint: Checkpoint, is_lost: bool, useful: float
) -> None:
    assert meter.useful_seconds(minutes * 60, checkpoint, is_lost=is_lost) == pytest.approx(useful * 60)


@given(st.floats(0, 10**6), st.floats(0, 10**6))
def test_useful_time_never_exceeds_running_and_grows_with_it(ran: float, more: float) -> None:
    kept, lost = (meter.useful_seconds(ran, REMOTE, is_lost=is_lost) for is_lost in (False, True))
    assert 0 <= lost <= kept <= ran
    assert meter.useful_seconds(ran + more, REMOTE, is_lost=True) >= lost


def test_outstanding_is_what_bills_since_it_was_metered() -> None:
    runs = builders.lease(1, accrued_until=builders.ago(hours=1))
    ahead = builders.lease(2, accrued_until=builders.ago(hours=-1))
    rests = builders.lease(3, accrued_until=builders.ago(hours=2), bills=Bills.NOTHING)
    assert meter.outstanding([runs, ahead, rests], builders.NOW) == builders.usd("0.224")


ASKED = Readiness(ReadySign.LOG, line="ready")


@pytest.mark.parametrize(
    ("changes", "ready", "minutes"),
    [
        ({}, Readiness(), 58),
        ({"run_since": None}, Readiness(), 0),
        ({}, ASKED, 0),
        ({"ready_since": builders.ago(minutes=40)}, ASKED, 40),
        ({"ready_since": builders.ago(minutes=40)}, Readiness(), 58),
        ({"run_since": builders.ago(minutes=-5)}, Readiness(), 0),
    ],
    ids=str,
)
def test_a_stretch_is_useful_from_its_restore_or_from_when_it_says_it_is_ready(
    changes: dict[str, Any], ready: Readiness, minutes: float
) -> None:
    held = builders.lease(**changes)
    assert meter.stretch_seconds(held, builders.NOW, REMOTE, ready, is_lost=False) == minutes * 60
    lost = meter.stretch_seconds(held, builders.NOW, REMOTE, ready, is_lost=True)
    assert lost == minutes // 10 * 600
