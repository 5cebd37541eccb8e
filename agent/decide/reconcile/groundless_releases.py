"""Releases that lost their ground before they left: the market runs the lease again, and its slot has nothing else.

Invariants:
1. Only the release of a lease that was of no use is called off: one that was lost, could not start or was replaced. A
   person's order, a cap, a failure and finished work end a lease whether it runs or not. So does a release that makes
   room for a move: it was decided while the lease ran, alone in its slot.
2. A release that may have left is not called off: its order is in doubt, or the market confirmed it.
3. A lease whose release was called off is like any other. Whatever still ends it is decided in the same cycle.
"""

from agent.domain.fleet import Fleet
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.interruption import Evidence
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Bills, Lease, LeaseState

OF_NO_USE = frozenset({"not_needed", "move_lost", "old_is_back", "moved", "host_full", "contract_end", "start_overdue"})
"""Codes of releases whose only ground is that nothing of the slot runs, or needs to run, on the lease."""
DOWN = frozenset({LeaseState.PAUSED, LeaseState.OFFLINE, LeaseState.RELEASING})
"""States of other leases of the slot that leave it without any that runs, may run or starts."""


def is_called_off(fleet: Fleet, lease: Lease, row: Instance) -> bool:
    """Return whether a lease that was to be released works again for its slot, as its market lists it in `row`."""
    is_unsent = lease.state is LeaseState.RELEASING and lease.bills is not Bills.NOTHING
    if not is_unsent or lease.end_reason not in OF_NO_USE or row.state is not InstanceState.RUNNING:
        return False
    is_ours = lease.is_proven and not lease.is_held
    return is_ours and not _has_left(fleet, lease) and _is_wanted(fleet, lease) and _is_alone(fleet, lease)


def evidence(lease: Lease) -> Evidence:
    """Return why the release of a lease is called off."""
    sentence = f"its release ({lease.end_reason}) never left, it runs again, and its slot has nothing else that runs"
    return Evidence("release_called_off", sentence)


def _has_left(fleet: Fleet, lease: Lease) -> bool:
    orders = (intent for intent in fleet.intents if intent.lease_id == lease.lease_id and intent.is_open)
    return any(intent.kind is IntentKind.RELEASE for intent in orders)


def _is_wanted(fleet: Fleet, lease: Lease) -> bool:
    work = fleet.workload(lease.slot.workload)
    return work is not None and lease.slot in work.places and fleet.paying_intent(lease.slot) is None


def _is_alone(fleet: Fleet, lease: Lease) -> bool:
    """Return whether nothing else of its slot runs, and that became so after the release was decided."""
    others = [other for other in fleet.occupants_of(lease.slot) if other.lease_id != lease.lease_id]
    is_back = lease.run_since is None or lease.run_since > lease.state_since
    return (is_back or bool(others)) and all(other.state in DOWN for other in others)
