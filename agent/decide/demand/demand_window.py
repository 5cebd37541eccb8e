"""The slots of a workload with demand: the empty ones that do not begin, and the live ones that go.

Invariants:
1. At most the wanted number of slots begin, the lowest number first. Open leases, rents in doubt and instances with the
   slot's label count as live, but not a slot that waits for a person with its lease stopped.
2. A live slot goes only while more have a lease than are wanted, and every one of its answers says so (see
   `wanted_slots`). A rent in doubt or a stranger is perhaps no work: for one of those no lease goes that may work.
   First goes one that leaves, is down or is stopped by a hold, else another one would go for it and it would start in
   its place, or nothing would serve.
   Then goes one whose GPUs are idle, then one that is not useful yet, then the dearest.
3. A disk that may hold the only copy of work is paused and not released (rule 11).
"""

from collections.abc import Mapping

from agent.decide.demand import wanted_slots
from agent.decide.demand.wanted_slots import Wanted
from agent.decide.operators import operator_holds
from agent.decide.reconcile.probes import liveness
from agent.decide.run_times import run_windows, running_limits
from agent.decide.strategy import Proposal
from agent.domain.fleet import Fleet
from agent.domain.record import hold
from agent.domain.record.hold import Holds, Word
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.work import only_copy, usefulness
from agent.domain.work.decision import Reason
from agent.domain.work.workload import Workload

CODE, ROOM = "not_wanted", "makes_room"
"""The codes of what is ended because it is not wanted, and of a disk that goes for a lease that is."""


def waiting(fleet: Fleet, work: Workload, holds: Holds) -> Mapping[Slot, Reason]:
    """Return the empty slots of a workload that its demand does not want now, each with the reason."""
    wanted = wanted_slots.wanted(fleet, work)
    if wanted is None:
        return {}
    shut = {target.name for word, target in holds if target.workload == work.name and word is not Word.LOCK}
    empty = [place for place in work.places if place not in wanted.taken and str(place) not in shut]
    # `gpubid fleet` has the numbers: the record of a decision is not written again while only they change.
    reason = Reason(CODE, f"the demand of {work.name} does not want it now")
    return dict.fromkeys(empty[max(wanted.slots - len(wanted.live), 0) :], reason)


def leaving(fleet: Fleet, work: Workload) -> Mapping[Slot, Proposal]:
    """Return the endings of live slots that a demand does not want any more, by slot."""
    wanted = wanted_slots.wanted(fleet, work)
    if wanted is None:
        return {}
    holds = hold.in_force(fleet.holds, fleet.now)
    leases = [pair[-1] for place in work.places if (pair := fleet.occupants_of(place))]
    most = len(leases) - wanted.slots if wanted.may_shrink else 0
    going = sorted(leases, key=lambda lease: _rank(fleet, work, holds, lease))[: max(most, 0)]
    reason = Reason(CODE, f"end what is not wanted ({wanted.sentence})")
    endings = {lease.slot: _ending(fleet, work, lease, reason) for lease in going}
    return {**_making_room(fleet, work, wanted, holds), **endings}


def _making_room(fleet: Fleet, work: Workload, wanted: Wanted, holds: Holds) -> dict[Slot, Proposal]:
    """Return the releases of disks whose leases have run their time, where else no slot is left for what is wanted."""
    empty = (place for place in work.places if place not in wanted.taken)
    free = sum(operator_holds.why_idle(fleet, place, holds) is None for place in empty)
    lacking = wanted.slots - len(wanted.live) - free
    over = set(running_limits.paused_alone(fleet, work)) & (wanted.taken - wanted.live)
    leases = (fleet.occupants_of(place)[-1] for place in sorted(over, key=lambda place: place.index))
    ready = [lease for lease in leases if only_copy.may_leave(lease, work) and not hold.keeps_disk(lease, holds)]
    reason = Reason(ROOM, f"end its lease, which has run its time: no slot is left for another one ({wanted.sentence})")
    return {lease.slot: _ending(fleet, work, lease, reason) for lease in ready[: max(lacking, 0)]}


def outranks(ending: Proposal, proposal: Proposal) -> bool:
    """Return whether the ending of a slot that is not wanted replaces this proposal.

    It replaces a start and half of a restart. A release also replaces the wait for a window: only the disk bills there.
    """
    waits = proposal.kind is None and proposal.reason.code in {run_windows.CODE, running_limits.CODE}
    if waits and ending.kind is IntentKind.RELEASE:
        return True
    return proposal.kind is IntentKind.RESUME or proposal.reason.code == liveness.RESTART


def seen_by_strategy(fleet: Fleet, work: Workload) -> Workload:
    """Return a workload with as many slots as its demand wants, for strategies that weigh all slots together."""
    wanted = wanted_slots.wanted(fleet, work)
    return work if wanted is None else work.with_slots(max(wanted.slots, 1))


def _rank(fleet: Fleet, work: Workload, holds: Holds, lease: Lease) -> tuple[bool, bool, bool, int, int]:
    """Return the order in which slots go: the smallest first."""
    is_stopping = operator_holds.why_idle(fleet, lease.slot, holds) is not None
    is_over = is_stopping or lease.is_down or lease.state is LeaseState.RELEASING
    is_busy = not usefulness.is_idle(lease, work, fleet.now)
    is_useful = usefulness.is_useful(lease, work)
    return not is_over, is_busy, is_useful, -lease.committed_rate.micros, -lease.slot.index


def _ending(fleet: Fleet, work: Workload, lease: Lease, reason: Reason) -> Proposal:
    # A release is ordered again elsewhere, until its market confirms it.
    if lease.state is LeaseState.RELEASING or not fleet.is_seen(lease) or fleet.paying_intent(lease.slot) is not None:
        return Proposal(lease.slot, None, reason)
    if only_copy.may_leave(lease, work):
        return Proposal(lease.slot, IntentKind.RELEASE, reason, lease=lease)
    if lease.is_down:
        return Proposal(lease.slot, None, reason)
    return Proposal(lease.slot, IntentKind.PAUSE, reason, lease=lease)
