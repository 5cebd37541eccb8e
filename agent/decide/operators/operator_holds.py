"""Orders and vetoes of holds: lock, drain, pause, done, kill and held, each until its time or until it is lifted.

Invariants:
1. A hold never pays. It pauses, releases or forbids.
2. Lock: nothing is rented, started or bid higher. Drain: nothing is rented. Running leases go on under both.
3. Pause: running leases are stopped, keep their disks, and stay stopped. Done and kill: leases are released, and their
   slots are not filled again. A kill of a host, an owner or a market releases its leases and rents nothing there.
4. A kill of everything is in force until it is lifted, also for leases that are found later.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

from agent.domain.fleet import Fleet
from agent.domain.record import hold
from agent.domain.record.hold import DISKS, EVERYTHING, OFF_THE_MARKET, Holds, OperatorHold, Target, Word
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.work.decision import Decision, Pause, Reason, Rebid, Release, Rent, Resume, raises_spend
from agent.domain.work.workload import Workload, WorkloadKind

PAST = {
    Word.LOCK: "locked",
    Word.DRAIN: "drained",
    Word.PAUSE: "paused",
    Word.DONE: "done",
    Word.KILL: "killed",
    Word.HELD: "held",
}
"""The code of the reason by each kind of hold."""
_LIFT = {Word.LOCK: "unlock"}
_ENDING = frozenset({Word.PAUSE, Word.DONE, Word.KILL, Word.HELD})


def of_slot(place: Slot) -> tuple[Target, ...]:
    """Return the targets of holds that include a slot."""
    return hold.of_workload(place.workload), hold.of_slot(place)


def find(
    holds: Holds, words: tuple[Word, ...], targets: tuple[Target, ...], work: Workload | None = None
) -> Reason | None:
    """Return the first hold of one of these words on one of these targets as a reason, or None.

    `work` is the workload of the targets: the work of a service is never done.
    """
    if not holds:
        return None
    # Plain loops, without a generator: an array asks this several times a pass for each of its done slots.
    for word in words:
        for target in targets:
            first = holds.get((word, target))
            if first is not None:
                return reason(first, work)
    return None


def ordered(verb: str) -> Reason:
    """Return why a lease ends at once by a person's order. A kill has a code of its own: it waits for no work."""
    return Reason(PAST[Word.KILL] if verb == Word.KILL else "ordered", f"ordered by `gpubid {verb}`")


def reason(given: OperatorHold, work: Workload | None) -> Reason:
    """Return a hold as the reason of what it does, with the command that ends it."""
    word, target = given.word, given.target
    if word is Word.HELD:
        return Reason(word.value, f"{target} is held: {given.ground}; {_way_on(target, work)}")
    return Reason(PAST[word], f"{target} is {PAST[word]} by {given.ground}; `{way_out(word, target)}` ends that")


def way_out(word: Word, target: Target) -> str:
    """Return the command that ends a hold."""
    if target.kind is hold.TargetKind.FLEET:
        return "gpubid kill --lift"
    return f"gpubid {_LIFT.get(word, 'resume')} {target.spoken}"


def _way_on(target: Target, work: Workload | None) -> str:
    # A batch that ended in an unknown way holds its slot; repeated failures hold a workload of either kind.
    end, resume = "", f"`gpubid resume {target.spoken}` to go on"
    if work is not None and work.kind is WorkloadKind.SERVICE:
        return f"look at it, then {resume}; `gpubid release {target.spoken}` ends a lease that it still has"
    if target.kind is hold.TargetKind.SLOT:
        end = f"`gpubid done {target.spoken}` if its work is done, "
    return f"look at it, then {end}{resume}"


def why_idle(fleet: Fleet, place: Slot, holds: Holds) -> Reason | None:
    """Return why nothing is done for a slot: it is done or paused, or it is empty and must stay so.

    Else return None.
    """
    if not holds:
        return None
    targets = of_slot(place)
    leases = fleet.occupants_of(place)
    ending = (Word.DONE, Word.KILL, Word.HELD)
    words = ending if leases else (*ending, Word.LOCK, Word.DRAIN)
    stopped = find(holds, words, targets, fleet.workload(place.workload))
    if stopped is not None:
        return stopped
    for lease in leases:
        targets += hold.including(lease)
    return find(holds, (Word.PAUSE,), targets) or (None if leases else _shut(fleet, place, holds))


def _shut(fleet: Fleet, place: Slot, holds: Holds) -> Reason | None:
    """Return a hold if holds exclude every market that an empty slot may use, so that no search is needed."""
    work = fleet.workload(place.workload)
    names = [name for name in fleet.markets if work is not None and work.may_use(name)]
    found = [find(holds, OFF_THE_MARKET, (hold.of_market(name),)) for name in names]
    return found[0] if found and None not in found else None


def orders(fleet: Fleet, holds: Holds) -> Iterator[Release | Pause]:
    """Yield the endings that holds still need: all under a kill of everything, done slots, paused slots that run."""
    yield from _orders_of_kill(fleet, holds)
    if not any(word in _ENDING for word, _ in holds):
        return
    for lease in fleet.leases:
        if not lease.is_open or lease.state is LeaseState.RELEASING:
            continue
        # A stranger with a label of the slot is no part of its work. What a person ends or stops includes it.
        done = find(holds, (Word.DONE,), of_slot(lease.slot)) if not lease.is_held else None
        ends = done or find(holds, (Word.KILL,), hold.including(lease))
        if ends is not None:
            yield Release(lease, ends)
            continue
        paused = find(holds, (Word.PAUSE,) if lease.is_held else (Word.PAUSE, Word.HELD), hold.including(lease))
        # A lease that is missing from the listing is paused when it is listed again.
        if paused is not None and not fleet.is_stopped(lease) and lease.state is not LeaseState.MISSING:
            yield Pause(lease, paused)


def _orders_of_kill(fleet: Fleet, holds: Holds) -> Iterator[Release | Pause]:
    """Yield the endings that a kill of everything still needs, as after a rent settled later or a refused pause."""
    kill = holds.get((Word.KILL, EVERYTHING))
    if kill is None:
        return
    reason = Reason(PAST[Word.KILL], f"all spending is stopped after {kill.ground}")
    for lease in open_bids_first(fleet.leases):
        if not lease.is_open or lease.state is LeaseState.RELEASING:
            continue
        if (Word.KILL, DISKS) not in holds:
            yield Release(lease, reason)
        elif not fleet.is_stopped(lease):
            yield Pause(lease, reason)


def open_bids_first(leases: Iterable[Lease]) -> list[Lease]:
    """Return leases in the order in which a kill ends them: a bid that waits may start to bill while others end."""
    return sorted(leases, key=lambda lease: not lease.is_open_bid)


def forbidden(decision: Decision, holds: Holds) -> Reason | None:
    """Return the hold that forbids a decision, or None."""
    if isinstance(decision, Rent):
        offer = decision.offer
        targets = (*of_slot(decision.slot), *hold.of_place(offer.host, offer.owner))
        return find(holds, (*OFF_THE_MARKET, Word.HELD), targets)
    if isinstance(decision, Resume | Rebid) and raises_spend(decision):
        return find(holds, (Word.KILL, Word.LOCK, Word.PAUSE, Word.HELD), hold.including(decision.lease))
    return None


def kill_of_everything(holds: Iterable[OperatorHold], now: datetime) -> OperatorHold | None:
    """Return the kill of everything that is in force, or None."""
    return hold.in_force(holds, now).get((Word.KILL, EVERYTHING))


def killed(holds: Iterable[OperatorHold], now: datetime, who: str, *, keeps_disks: bool) -> tuple[OperatorHold, ...]:
    """Return the holds of a kill of everything given now. The same kill given again keeps the time of the first."""
    before = hold.in_force(holds, now)
    given = before.get((Word.KILL, EVERYTHING))
    is_the_same = given is not None and ((Word.KILL, DISKS) in before) is keeps_disks
    since = given.since if given is not None and is_the_same else now
    targets = (EVERYTHING, DISKS) if keeps_disks else (EVERYTHING,)
    return tuple(OperatorHold(Word.KILL, target, since, f"a kill by {who}") for target in targets)
