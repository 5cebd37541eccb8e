"""A lease whose market has said that it ends: a replacement is rented before, if a move then pays more than a wait."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec

from agent.decide.moves import recovery
from agent.decide.strategy import Candidate, Down, Proposal, SlotView
from agent.domain.market.interruption import Cause
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.workload import Workload


def propose(
    slot: SlotView,
    work: Workload,
    elsewhere: Sequence[Candidate],
    market_loss_rate: float,
    numbers: recovery.RecoveryParams,
) -> Proposal | None:
    """Return the rent of a replacement, or a hold with the reason why the end is awaited; None without a notice.

    The choice is that of a recovery at the end of the lease: wait for it to start again, or move. The lease works on
    until then, so nothing is paused first.
    """
    lease = slot.lease
    if lease is None or lease.notice_at is None or lease.state is not LeaseState.RUNNING or slot.arriving is not None:
        return None
    lost = msgspec.structs.replace(
        lease, state=LeaseState.PAUSED, state_since=lease.notice_at, interrupted_by=Cause.OUTBID, paused_by_us=False
    )
    at_end = replace(slot, lease=lost, down=Down(lease.notice_at, is_announced=True))
    chosen = recovery.recover(at_end, work, elsewhere, market_loss_rate, numbers, lease.notice_at)
    sentence = f"the market ends it at {lease.notice_at:%H:%M:%S} UTC; then {chosen.reason.sentence}"
    reason = replace(chosen.reason, code="notice", sentence=sentence)
    if chosen.candidate is None:
        return Proposal(slot.slot, None, reason)
    return Proposal(slot.slot, IntentKind.RENT, reason, candidate=chosen.candidate)


def elsewhere(lease: Lease, ranked: Iterable[Candidate]) -> Candidate | None:
    """Return the first candidate that is not in the pool of a lease: a second bid there wins no earlier."""
    return next((each for each in ranked if not each.offer.host.is_same_place(lease.host)), None)
