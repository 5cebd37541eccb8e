"""The till's charge is the exact sum over the stretches in which a contract's rates did not change."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.simulator.instances.billing import Rates, Till
from agent.simulator.instances.container_state import Container
from agent.simulator.vast.model import NoticeKind, RentTerms, StopCause
from tests.support import quiet

DAY = 86_400.0


def test_gpu_time_is_charged_to_the_second_at_the_rate_of_the_time() -> None:
    market = quiet.world()
    contract = quiet.rent(market, quiet.a_slice(market), 1.2)
    quiet.run(market, contract)
    market.charged_total()
    before = contract.charged["gpu"]
    first = market.gpu_rate(contract)
    market.advance_to(market.now + 1000)
    assert contract.bid is not None
    market.change_bid(contract.contract_id, contract.bid * 1.1)
    market.advance_to(market.now + 500)
    market.charged_total()
    expected = (first * 1000 + market.gpu_rate(contract) * 500) / 3600
    assert contract.charged["gpu"] - before == pytest.approx(expected, rel=1e-9)


def test_the_disk_is_charged_in_every_state_from_the_create() -> None:
    market = quiet.world()
    contract = quiet.rent(market, quiet.a_slice(market), disk_gb=100)
    start = market.now
    assert market.disk_rate(contract) == pytest.approx(contract.host.storage_price * 100 / 720)
    quiet.run(market, contract)
    market.stop(contract.contract_id)
    market.advance_to(start + 7200)
    market.charged_total()
    assert contract.charged["disk"] == pytest.approx(market.disk_rate(contract) * 2)


def test_charges_are_split_at_midnight_and_sum_to_what_was_charged() -> None:
    midnight = math.floor(quiet.START / DAY) * DAY + DAY
    market = quiet.world(start=midnight - 3600)
    contract = quiet.rent(market, quiet.a_slice(market))
    market.advance_to(midnight + 7200)
    rows = market.charges(midnight - DAY, midnight + DAY)
    assert {row.day for row in rows} == {midnight - DAY, midnight}
    for row in rows:
        assert row.day <= row.start < row.end <= row.day + DAY
        assert row.amount == pytest.approx(row.rate * row.quantity)
    assert sum(row.amount for row in rows) == pytest.approx(market.charged_total())
    assert sum(row.quantity for row in rows if row.kind == "disk") == pytest.approx(3.0)
    today = market.charges(midnight, midnight + 10)
    assert {row.day for row in today} == {midnight}
    assert sum(contract.charged.values()) == pytest.approx(market.charged_total())


def test_an_ended_contract_stays_in_the_charges() -> None:
    market = quiet.world()
    contract = quiet.run(market, quiet.rent(market, quiet.a_slice(market)))
    market.advance_to(market.now + 3600)
    market.destroy(contract.contract_id)
    total = market.charged_total()
    market.advance_to(market.now + 3600)
    assert sum(row.amount for row in market.charges(0, market.now)) == pytest.approx(total)
    assert market.credit == pytest.approx(market.climate.credit - total)


def test_empty_credit_stops_everything_and_the_disk_goes_on_into_the_negative() -> None:
    market = quiet.world(credit=0.5)
    slices = [slice_ for slice_ in market.listed() if slice_.num_gpus == 1][:2]
    bidder = quiet.rent(market, slices[0])
    buyer = market.create(slices[1].offer_id, RentTerms(20, "alpine"), bid=None)
    burn = market.gpu_rate(bidder) + market.gpu_rate(buyer) + market.disk_rate(bidder) + market.disk_rate(buyer)
    empty = market.now + 0.5 / burn * 3600
    market.advance_to(empty - 60)
    assert bidder.holds_gpu
    assert market.credit > 0
    market.advance_to(empty + 400)
    assert [bidder.stop_cause, buyer.stop_cause] == [StopCause.CREDIT, StopCause.CREDIT]
    assert market.credit < 0
    assert NoticeKind.LOW_CREDIT in [notice.kind for notice in market.inbox]
    low = market.credit
    market.advance_to(market.now + 3600)
    assert market.credit == pytest.approx(low - market.disk_rate(bidder) - market.disk_rate(buyer))
    market.set_credit(10.0)
    market.advance_to(market.now + 600)
    assert not bidder.holds_gpu, "a deposit starts nothing by itself"
    assert market.start(bidder.contract_id)


def test_a_contract_that_was_outbid_when_the_credit_went_does_not_resume() -> None:
    market = quiet.world()
    slice_ = quiet.a_slice(market)
    contract = quiet.run(market, quiet.rent(market, slice_))
    rival = market.add_rival(slice_.machine_id, slice_.num_gpus, 5.0)
    market.set_credit(0.0)
    market.advance_to(market.now + 120)
    market.remove_rival(rival)
    market.advance_to(market.now + 3600)
    assert not contract.holds_gpu
    assert contract.container is Container.EXITED


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 90_000), st.integers(0, 400), st.integers(0, 40), st.integers(0, 100)),
        min_size=1,
        max_size=12,
    ),
    st.integers(0, 86_399),
)
def test_the_till_integrates_any_course_of_rates(stretches: list[tuple[int, int, int, int]], offset: int) -> None:
    market = quiet.world(hosts=4)
    slice_ = next(slice_ for slice_ in market.slices.values() if slice_.gpus)
    contract = market.create(slice_.offer_id, RentTerms(10, "alpine"), bid=None)
    till, now = Till(100.0), 20_000 * DAY + offset
    expected = {"gpu": 0.0, "disk": 0.0, "bandwidth": 0.0}
    for seconds, gpu, disk, down in stretches:
        rates = Rates(gpu / 100, disk / 1000, down / 10, 0.01 if down else 0.0)
        till.rate(contract, rates, now)
        now += seconds
        till.settle(now - seconds / 3)
        for kind, rate in (("gpu", rates.gpu), ("disk", rates.disk), ("bandwidth", rates.down_gb * rates.down_price)):
            expected[kind] += rate * seconds / 3600
    till.settle(now)
    assert contract.charged == pytest.approx(expected, rel=1e-9, abs=1e-12)
    rows = till.charges(0, now, now)
    assert sum(row.amount for row in rows) == pytest.approx(sum(expected.values()), rel=1e-9, abs=1e-12)
    assert till.credit(now) == pytest.approx(100.0 - sum(expected.values()))
    till.close(contract, now)
    assert till.charged(now + DAY) == pytest.approx(sum(expected.values()))
