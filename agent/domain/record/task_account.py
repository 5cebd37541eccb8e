"""The account of one slot: what all its leases have cost, and when the first of them began."""

from datetime import datetime

import msgspec

from agent.domain.money import ZERO, Usd


class TaskAccount(msgspec.Struct, frozen=True):
    """What the leases of one slot have cost so far, as metered."""

    began_at: datetime
    """When its first lease was rented."""
    spent: Usd = ZERO
    """The cost of all its leases."""
