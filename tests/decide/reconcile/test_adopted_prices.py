"""The rate of an adopted instance, where its listed price is too high or cannot be read."""

import pytest
from msgspec.structs import replace

from agent.decide.accounting import meter
from agent.decide.reconcile import agreed_rate
from agent.domain.money import FREE
from tests.decide.reconcile.test_orphans import ROW, found, world
from tests.support import builders
from tests.support.listings import NOW


def test_what_is_adopted_under_a_limit_counts_at_the_limit_at_most() -> None:
    """A thousand times the price was told once, and the lease ended before it was told again."""
    row = replace(ROW, gpu_rate=builders.per_hour("220.00"), limit=builders.per_hour("0.90"))
    lease = found(world(rows=(row,))).lease
    assert lease is not None
    assert (lease.gpu_rate, lease.bid_limit) == (builders.per_hour("0.90"), builders.per_hour("0.90"))


def test_the_first_price_of_what_was_adopted_without_one_counts_for_its_whole_time() -> None:
    """It counted nothing until further listings and a look by id agreed, as if its price had risen from $0."""
    unread = replace(ROW, gpu_rate=FREE, unread=frozenset({"gpu_rate"}))
    lease = found(world(rows=(unread,))).lease
    assert lease is not None
    assert lease.gpu_rate == FREE
    held = replace(lease, accrued_until=builders.ago(hours=1), agreed_until=builders.ago(hours=1))
    for price, counted in ((builders.per_hour("0.20"), 0.20), (builders.per_hour("200"), 0.0)):
        fleet = world(rows=(replace(ROW, gpu_rate=price),), leases=(held,))
        rated = agreed_rate.settle(fleet, fleet.markets["vast"], held, fleet.markets["vast"].instances[0], NOW)
        rate = rated.row.gpu_rate
        charges = meter.accrue(replace(held, gpu_rate=rate), NOW)
        assert sum(charge.gpu.dollars for charge in charges) == pytest.approx(counted, abs=0.001)
    metered = replace(held, accrued_until=NOW, agreed_until=builders.ago(hours=3))
    fleet = world(rows=(ROW,), leases=(metered,))
    rise = agreed_rate.settle(fleet, fleet.markets["vast"], metered, ROW, NOW).rise
    assert rise is not None
    owed = sum(charge.gpu.dollars for charge in rise.owed((), NOW))
    assert owed == pytest.approx(3 * ROW.gpu_rate.dollars, abs=0.001)
