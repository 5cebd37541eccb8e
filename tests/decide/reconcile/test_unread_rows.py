"""What cannot be read of a listing's row is taken from our own books, and never from nowhere."""

import msgspec

from agent.decide.reconcile import unread_rows
from agent.domain import money
from agent.domain.fleet import MarketView
from agent.domain.market.instance import Instance
from agent.domain.market.label import Label
from agent.domain.market.tenure import Tenure
from tests.support import builders

BLIND = builders.instance(
    gpu_rate=money.FREE, disk_gb=0.0, host_id="", unread=frozenset({"gpu_rate", "disk_gb", "host_id"})
)
LABEL = Label(builders.FLEET_ID, builders.TRAIN_0, "i1")


def only(view: MarketView) -> Instance:
    (row,) = view.instances
    return row


def test_a_row_that_was_read_stays_as_it_is() -> None:
    view = builders.view(instances=(builders.instance(),))
    assert unread_rows.filled(view, (builders.lease(gpu_rate=builders.per_hour(9)),), {}) is view


def test_the_lease_says_what_the_row_does_not() -> None:
    held = builders.lease()
    row = only(unread_rows.filled(builders.view(instances=(BLIND,)), (held,), {}))
    assert (row.gpu_rate, row.disk_gb, row.host_id) == (held.gpu_rate, held.disk_gb, held.host_id)
    assert row.unread == BLIND.unread
    assert row == msgspec.structs.replace(BLIND, gpu_rate=held.gpu_rate, disk_gb=held.disk_gb, host_id=held.host_id), (
        "nothing but what was not read is taken over"
    )


def test_a_lease_of_another_market_says_nothing() -> None:
    view = builders.view(instances=(BLIND,))
    assert only(unread_rows.filled(view, (builders.lease(market="runpod"),), {})) == BLIND


def test_an_order_says_what_was_asked_for_where_there_is_no_lease() -> None:
    view = builders.view(instances=(BLIND,), labels={BLIND.instance_id: LABEL})
    bid = builders.intent(intent_id="i1", price=builders.per_hour("0.3"), disk_gb=40.0, host_id="h7")
    row = only(unread_rows.filled(view, (), {"i1": bid}))
    assert (row.gpu_rate, row.disk_gb, row.host_id) == (builders.per_hour("0.3"), 40.0, "h7")
    ask = builders.intent(intent_id="i1", price=None, tenure=Tenure.ON_DEMAND, rate=builders.per_hour("0.5"))
    row = only(unread_rows.filled(view, (), {"i1": ask}))
    assert row.gpu_rate + BLIND.disk_rate == builders.per_hour("0.5")
    assert only(unread_rows.filled(view, (), {})) == BLIND
