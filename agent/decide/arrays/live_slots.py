"""The slots of a workload at which something works, or may."""

from collections.abc import Iterator

from agent.decide.reconcile import orphans
from agent.decide.run_times import running_limits
from agent.domain.fleet import Fleet
from agent.domain.record.hold import Holds, Word
from agent.domain.slot import Slot
from agent.domain.work.workload import Workload


def of(fleet: Fleet, work: Workload) -> Iterator[Slot]:
    """Yield the slots of open leases, of rents in doubt and of unexplained instances; a slot may come twice.

    A lease that a slot no longer waits for is left out: no work is there, and the proof of its end may take a person.
    """
    mine = (lease for lease in fleet.leases if lease.is_open and lease.slot.workload == work.name)
    yield from (lease.slot for lease in mine if not fleet.is_leaving(lease))
    yield from (
        intent.slot
        for intent in fleet.intents
        if intent.is_open and intent.kind.is_paying and intent.slot.workload == work.name
    )
    yield from (place for place, _ in orphans.claims(fleet) if place.workload == work.name)


def held(work: Workload, holds: Holds) -> frozenset[Slot]:
    """Return the slots of a workload that wait for a person alone, each by itself."""
    mine = (target.index for word, target in holds if word is Word.HELD and target.workload == work.name)
    # The mark of a slot that the present file no longer has is kept.
    return frozenset(Slot(work.name, index) for index in mine if index is not None and index < work.slots)


def set_aside(fleet: Fleet, work: Workload, held: frozenset[Slot]) -> frozenset[Slot]:
    """Return the slots that wait for a person alone and for which nothing bills but a disk.

    Others begin in their place. They are held, or their lease has run its own `max_running` and is paused for that.
    """
    up = (lease for lease in fleet.leases if lease.is_open and not lease.is_down)
    at_work = {lease.slot for lease in up if not fleet.is_leaving(lease)}
    alone = held.union(running_limits.paused_alone(fleet, work)) - at_work
    return frozenset(place for place in alone if fleet.paying_intent(place) is None)
