"""Evidence about other renters from the loss of a lease: an on-demand renter, or the bid of a rival."""

from agent.decide.facts import LeaseChanged
from agent.decide.reconcile.losses import cause
from agent.domain.market.interruption import Cause
from agent.domain.market.outbids import NO_OUTBIDS, Outbids
from agent.domain.market.tenure import Tenure
from agent.domain.money import FREE
from agent.domain.record.event_kind import EventKind


def is_displaced(fact: LeaseChanged) -> bool:
    """Return whether an on-demand renter displaced a running interruptible lease."""
    return _is_lost_bid(fact) and fact.cause is Cause.DISPLACED


def winning_bid(fact: LeaseChanged) -> Outbids:
    """Return the bid that won over ours; empty counts without a known price and the host's own floor."""
    lease, evidence = fact.before, fact.evidence
    if not _is_lost_bid(fact) or fact.cause is not Cause.OUTBID or evidence is None or evidence.floor is None:
        return NO_OUTBIDS
    floor = lease.host_floor
    if floor is None or floor <= FREE:
        return NO_OUTBIDS
    # The evidence has the highest amount that a price in cents may mean, and the law of rivals needs the middle.
    price = evidence.floor - cause.INBOX_ROUNDING if evidence.rule == cause.INBOX else evidence.floor
    return Outbids.one(lease.bid.micros / floor.micros - 1.0, price.micros / floor.micros - 1.0)


def _is_lost_bid(fact: LeaseChanged) -> bool:
    return fact.kind == EventKind.LEASE_INTERRUPTED and fact.before.tenure is Tenure.INTERRUPTIBLE
