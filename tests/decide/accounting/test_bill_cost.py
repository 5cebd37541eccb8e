"""The cost of GPUs by the market's own bill."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agent.decide.accounting import meter
from agent.decide.accounting.bill_cost import Billed
from agent.domain import money
from agent.domain.market.price import PaidBill, PaidPeriod
from agent.domain.record.lease import Bills
from tests.support import builders

START = datetime(2026, 12, 31, 23, tzinfo=UTC)
LOW, HIGH, DEAR = builders.per_hour("0.20"), builders.per_hour("0.60"), builders.per_hour("9.00")
MOST = builders.per_hour("0.90")


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def counted(billed: Billed, minutes: float, turns: tuple[meter.Turn, ...] = (), *, runs: bool = True) -> int:
    held = builders.lease(
        gpu_rate=LOW, accrued_until=START, run_since=START, bills=Bills.GPU_AND_DISK if runs else Bills.DISK
    )
    return sum(charge.gpu.micros for charge in meter.accrue(held, at(minutes), turns, billed))


BILL = PaidBill((PaidPeriod(LOW, at(0), at(10)), PaidPeriod(HIGH, at(10), at(20)), PaidPeriod(DEAR, at(30))), at(60))


def test_each_period_counts_at_its_price_and_the_time_between_two_at_nothing() -> None:
    minutes = LOW.over(600).micros + HIGH.over(600).micros + MOST.over(1800).micros
    assert counted(Billed(BILL, MOST, DEAR), 60) == minutes


def test_the_bill_counts_where_no_look_saw_the_machine_and_only_there_where_it_ended() -> None:
    billed = Billed(PaidBill(BILL.periods[:2], at(60)), MOST, HIGH)
    assert counted(billed, 60, runs=False) == counted(billed, 60) == LOW.over(600).micros + HIGH.over(600).micros
    assert abs(counted(billed, 60, ((at(5), Bills.DISK),)) - counted(billed, 60)) <= 1, "half a micro-dollar a piece"


def test_what_the_bill_does_not_cover_counts_at_the_lease_s_own_rate_before_it_and_at_the_present_price_after_it() -> (
    None
):
    billed = Billed(PaidBill(BILL.periods[1:2], at(20), at(10)), MOST, HIGH)
    assert counted(billed, 30) == LOW.over(600).micros + 2 * HIGH.over(600).micros
    assert counted(billed, 30, runs=False) == HIGH.over(600).micros


moments = st.integers(-60, 200)


@given(
    cuts=st.lists(moments, max_size=8).map(sorted),
    ends=st.lists(moments, min_size=1, max_size=6, unique=True).map(sorted),
    since=st.none() | moments,
    until=moments,
)
def test_a_span_in_pieces_costs_what_it_costs_whole(
    cuts: list[int], ends: list[int], since: int | None, until: int
) -> None:
    periods = tuple(
        PaidPeriod(HIGH if number % 2 else LOW, at(begin), at(end) if end != ends[-1] else None)
        for number, (begin, end) in enumerate(zip(ends, [*ends[1:], ends[-1]], strict=True))
    )
    billed = Billed(PaidBill(periods, at(until), None if since is None else at(since)), MOST, DEAR)
    marks = [at(-60), *(at(cut) for cut in cuts), at(200)]
    pieces = money.total(billed.cost(one, other, LOW) for one, other in pairwise(marks))
    assert abs((pieces - billed.cost(marks[0], marks[-1], LOW)).micros) <= 8 * len(marks)
