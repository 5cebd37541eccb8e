"""What an order lifts: holds of a target, the counts against it, and cooldowns that gpubid made.

Invariants:
1. What is done is lifted only where nothing else holds the target: whoever ends a pause does not mean to pay for
   finished work again. The tasks of an array are run again one by one.
2. Where a workload is done as a whole, that alone is lifted: its slots that are done by themselves stay done.
3. The end of a kill ends nothing but a kill.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from agent.act.orders import operator_targets, order_grounds
from agent.act.orders.order_error import OrderError
from agent.act.orders.order_grounds import Grounds
from agent.decide.operators import operator_holds
from agent.decide.reconcile.tasks import array_proof
from agent.domain.record import hold
from agent.domain.record.cooldown import CooldownKind
from agent.domain.record.expiring_record import ExpiringRecord
from agent.domain.record.hold import OperatorHold, Target, TargetKind, Word
from agent.domain.record.lease import Lease
from agent.domain.work.order import Order

OF_A_RESUME = frozenset({Word.PAUSE, Word.DRAIN, Word.DONE, Word.KILL, Word.HELD})
"""The words that `gpubid resume` ends."""
_MOST_SHOWN = 8
_OF_A_PLACE = frozenset({Word.PAUSE, Word.KILL})
"""The words that stop leases at a host, an owner or a market. A lock there may stand for weeks."""
_BESIDE = (OF_A_RESUME | {Word.LOCK}) - {Word.DONE}


@dataclass(frozen=True, slots=True)
class Lifted:
    """What an order lifts, its target, and a sentence. `adds` are the marks that it leaves."""

    target: Target | None
    sentence: str
    lifts: tuple[ExpiringRecord, ...]
    adds: tuple[ExpiringRecord, ...] = ()


def end_of_everything(holds: Iterable[OperatorHold], now: datetime) -> str:
    """Return the result of the end of a kill of everything, with the holds that stay in force.

    `holds` are those before it ends.
    """
    before = list(hold.in_force(holds, now).values())
    is_killed = operator_holds.kill_of_everything(before, now) is not None
    result = "the stop of all spending is lifted: the daemon may rent again" if is_killed else "no kill was in force"
    kept = [each for each in before if _keeps_back(each)]
    if not kept:
        return result
    named = sorted(f"{each.target.spoken} ({each.word})" for each in kept)
    more = f" and {len(named) - _MOST_SHOWN} more" if len(named) > _MOST_SHOWN else ""
    words = {each.word for each in kept}
    ends = ["`gpubid resume TARGET` ends such a hold"] if words - {Word.LOCK} else []
    ends += ["`gpubid unlock TARGET` ends a lock"] if Word.LOCK in words else []
    return f"{result}; still held: {', '.join(named[:_MOST_SHOWN])}{more}; {', '.join(ends)}"


def _keeps_back(held: OperatorHold) -> bool:
    """Return whether a hold keeps work from running after a kill of everything has ended."""
    if held.word is Word.LOCK:
        return held.target.kind in {TargetKind.WORKLOAD, TargetKind.SLOT}
    return held.word in OF_A_RESUME - {Word.DONE} and held.target.kind is not TargetKind.FLEET


def by_resume(order: Order, grounds: Grounds) -> Lifted:
    """Return what `gpubid resume` lifts.

    Raises:
        OrderError: nothing holds the target, or only `done` does and that must not end by this order.
    """
    target, leases = order_grounds.named(order.target, grounds)
    refuse_part_of_whole(order, target, grounds)
    is_whole = target.kind is TargetKind.WORKLOAD and _is_done_as_whole(target.name, grounds)
    done = _holds(grounds, target, leases, {Word.DONE})
    if not done:
        return of(order, grounds, OF_A_RESUME)
    if _holds(grounds, target, leases, OF_A_RESUME - {Word.DONE}):
        lifted = of(order, grounds, OF_A_RESUME - {Word.DONE})
        again = f", also {target.name} as a whole: `gpubid resume {target.name}` again ends that" if is_whole else ""
        return replace(lifted, sentence=f"{lifted.sentence}; what is done stays done{again}")
    if not is_whole:
        _refuse_array(target, len(done), grounds)
    beside = [str(each) for each in grounds.known.holds if _is_beside(each, target, leases)]
    if beside:
        sentence = f"{order.target} is done, and {', '.join(sorted(beside))} is in force too: end that first"
        raise OrderError("held_elsewhere", f"{sentence}, then `gpubid resume {order.target}` runs it again")
    lifted = of(order, grounds, OF_A_RESUME)
    if is_whole:
        return _without_done_slots(lifted, target, len(done) - 1)
    return replace(lifted, sentence=f"{lifted.sentence}, which was done: it runs again")


def refuse_part_of_whole(order: Order, target: Target, grounds: Grounds) -> None:
    """Refuse an order to run one slot of a workload that is done as a whole: the slot would not run.

    Raises:
        OrderError: the order has such a target.
    """
    name = target.workload
    if target.kind is TargetKind.SLOT and _is_done_as_whole(name, grounds):
        sentence = f"{name} is done as a whole, so {order.target} would not run: `gpubid resume {name}` ends that"
        raise OrderError("held_elsewhere", f"{sentence}, and slots that are done by themselves stay done")


def _is_done_as_whole(name: str, grounds: Grounds) -> bool:
    return any(each.word is Word.DONE and each.target == hold.of_workload(name) for each in grounds.known.holds)


def _without_done_slots(lifted: Lifted, target: Target, slots: int) -> Lifted:
    """Return what ends that a workload is done as a whole; so many of its slots are done by themselves and stay so."""
    lifts = (each for each in lifted.lifts if not isinstance(each, OperatorHold) or each.target == target)
    kept = f"; {slots} of its slots stay done" if slots else ""
    return replace(lifted, sentence=f"{lifted.sentence}, which was done: it runs again{kept}", lifts=tuple(lifts))


def of_kill(order: Order, grounds: Grounds) -> Lifted:
    """Return the kill of a target, which ends.

    Raises:
        OrderError: nothing killed the target.
    """
    return of(order, grounds, {Word.KILL})


def of(order: Order, grounds: Grounds, words: Collection[Word]) -> Lifted:
    """Return the holds of a target with some words, and what was counted against it.

    Raises:
        OrderError: nothing holds the target.
    """
    target, leases = order_grounds.named(order.target, grounds)
    holds = _holds(grounds, target, leases, words)
    slots = (each for each in grounds.known.cooldowns if each.kind is CooldownKind.SLOT and Word.PAUSE in words)
    of_slots = tuple(each for each in slots if _is_meant(Target(TargetKind.SLOT, each.key), target, leases))
    if not holds and not of_slots:
        raise OrderError("nothing_holds", f"nothing holds {order.target!r}; {order_grounds.held_back(grounds)}")
    halted = operator_holds.kill_of_everything(grounds.known.holds, grounds.now) is not None
    still = "; all spending is still stopped: `gpubid kill --lift` ends that" if halted else ""
    anew = counted_anew(order, grounds)
    sentence = f"{order.verb} {target}{still}"
    return replace(anew, sentence=sentence, lifts=(*holds, *of_slots, *anew.lifts))


def counted_anew(order: Order, grounds: Grounds) -> Lifted:
    """Return the end of what was counted against a target: those counts would hold it again in the next cycle.

    An array as a whole has to prove itself anew.
    """
    target, leases = order_grounds.named(order.target, grounds)
    names = {target.name, *(str(lease.slot) for lease in leases)}
    counted = (each for each in grounds.known.tallies if each.is_against(target.workload, names))
    is_whole = target.kind is TargetKind.WORKLOAD
    proofs = (each for each in grounds.known.tallies if is_whole and each.proves(target.name))
    doubts = (array_proof.doubt(target.name, grounds.now),) if is_whole and _is_array(target.name, grounds) else ()
    return Lifted(target, f"{order.verb} {target}", (*counted, *proofs), doubts)


def by_unlock(order: Order, grounds: Grounds) -> Lifted:
    """Return a lock, or a cooldown that gpubid made, by its name in `gpubid fleet`.

    Raises:
        OrderError: the target is not locked.
    """
    is_place = operator_targets.is_place(order.target)
    name = str(order_grounds.place_of(order.target, grounds)) if is_place else order.target
    lifts = tuple(kept for kept in grounds.known.expiring if name in _names(kept))
    if not lifts and any(lease.lease_id == order.target for lease in grounds.known.leases):
        return of(order, grounds, {Word.LOCK})
    if not lifts:
        raise OrderError("nothing_locked", f"{order.target!r} is not locked; {order_grounds.held_back(grounds)}")
    return Lifted(Target.parse(name), f"unlock {name}", lifts)


def _is_array(name: str, grounds: Grounds) -> bool:
    return any(each.name == name and each.array is not None for each in grounds.workloads)


def _refuse_array(target: Target, done: int, grounds: Grounds) -> None:
    if target.kind is not TargetKind.WORKLOAD or not _is_array(target.workload, grounds):
        return
    sentence = f"only `done` holds {target.name}, and {done} of its slots: `gpubid resume {target.name}/N` runs slot N"
    raise OrderError("tasks_done", f"{sentence} again, and with a guard `gpubid retry {target.name}` all of them")


def _holds(
    grounds: Grounds, target: Target, leases: Sequence[Lease], words: Collection[Word]
) -> tuple[OperatorHold, ...]:
    known = grounds.known.holds
    return tuple(each for each in known if each.word in words and _is_meant(each.target, target, leases))


def _is_meant(about: Target, target: Target, leases: Sequence[Lease]) -> bool:
    """Return whether a target with these leases means another one: itself, a slot of it, or a lease of it."""
    of_leases = {hold.of_lease(lease.lease_id) for lease in leases} if target.workload else set()
    if target.kind is TargetKind.LEASE:
        of_leases = {hold.of_slot(lease.slot) for lease in leases}
    return about in of_leases or about.is_within(target)


def _is_beside(each: OperatorHold, target: Target, leases: Sequence[Lease]) -> bool:
    """Return whether a hold is in the way of a target although an order on it does not lift the hold."""
    if each.target.kind is TargetKind.FLEET:
        return each.word is Word.KILL
    if each.target.kind in {TargetKind.HOST, TargetKind.OWNER, TargetKind.MARKET}:
        return each.word in _OF_A_PLACE
    is_around = target.is_within(each.target) or _is_meant(each.target, target, leases)
    return each.word in _BESIDE and is_around


def _names(kept: ExpiringRecord) -> set[str]:
    """Return the names that unlock a hold or cooldown: none where `resume` lifts it."""
    shown = str(kept)
    if isinstance(kept, OperatorHold):
        return {shown, str(kept.target), kept.target.spoken} if kept.word is Word.LOCK else set()
    return {shown, shown.removeprefix("workload:").removeprefix("slot:")}
