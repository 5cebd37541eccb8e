"""The two leases of an instance that goes on with another slot: the one that ends, and the one that begins.

Invariant: each slot pays for its own time. The instance, its price, and the proof that it is ours stay as they are.
"""

from datetime import datetime

from msgspec.structs import replace

from agent.domain.record.intent import Intent
from agent.domain.record.lease import Bills, Lease, LeaseState

REASSIGNED = "reassigned"
"""The end reason of a lease whose instance goes on with another slot."""


def ended(lease: Lease, now: datetime) -> Lease:
    """Return a metered lease as ended; `lease` bills nothing any more."""
    at = max(now, lease.accrued_until)
    return replace(lease, state=LeaseState.ENDED, state_since=at, ended_at=at, end_reason=REASSIGNED)


def opened(kept: Lease, old: Lease, intent: Intent, spec_digest: str) -> Lease:
    """Return the lease that begins: `kept` as it ran, from the instant to which `old` was metered."""
    now = old.accrued_until
    return replace(
        kept,
        lease_id=f"{kept.market}-{kept.instance_id}-{intent.intent_id}",
        slot=intent.slot,
        intent_id=intent.intent_id,
        label_intent_id=kept.label_id,
        guard_run=intent.guard_run,
        spec_digest=spec_digest,
        state=LeaseState.RUNNING,
        bills=Bills.GPU_AND_DISK,
        opened_at=now,
        state_since=now,
        run_since=now,
        accrued_until=now,
        agreed_until=None,
        runs=1,
        ran_micros=0,
        ready_since=None,
        was_ready=False,
        idle_since=None,
        end_reason="",
        checkpoint_asked_at=None,
        checkpoint_taken_at=None,
        checkpoint_verified_at=None,
        failed_probes=0,
        probe_failed_at=None,
        unhealthy_since=None,
        restarts=0,
        restart_at=None,
        stalled_since=None,
        stalled_at=None,
        keys_seen_at=now if kept.has_keys else None,
    )
