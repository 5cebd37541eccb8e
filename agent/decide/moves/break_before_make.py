"""Break before make: a necessary move begins with the release if a limit forbids two leases at once.

Invariants:
1. Only a lease that will be lost soon anyway, or that a new file or its own `max_running` moves, is released before
   another one runs.
2. It is released only if its disk may be left and nothing at all would forbid the rent without it. A market at fault, a
   veto of another kind, and what the lease has cost so far stay.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import msgspec

from agent.decide.limits import limits
from agent.decide.moves import permission
from agent.decide.moves.permission import Bounds
from agent.decide.operators import reload
from agent.decide.run_times import running_limits
from agent.decide.strategy import Proposal
from agent.domain.fleet import Fleet
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work import only_copy
from agent.domain.work.decision import Decision, Hold, Reason, Release, Rent
from agent.domain.work.workload import Workload

LAST_MINUTES = timedelta(minutes=10)
"""A lease is kept until this long before its host leaves the market: a running lease is worth more than a possible
one."""
MOVED = "moved"
"""The code of the reason why a lease is released before or after its slot runs elsewhere."""


def instead(
    struck: Decision,
    wanted: Proposal,
    rent: Decision,
    work: Workload,
    bounds: Bounds,
    now_standing: limits.CommittedSpend,
) -> Decision:
    """Return the release that makes room for a rent that a limit forbade, or the decision itself."""
    if not isinstance(struck, Hold) or not struck.reason.limit or not isinstance(rent, Rent):
        return struck
    fleet = bounds.fleet
    pair = fleet.occupants_of(wanted.slot)
    previous = pair[0] if len(pair) == 1 else None
    if previous is None or wanted.kind is not IntentKind.RENT or not _must_go(previous, work, fleet):
        return struck
    without = msgspec.structs.replace(fleet, leases=tuple(lease for lease in fleet.leases if lease is not previous))
    if permission.allowed(rent, replace(bounds, fleet=without), now_standing.without(previous)) is not rent:
        return struck
    sentence = (
        f"no room for two at once ({struck.reason.limit}): the old lease is released first, then {rent.reason.sentence}"
    )
    return Release(previous, Reason(MOVED, sentence, struck.reason.options))


def makes_room(decision: Decision, leases: Iterable[Lease]) -> bool:
    """Return whether a decision releases the only lease of its slot among `leases`, for a rent that is to follow.

    Others that are being released do not count. It waits while the ledger cannot be written: the rent could not follow
    (rule 13), and the lease still works.
    """
    if not isinstance(decision, Release) or decision.reason.code != MOVED:
        return False
    old = decision.lease
    others = (each for each in leases if each.is_open and each.slot == old.slot and each.lease_id != old.lease_id)
    return all(each.state is LeaseState.RELEASING for each in others)


def _must_go(lease: Lease, work: Workload, fleet: Fleet) -> bool:
    if lease.state is not LeaseState.RUNNING or not only_copy.may_leave(lease, work):
        return False
    is_last = lease.ends_at is not None and lease.ends_at - fleet.now < LAST_MINUTES
    return is_last or reload.moves(lease, work) or running_limits.moves(fleet, lease, work)
