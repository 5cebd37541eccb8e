"""Rule 21: a rent on demand that both surfaces of its market show below its offer's ask counts at that rate soon."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from agent.decide.reconcile import agreed_rate
from agent.domain.market.tenure import Tenure
from agent.domain.record.lease import Lease
from tests.support import builders

POLL = timedelta(seconds=15)
LONGEST_POLLS = 80


def _seconds_doubted(lease: Lease, *, is_shown_twice: bool) -> float:
    """Return after how many seconds of listings at half the agreed rate that rate is metered."""
    row = builders.instance(gpu_rate=builders.per_hour("0.11"), is_rate_shown_twice=is_shown_twice)
    view = builders.view(instances=(row,))
    for poll in range(LONGEST_POLLS):
        now = builders.NOW + poll * POLL
        fleet = builders.fleet(leases=(lease,), markets={"vast": view}, now=now)
        seen = msgspec.structs.replace(view, looked_up=agreed_rate.unconfirmed(fleet, view, (lease,)))
        rated = agreed_rate.settle(fleet, seen, lease, row, now)
        if rated.row.gpu_rate == row.gpu_rate:
            return poll * POLL.total_seconds()
        lease = rated.lease
    raise AssertionError("it was never metered")


@pytest.mark.parametrize(
    ("is_shown_twice", "changes", "seconds"),
    [
        (True, {}, 30.0),
        (False, {}, 900.0),
        (True, {"tenure": Tenure.INTERRUPTIBLE}, 900.0),
        (True, {"intent_id": ""}, 900.0),
        (True, {"read_back_at": builders.NOW - timedelta(minutes=5)}, 900.0),
        (True, {"read_back_at": None}, 900.0),
    ],
    ids=["two surfaces", "one surface", "a bid", "adopted", "shown as agreed before", "not read back"],
)
def test_a_rate_below_the_ask_that_both_surfaces_show_since_the_readback_waits_for_listings_alone(
    changes: dict[str, Any], seconds: float, *, is_shown_twice: bool
) -> None:
    lease = builders.lease(tenure=Tenure.ON_DEMAND, intent_id="i-1", read_back_at=builders.NOW)
    assert lease.gpu_rate == builders.per_hour("0.22")
    lease = msgspec.structs.replace(lease, **changes)
    assert _seconds_doubted(lease, is_shown_twice=is_shown_twice) == seconds
