"""The notice of an interruption: when the market has said that it ends a lease, and the loss that followed."""

from dataclasses import replace
from datetime import datetime, timedelta

from agent.domain.market.instance import Instance
from agent.domain.market.interruption import Evidence
from agent.domain.record.lease import Lease

SAME = timedelta(minutes=1)
"""Two instants of one notice differ by less: an order for a checkpoint is named by the first."""


def at(lease: Lease, row: Instance) -> datetime | None:
    """Return when the market ends a lease, by its row; the first instant that it named stays."""
    told, known = row.notice_at, lease.notice_at
    return known if told is not None and known is not None and abs(told - known) < SAME else told


def evidence(lease: Lease, found: Evidence) -> Evidence:
    """Return the evidence of a loss, with the notice that came before it."""
    return replace(found, notice_at=lease.notice_at)
