"""Rule 21 where the price paid is not the bid: the listed price is metered, and the limit bounds committed spend."""

from datetime import timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agent.decide.accounting.meter import Charge
from agent.decide.facts import LeaseChanged
from agent.decide.reconcile import reconcile
from agent.decide.reconcile.pass_memory import Memory
from agent.domain.market.instance import InstanceState
from agent.domain.market.price import PaidBill, PaidPeriod
from agent.domain.money import UsdPerHour
from agent.domain.record.lease import Bills
from tests.support import builders, second_price


@given(
    prices=st.lists(second_price.dollars, min_size=2, max_size=30),
    limit=second_price.dollars,
    notice=st.integers(0, 30),
    restarted=st.none() | st.integers(0, 30),
)
def test_where_the_price_paid_is_not_the_bid_the_price_is_metered_and_never_the_limit(
    prices: list[UsdPerHour], limit: UsdPerHour, notice: int, restarted: int | None
) -> None:
    """An auction every two minutes sets a new price, which each of eight listings shows. Notice changes nothing.

    After a restart a rise counts from the last metering on: nobody knows when it came.
    """
    paid = [min(price, limit) for price in prices]
    lease = second_price.lease(bid_limit=limit, gpu_rate=paid[0])
    memory, charged, now = Memory(), 0, builders.NOW
    for number, price in enumerate(paid):
        ends_at = builders.NOW + timedelta(minutes=2 * notice + 5) if number >= notice else None
        memory = Memory() if number == restarted else memory
        row = second_price.row(limit=limit, gpu_rate=price, notice_at=ends_at)
        for _ in range(8):
            now += timedelta(seconds=15)
            view = second_price.view(instances=(row,), listed_at=now, listings=10)
            seen = builders.fleet(leases=(lease,), now=now, markets={second_price.NAME: view})
            result = reconcile.reconcile(seen, memory)
            memory = result.memory
            for fact in result.facts:
                if isinstance(fact, LeaseChanged):
                    lease, charged = fact.after, charged + sum(charge.gpu.micros for charge in fact.charges)
        assert lease.gpu_rate == price
        assert lease.committed_rate == limit + lease.disk_rate
    charged += lease.gpu_rate.over((now - lease.accrued_until).total_seconds()).micros
    truth = sum(price.over(120).micros for price in paid)
    steps = sum(abs((one - other).micros) for one, other in pairwise(paid)) * 15 // 3600
    steps += 0 if restarted is None else max(paid).over(reconcile.METER_EVERY.total_seconds()).micros
    assert truth - 100 <= charged <= truth + steps + 100, "not the price that the listings showed"


@given(at=st.integers(0, 120), looked=st.integers(0, 119))
def test_a_rise_that_the_bill_dates_is_owed_since_then(at: int, looked: int) -> None:
    """Two looks show the old price, the second of them late; the third shows the new one with the time of its rise."""
    low, high = builders.per_hour("0.20"), builders.per_hour("0.60")
    lease = second_price.lease(gpu_rate=low)
    memory, charged = Memory(), 0
    for seconds in (-15, looked, 120):
        now = builders.NOW + timedelta(seconds=seconds)
        since = builders.NOW + timedelta(seconds=at) if seconds == 120 else None
        row = second_price.row(gpu_rate=low if since is None else high, price_since=since)
        view = second_price.view(instances=(row,), listed_at=now, listings=10)
        result = reconcile.reconcile(
            builders.fleet(leases=(lease,), now=now, markets={second_price.NAME: view}), memory
        )
        memory = result.memory
        for fact in result.facts:
            if isinstance(fact, LeaseChanged):
                lease, charged = fact.after, charged + sum(charge.gpu.micros for charge in fact.charges)
    began = second_price.lease().accrued_until
    whole = low.over((builders.NOW + timedelta(seconds=at) - began).total_seconds()).micros + high.over(120 - at).micros
    assert abs(charged - whole) <= 100


@given(
    cents=st.lists(st.integers(1, 90), min_size=1, max_size=40),
    read=st.integers(0, 119),
    gap=st.none() | st.integers(0, 39),
    stopped=st.booleans(),
    restarted=st.booleans(),
)
def test_a_stretch_that_nobody_saw_counts_by_the_periods_of_the_bill(
    cents: list[int], read: int, gap: int | None, *, stopped: bool, restarted: bool
) -> None:
    """Auctions set prices every two minutes, and one of them may go to others; the next look comes after them all."""
    lease = second_price.lease()
    began, now = lease.accrued_until, builders.NOW
    rates = [builders.per_hour(f"{each / 100:.2f}") for each in cents]
    kept = [(now + timedelta(minutes=2 * number), rate) for number, rate in enumerate(rates) if number != gap]
    won = [PaidPeriod(rate, at, at + timedelta(minutes=2)) for at, rate in kept]
    end = now + timedelta(minutes=2 * len(cents))
    if won and not stopped:
        won[-1] = PaidPeriod(won[-1].rate, won[-1].start)
        end = won[-1].start + timedelta(minutes=2)
    bill = PaidBill((PaidPeriod(lease.gpu_rate, lease.opened_at, now), *won), end + timedelta(seconds=read))
    listed_at = bill.until + timedelta(seconds=15)
    is_running = bool(won) and won[-1].end is None
    shown = {"gpu_rate": won[-1].rate, "price_since": won[-1].start} if is_running else {"state": InstanceState.PAUSED}
    memory = Memory() if restarted else Memory(last_seen={lease.lease_id: now})
    charged = 0
    for each in (listed_at, listed_at + timedelta(seconds=15)):
        view = second_price.view(instances=(second_price.row(bill=bill, **shown),), listed_at=each, listings=10)
        fleet = builders.fleet(leases=(lease,), now=each, markets={second_price.NAME: view})
        result = reconcile.reconcile(fleet, memory)
        memory = result.memory
        for fact in result.facts:
            if isinstance(fact, LeaseChanged):
                lease, charged = fact.after, charged + sum(charge.gpu.micros for charge in fact.charges)
    paid = [(period.rate, (period.end or lease.accrued_until) - period.start) for period in won]
    truth = sum(rate.over(span.total_seconds()).micros for rate, span in paid)
    truth += second_price.lease().gpu_rate.over((now - began).total_seconds()).micros
    unread = 0 if is_running else second_price.lease().gpu_rate.over((listed_at - bill.until).total_seconds()).micros
    assert truth - 50 <= charged <= truth + unread + 50


def test_a_waiting_bid_whose_state_cannot_be_read_counts_what_its_bill_has() -> None:
    """An unknown word may mean a machine. Ten minutes of it cost nothing, since the bill has no machine."""
    lease, memory = second_price.waiting(accrued_until=builders.NOW, bills=Bills.DISK), Memory()
    charged: list[Charge] = []
    for seconds in range(0, 600, 15):
        now = builders.NOW + timedelta(seconds=seconds)
        unread = {"state": InstanceState.UNKNOWN, "may_bill_gpu": True, "unread": frozenset({"gpu_rate"})}
        shown = unread if seconds < 570 else {"state": InstanceState.PENDING}
        row = second_price.row(bill=PaidBill((), now), **shown)
        view = second_price.view(instances=(row,), listed_at=now, listings=10)
        fleet = builders.fleet(leases=(lease,), now=now, markets={second_price.NAME: view})
        result = reconcile.reconcile(fleet, memory)
        memory = result.memory
        for fact in result.facts:
            if isinstance(fact, LeaseChanged):
                lease, charged = fact.after, [*charged, *fact.charges]
        assert lease.bills is Bills.DISK, "an order would meter it by the last look"
    assert charged
    assert sum(charge.gpu.micros for charge in charged) == 0


def test_a_price_above_the_limit_counts_at_the_limit_at_most_however_often_it_is_told() -> None:
    """Half an hour of listings and looks by id agree on a thousand times the price."""
    lease, memory, charged = second_price.lease(), Memory(), 0
    row = second_price.row(gpu_rate=builders.per_hour("220.00"))
    for minute in range(30):
        now = builders.NOW + timedelta(minutes=minute)
        seen = {"instances": (row,), "listed_at": now, "listings": 10, "looked_up": frozenset({row.instance_id})}
        fleet = builders.fleet(leases=(lease,), now=now, markets={second_price.NAME: second_price.view(**seen)})
        result = reconcile.reconcile(fleet, memory)
        memory = result.memory
        for fact in result.facts:
            if isinstance(fact, LeaseChanged):
                lease, charged = fact.after, charged + sum(charge.gpu.micros for charge in fact.charges)
    assert lease.gpu_rate <= builders.per_hour("0.90")
    assert charged <= builders.per_hour("0.90").over(3600).micros
