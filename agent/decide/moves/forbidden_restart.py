"""A restart in place whose start would be forbidden: the lease is not stopped, since it could not run again.

Invariant: a lease is stopped for a restart only if its start is permitted once it has stopped.
"""

from dataclasses import replace

import msgspec

from agent.decide.limits.committed_spend import CommittedSpend
from agent.decide.moves import permission
from agent.decide.moves.permission import Bounds
from agent.decide.reconcile.probes import liveness
from agent.decide.run_times import run_time_verdict
from agent.domain.fleet import Fleet
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.work.decision import Decision, Hold, Pause, Resume


def instead(decision: Decision, bounds: Bounds, now_standing: CommittedSpend) -> Decision:
    """Return a decision, or a hold in place of the stop of a restart whose start is forbidden now.

    `now_standing` is the committed spend before the stop.
    """
    if not isinstance(decision, Pause) or decision.reason.code != liveness.RESTART:
        return decision
    why = replace(decision.reason, sentence=f"restart it: {decision.reason.sentence}")
    stopped = _stopped(decision.lease)
    idle = run_time_verdict.why_idle(_with(bounds.fleet, stopped), decision.lease.slot)
    if idle is not None:
        return Hold(decision.lease.slot, replace(idle, sentence=f"{idle.sentence}; it would {why.sentence}"))
    start = permission.permitted(Resume(stopped, why), bounds, now_standing.after(decision))
    return start if isinstance(start, Hold) else decision


def _with(fleet: Fleet, stopped: Lease) -> Fleet:
    leases = (stopped if each.lease_id == stopped.lease_id else each for each in fleet.leases)
    return msgspec.structs.replace(fleet, leases=tuple(leases))


def _stopped(lease: Lease) -> Lease:
    return msgspec.structs.replace(
        lease, state=LeaseState.PAUSED, bills=Bills.DISK, paused_by_us=True, run_since=None, ready_since=None
    )
