"""A running lease: held as it is, or its raised bid is lowered again after a time without an interruption."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.decide.pricing import bidding
from agent.decide.strategy import Proposal, SlotView
from agent.domain import span_text
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import Reason


@dataclass(frozen=True, slots=True)
class BidDecayParams:
    """Numbers of the decay: when calm for `after`, lower by the share `step` towards the floor plus `headroom`."""

    headroom: float
    step: float
    after: timedelta


def lower(slot: SlotView, lease: Lease, numbers: BidDecayParams, now: datetime) -> Proposal:
    """Return a hold, or a lower bid for a raised one: a raise is paid every hour, and a rival rarely stays."""
    if lease.bid_limit is not None:
        return Proposal(slot.slot, None, Reason(lease.state.value, _under_limit(lease)))
    bid = bidding.lowered(lease, numbers.headroom, numbers.step)
    calm_since = max(lease.state_since, lease.bid_since or lease.state_since)
    if bid is None or lease.state is not LeaseState.RUNNING or now - calm_since < numbers.after:
        return Proposal(slot.slot, None, Reason(lease.state.value, f"{lease.state.value} at {lease.gpu_rate}"))
    reason = Reason(
        "lower_bid", f"calm for {span_text.of(numbers.after)}; lower the bid from {lease.gpu_rate} to {bid}"
    )
    return Proposal(slot.slot, IntentKind.REBID, reason, lease=lease, bid=bid)


def _under_limit(lease: Lease) -> str:
    paid = f"{lease.state.value} at {lease.gpu_rate} under a limit of {lease.bid}"
    return f"{paid}, {lease.bid - lease.gpu_rate} below what its hour is worth" if lease.bid > lease.gpu_rate else paid
