"""A stop that our own pause made, whose outcome is not written down: it is no loss.

1. The answer to the pause is on its way, was lost, or could not be written down. The listing that shows the instance
   stopped shows the pause done, and the lease is paused by us from the same look on.
2. If the market's own record, the account's credit or the end of the contract shows another cause, the stop is a loss.
"""

from datetime import datetime

from agent.decide.reconcile.losses import cause
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.record.intent import IntentKind, IntentState
from agent.domain.record.lease import Lease

_LEFT = frozenset({IntentState.SENT, IntentState.IN_DOUBT})
"""States of an order that may have reached the market."""


def is_shown(fleet: Fleet, view: MarketView, lease: Lease, row: Instance, since: datetime) -> bool:
    """Return whether a row shows a lease stopped that was last seen running at `since`, and our pause explains it."""
    is_asked = any(
        intent.lease_id == lease.lease_id and intent.kind is IntentKind.PAUSE and intent.state in _LEFT
        for intent in fleet.intents
    )
    if not is_asked or row.state is not InstanceState.PAUSED:
        return False
    _, evidence = cause.of_row(lease, row, view, since, fleet.now)
    return evidence.rule not in cause.PROVEN
