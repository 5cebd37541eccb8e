"""Slots, offers and instances: the few things that they reckon themselves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.domain.market.instance import InstanceState
from agent.domain.market.tenure import Tenure
from agent.domain.money import FREE
from tests.support import builders


def test_a_workload_has_as_many_places_as_slots() -> None:
    work = builders.workload("train", slots=3)
    assert [str(place) for place in work.places] == ["train/0", "train/1", "train/2"]
    assert len(set(work.places)) == 3


def test_what_a_workload_tells_its_containers_is_not_shown() -> None:
    work = builders.workload(environment=(("TOKEN", "secret"),))
    assert "secret" not in repr(work)


@given(st.integers(0, 10**7), st.floats(0, 10**5))
def test_a_month_of_disk_has_720_hours(micros_a_month: int, disk_gb: float) -> None:
    rate = builders.offer(storage_micros_per_gb_month=micros_a_month).disk_rate(disk_gb)
    assert abs(rate.micros * 720 - micros_a_month * disk_gb) <= 360 + 1e-9 * micros_a_month * disk_gb


@pytest.mark.parametrize("state", list(InstanceState))
def test_an_instance_bills_its_gpus_while_it_has_them_and_where_nobody_knows(state: InstanceState) -> None:
    row = builders.instance(state=state)
    whole = row.gpu_rate + row.disk_rate
    has_them = dict.fromkeys([InstanceState.RUNNING, InstanceState.EXITED, InstanceState.UNKNOWN], whole)
    expected = {**has_them, InstanceState.OFFLINE: FREE}
    assert row.billing_rate == expected.get(state, row.disk_rate)
    doubted = builders.instance(state=state, may_bill_gpu=True)
    assert (doubted.bills_gpu, doubted.billing_rate) == (True, whole)


def test_only_an_interruptible_instance_has_a_bid() -> None:
    assert builders.instance().bid == builders.per_hour("0.22")
    assert builders.instance(tenure=Tenure.ON_DEMAND).bid is None


def test_where_the_price_paid_is_not_the_bid_the_limit_is_the_bid_and_the_price_is_billed() -> None:
    row = builders.instance(limit=builders.per_hour("2.50"))
    assert row.bid == builders.per_hour("2.50")
    assert row.billing_rate == builders.per_hour("0.22") + row.disk_rate
    on_demand = builders.instance(limit=builders.per_hour("2.50"), tenure=Tenure.ON_DEMAND)
    assert on_demand.bid is None
