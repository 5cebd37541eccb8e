"""The parts of the nightly tidying: each is small enough for a transaction of its own, and may be run again."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from agent.ledger.tables import decisions, expiring_rows, price_history, search_history, shadow_rows

Part = Sequence[tuple[sa.Executable, dict[str, Any]]]
"""Statements of one transaction, with their parameters."""
PRICES_AT_ONCE = dt.timedelta(days=1)
"""A night has a day of prices to roll up. After nights that failed, each day has a transaction of its own."""


def prices(oldest: dt.datetime, before: dt.datetime) -> Part:
    """Return the part that rolls up the prices of a day from the oldest one on, up to but not at `before`."""
    until = min(before, oldest.replace(minute=0, second=0, microsecond=0) + PRICES_AT_ONCE)
    values = {"before": until}
    return ((price_history.ROLLED_UP, values), (price_history.PRUNED, values))


def others(now: dt.datetime) -> Sequence[Part]:
    """Return the parts that delete old searches, records that are over, and old decisions."""
    values = {"before": price_history.raw_before(now)}
    statements = (expiring_rows.over(now), decisions.old(now), shadow_rows.old(now), shadow_rows.CROWDED)
    return [*(((each, values),) for each in search_history.PRUNED), *(((each, {}),) for each in statements)]
