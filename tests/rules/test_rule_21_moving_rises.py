"""Rule 21: a rate that rises too far, each time to another price, is metered at the lowest one that was listed."""

from datetime import timedelta

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from agent.decide.accounting import meter
from agent.decide.reconcile import agreed_rate
from agent.domain.market.instance import Instance
from agent.domain.money import UsdPerHour
from agent.domain.record.lease import Lease
from tests.support import builders

POLL = 15
RISES = st.lists(st.sampled_from([1.6, 1.8, 2.0, 2.5, 2.9, 1000.0]), min_size=6, max_size=20)
"""Multiples of the bid that the market lists from one poll to the next."""


def _priced(factor: float) -> Instance:
    return builders.instance(gpu_rate=UsdPerHour(round(builders.lease().gpu_rate.micros * factor)))


def _listed(held: Lease, row: Instance, poll: int) -> tuple[Lease, float]:
    """Return a lease after one more poll, with a look by id where one is due, and the dollars that it counted."""
    now = builders.NOW + timedelta(seconds=POLL * poll)
    view = builders.view(instances=(row,))
    fleet = builders.fleet(leases=(held,), markets={"vast": view}, now=now)
    seen = msgspec.structs.replace(view, looked_up=agreed_rate.unconfirmed(fleet, view, (held,)))
    rated = agreed_rate.settle(fleet, seen, held, row, held.accrued_until)
    span = meter.Charge(held.lease_id, now.date(), running_seconds=POLL)
    more = rated.rise.owed((span,), now) if rated.rise is not None else ()
    counted = held.gpu_rate.over(POLL).dollars + sum(charge.gpu.dollars for charge in more)
    until = agreed_rate.agreed_until(rated.lease, (span,), now)
    return msgspec.structs.replace(
        rated.lease, gpu_rate=rated.row.gpu_rate, accrued_until=now, agreed_until=until
    ), counted


@given(rises=RISES)
@example(rises=[1.6, 1.8] * 4)
@example(rises=[1000.0, 2.0] * 4)
def test_a_rise_is_followed_however_often_the_price_moves(rises: list[float]) -> None:
    """Each move began the doubt anew: a price that another daemon raised at each poll was never believed."""
    held = builders.lease(agreed_rate=builders.lease().gpu_rate, accrued_until=builders.NOW)
    first, counted = held.gpu_rate.dollars, 0.0
    for poll, factor in enumerate(rises, 1):
        held, dollars = _listed(held, _priced(factor), poll)
        counted += dollars
        lowest = min(rises[:poll])
        is_likely = lowest <= agreed_rate.QUICK_RISE
        assert poll < 3 or not is_likely or held.gpu_rate.dollars >= first * lowest * 0.999
        # One wrong price among them is never believed.
        assert held.gpu_rate.dollars <= first * max([1.0, *(rise for rise in rises[:poll] if rise < 1000.0)]) * 1.001
    if min(rises) <= agreed_rate.QUICK_RISE:
        assert counted >= first * min(rises) * POLL * len(rises) / 3600 * 0.999


def test_the_lowest_of_the_listed_prices_is_believed_and_the_rest_doubted_again_from_there() -> None:
    held = builders.lease(agreed_rate=builders.lease().gpu_rate, accrued_until=builders.NOW)
    for poll, factor in enumerate((2.0, 1000.0, 1000.0), 1):
        held, _ = _listed(held, _priced(factor), poll)
    assert held.gpu_rate == held.agreed == _priced(2.0).gpu_rate
    assert (held.doubted_rate, held.doubted_listings) == (_priced(1000.0).gpu_rate, 1)
