"""A machine whose market called it over and denies that now: from when on it counts again."""

import pytest

from agent.decide.reconcile import orphans
from tests.support import builders


@pytest.mark.parametrize(
    ("over", "since"),
    [(None, 120), (10, 10), (105, 105), (106, 120), (120, 120), (150, 120)],
    ids=["never", "until now", "long after its end", "soon after its end", "at its end", "before its end"],
)
def test_what_was_called_over_long_after_its_end_counts_from_then(over: int | None, since: int) -> None:
    """All figures in minutes ago; its lease ended two hours ago."""
    at = builders.ago(minutes=over) if over is not None else None
    past = builders.lease(7, end_reason="nothing_left", accrued_until=builders.ago(minutes=120))
    row = builders.instance(7, label="ours", created_at=builders.ago(hours=3), was_over_at=at)
    made = orphans.lease_of(builders.fleet(past_leases={"7": past}), row, builders.slot(), builders.intent(7))
    assert made.accrued_until == builders.ago(minutes=since)
