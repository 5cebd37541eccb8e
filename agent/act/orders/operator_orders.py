"""A person's order, read against the fleet: its meaning, its records, and the orders that it sends at once.

Targets are NAME (a workload), NAME/SLOT, a lease or instance id, host:MARKET/ID, owner:MARKET/ID
(host:ID where one market alone has it), market:NAME, for `unlock` a cooldown as `gpubid fleet` shows it,
and fleet:all for a kill of everything and the end of one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec

from agent.act import record
from agent.act.orders import begun_runs, gone_leases, hand_demands, lifted_holds, order_grounds
from agent.act.orders.order_error import OrderError
from agent.act.orders.order_grounds import Grounds
from agent.decide.facts import ProgressReported
from agent.decide.operators import ending_words, guard_runs, operator_holds
from agent.decide.reconcile import waiting_verdict
from agent.domain.record import hold
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.expiring_record import ExpiringRecord
from agent.domain.record.guard_run import GuardRun
from agent.domain.record.hold import OperatorHold, Target, TargetKind, Word
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.slot_demand import HandDemand
from agent.domain.work import sign_of_life
from agent.domain.work.deadline import Progress, is_hours
from agent.domain.work.decision import Pause, Release
from agent.domain.work.order import VERBS, Order
from agent.domain.work.sign_of_life import Absence
from agent.ledger.transaction import Transaction

ENDING = frozenset({"pause", "release", "done", "kill"})
"""The verbs that end something; they interrupt a cycle that only reads."""
EVERYTHING_LEARNED = "all"


@dataclass(frozen=True, slots=True)
class Meaning:
    """The result of an order: cooldowns to add and to lift, a lease to change, orders to send at once, and a sentence.

    `runs` begin, with `redone` as their workloads' progress. The records of `pools` and `hosts`, each with its market,
    are forgotten.
    """

    target: Target | None
    sentence: str
    adds: tuple[ExpiringRecord, ...] = ()
    lifts: tuple[ExpiringRecord, ...] = ()
    adopted: Lease | None = None
    decisions: tuple[Release | Pause, ...] = ()
    progress: ProgressReported | None = None
    runs: tuple[GuardRun, ...] = ()
    redone: tuple[Progress, ...] = ()
    absence: Absence | None = None
    demand: HandDemand | None = None
    pools: tuple[tuple[str, str], ...] = ()
    hosts: tuple[tuple[str, str], ...] = ()

    def write(self, tx: Transaction, order: Order, who: str, now: datetime) -> None:
        """Record the order and the person who gave it."""
        for kept in self.lifts:
            tx.lift_expiring(kept.place)
        for added in self.adds:
            tx.lift_expiring(added.place)
            tx.add_expiring(added)
        if self.adopted is not None:
            tx.update_lease(self.adopted)
        if self.progress is not None:
            record.keep_progress(tx, self.progress)
        begun_runs.write(tx, self.runs, self.runs, self.redone)
        if self.absence is not None:
            tx.keep_absence(self.absence)
        if self.demand is not None:
            tx.keep_hand_demand(self.demand)
        tx.forget_learned(self.pools, self.hosts)
        tx.append_event(
            Event(
                at=now,
                kind=EventKind.OPERATOR_ORDERED,
                workload=self.target.workload if self.target else "",
                slot=self.target.index if self.target else None,
                lease_id=self.adopted.lease_id if self.adopted else "",
                reason_code=order.verb,
                reason=f"{self.sentence} ({who})",
            )
        )


def read(order: Order, who: str, grounds: Grounds) -> Meaning:
    """Return the meaning of an order.

    Raises:
        OrderError: the verb or the target is unknown, or they do not go together.
    """
    if order.verb not in VERBS:
        raise OrderError("unknown_verb", f"there is no verb {order.verb!r}; known: {', '.join(VERBS)}")
    own = _OWN.get(order.verb)
    if own is not None:
        return own(order, grounds)
    target, leases = order_grounds.named(order.target, grounds)
    if order.verb == "adopt":
        return _adopted(order, leases, grounds)
    if order.verb == "release":
        if not leases:
            raise OrderError(
                "no_lease", f"no open lease matches {order.target!r}; {order_grounds.open_leases(grounds)}"
            )
        due = gone_leases.releases(target, leases) if order.is_gone else _releases(leases, "release")
        return Meaning(target, f"release {target}", decisions=due)
    return _standing(order, who, target, leases, grounds)


def _reset(order: Order, grounds: Grounds) -> Meaning:
    """Return the records to forget: of a pool, of a market, or all; hosts too, unless a pool is named."""
    kind, _, name = order.target.partition(":")
    if order.target != EVERYTHING_LEARNED and (kind not in {"market", "pool"} or not name):
        raise OrderError("bad_target", f"{order.target!r} cannot be reset; name all, market:NAME or pool:NAME")
    known = grounds.known
    pools = tuple(
        (each.market, each.pool)
        for each in known.capacity
        if name in {"", each.market if kind == "market" else each.pool}
    )
    hosts = tuple(
        (market, host_id)
        for market, records in known.hosts.items()
        if kind != "pool" and name in {"", market}
        for host_id in records
    )
    if not pools and not hosts:
        raise OrderError("nothing_learned", f"nothing was learned of {order.target}; see `gpubid strategy learned`")
    sentence = f"forget the records of {order.target}: {len(pools)} pool(s), {len(hosts)} host(s)"
    return Meaning(None, sentence, pools=pools, hosts=hosts)


def _standing(order: Order, who: str, target: Target, leases: tuple[Lease, ...], grounds: Grounds) -> Meaning:
    word = Word(order.verb)
    if target.kind is TargetKind.LEASE and word is not Word.PAUSE:
        others = _others(leases[0], grounds)
        if others and word in {Word.DONE, Word.KILL}:
            return _of_one(order, target, leases[0], others)
        target = hold.of_slot(leases[0].slot)
    if word is Word.DONE:
        _refuse_never_done(order, target, grounds)
    until = grounds.now + order.span if order.span else None
    decisions: tuple[Release | Pause, ...] = ()
    mine = tuple(lease for lease in leases if lease.state is not LeaseState.RELEASING)
    if word is Word.PAUSE:
        reason = operator_holds.ordered(word)
        decisions = tuple(Pause(lease, reason) for lease in mine if not order_grounds.is_stopped(lease, grounds))
    elif word in {Word.DONE, Word.KILL}:
        decisions = _releases(mine, word)
    span = f" until {until:%Y-%m-%d %H:%M} UTC" if until else ""
    given = OperatorHold(word, target, grounds.now, who, until)
    # A finished workload waits for nobody.
    lifts = tuple(each for each in grounds.known.holds if _is_settled_by(given, each))
    return Meaning(target, f"{word} {target}{span}", adds=(given,), lifts=lifts, decisions=decisions)


def _others(lease: Lease, grounds: Grounds) -> tuple[Lease, ...]:
    """Return the leases for which a slot goes on if one of its leases ends."""
    known = (each for each in grounds.known.leases if each.slot == lease.slot and each.lease_id != lease.lease_id)
    return tuple(each for each in known if each.is_open and each.state is not LeaseState.RELEASING)


def _of_one(order: Order, target: Target, lease: Lease, others: Sequence[Lease]) -> Meaning:
    """Return the end of one lease of several in a slot: a hold of the slot would end the others as well."""
    names = ", ".join(each.lease_id for each in others)
    if order.verb == Word.DONE:
        sentence = f"{lease.slot} has {names} too: `gpubid done {lease.slot}` ends all of them"
        raise OrderError("one_of_several", f"{sentence}, `gpubid release {lease.lease_id}` this one alone")
    return Meaning(
        target, f"release {target}; {lease.slot} goes on with {names}", decisions=_releases((lease,), "kill")
    )


def _refuse_never_done(order: Order, target: Target, grounds: Grounds) -> None:
    if not target.workload:
        raise OrderError("bad_target", f"{order.target!r} is no workload, slot or lease: only those can be done")
    kinds = [getattr(work, "kind", None) for work in grounds.workloads if work.name == target.workload]
    if kinds and getattr(kinds[0], "value", "batch") == "service":
        ways = f"`gpubid drain {order.target}` stops its rents, `gpubid release {order.target}` ends its leases"
        raise OrderError("service", f"{order.target} is a service, which is never done: {ways}")


def _is_settled_by(given: OperatorHold, other: OperatorHold) -> bool:
    is_ending = given.word in {Word.DONE, Word.KILL} and other.word is Word.HELD
    return is_ending and other.target.is_within(given.target)


def _releases(leases: Iterable[Lease], verb: str) -> tuple[Release, ...]:
    return tuple(Release(lease, operator_holds.ordered(verb)) for lease in leases)


def _adopted(order: Order, leases: tuple[Lease, ...], grounds: Grounds) -> Meaning:
    strayed = [lease for lease in leases if lease.is_estranged and not lease.is_held]
    if len(strayed) == 1:
        lease = msgspec.structs.replace(strayed[0], vouched_at=grounds.now, estranged_since=None)
        return Meaning(hold.of_slot(lease.slot), f"adopt {lease.lease_id} whatever its label says", adopted=lease)
    held_leases = [lease for lease in leases if lease.is_held and lease.state is not LeaseState.RELEASING]
    if len(held_leases) != 1:
        ids = ", ".join(lease.lease_id for lease in grounds.known.leases if lease.is_held) or "none"
        raise OrderError("not_held", f"{order.target!r} does not name one held lease; held are: {ids}")
    slots = {str(place): place for work in grounds.workloads for place in work.places}
    into = slots.get(order.into or str(held_leases[0].slot))
    if into is None:
        name = order.into or str(held_leases[0].slot)
        raise OrderError("no_slot", f"there is no slot {name}; name one with --into: {', '.join(slots)}")
    _refuse_filled(into, grounds)
    _refuse_ending(into, held_leases[0], grounds)
    vouched = grounds.now if held_leases[0].is_estranged else held_leases[0].vouched_at
    # In another slot its guard still writes to the folder of the slot in its label.
    run = held_leases[0].guard_run if into == held_leases[0].slot else None
    why = waiting_verdict.own_reason(held_leases[0])
    adopted = msgspec.structs.replace(
        held_leases[0],
        is_held=False,
        slot=into,
        vouched_at=vouched,
        estranged_since=None,
        guard_run=run,
        end_reason=why,
    )
    return Meaning(hold.of_slot(into), f"adopt {held_leases[0].lease_id} into {into}", adopted=adopted)


def _progressed(order: Order, grounds: Grounds) -> Meaning:
    """Record a person's report of progress; a later report of the workload itself replaces it."""
    named = [
        each
        for each in grounds.workloads
        if order.target == each.name or order.target in {str(place) for place in each.places}
    ]
    work = named[0] if named else None
    if work is None or work.deadline is None:
        names = ", ".join(each.name for each in grounds.workloads if each.deadline is not None) or "none"
        raise OrderError("no_deadline", f"{order.target!r} has no deadline; workloads with one: {names}")
    if order.hours is None or not is_hours(order.hours):
        raise OrderError("bad_hours", f"{order.hours} is no number of hours done; write for example 12.5")
    before = grounds.known.progress.get(work.name)
    after = Progress(work.name, order.hours, grounds.now, before.since if before else grounds.now, "order")
    sentence = f"{order.hours:g} h of {work.deadline.hours:g} h are done"
    if before is not None and order.hours < before.hours:
        sentence += f", and {before.hours:g} h were reported before"
    return Meaning(hold.of_workload(work.name), sentence, progress=ProgressReported(after, before))


def _refuse_ending(place: Slot, lease: Lease, grounds: Grounds) -> None:
    """Refuse a slot whose leases end: an adopted one would be released at once, with its disk."""
    holds = hold.in_force(grounds.known.holds, grounds.now)
    there = hold.including(msgspec.structs.replace(lease, slot=place))
    done = operator_holds.find(holds, (Word.DONE,), operator_holds.of_slot(place))
    ending = done or operator_holds.find(holds, (Word.KILL,), there)
    if ending is not None:
        why = f"{lease.lease_id} would be released at once, since {ending.sentence}"
        raise OrderError("slot_ends", f"{why}; end that first, or give another slot with --into")


def _refuse_filled(place: Slot, grounds: Grounds) -> None:
    for lease in grounds.known.leases:
        if lease.slot == place and lease.is_open and not lease.is_held:
            raise OrderError(
                "slot_filled", f"slot {place} is filled by {lease.lease_id}: release that one first, or give --into"
            )
    _refuse_busy(place, grounds)


def _refuse_busy(place: Slot, grounds: Grounds) -> None:
    for intent in grounds.known.intents:
        if intent.slot == place and intent.is_open and intent.kind.is_paying:
            raise OrderError("slot_busy", f"slot {place} has intent {intent.intent_id} in doubt: try again in a minute")


def _retried(order: Order, grounds: Grounds) -> Meaning:
    """Return the runs that a target begins anew, from nothing; its holds end as with `resume`."""
    target, leases = order_grounds.named(order.target, grounds)
    lifted_holds.refuse_part_of_whole(order, target, grounds)
    meant = guard_runs.last(grounds.known.guard_runs).values()
    runs = [run for run in meant if hold.of_slot(run.slot).is_within(target)]
    if not runs:
        raise OrderError("no_run", f"{order.target!r} has no run to begin again: no guard keeps its work in a bucket")
    open_still = sorted(str(lease.slot) for lease in leases if lease.state is not LeaseState.RELEASING)
    if open_still:
        raise OrderError("slot_filled", f"{open_still[0]} has a lease: {ending_words.released(open_still[0])}")
    for run in runs:
        # What comes of a rent in doubt would work for the old run.
        _refuse_busy(run.slot, grounds)
    begun = tuple(guard_runs.next_run(run, grounds.now) for run in runs)
    try:
        lifted = _lifting(lifted_holds.of(order, grounds, lifted_holds.OF_A_RESUME))
    except OrderError:
        # Nothing holds it, but what was counted against its earlier run would hold this one early.
        lifted = _lifting(lifted_holds.counted_anew(order, grounds))
    named = ", ".join(f"{run.slot} begins run {run.run}" for run in begun)
    redone = guard_runs.from_nothing(begun, grounds.known.progress, grounds.now)
    return replace(lifted, sentence=f"{lifted.sentence}: {named}, without a checkpoint", runs=begun, redone=redone)


def _lifting(lifted: lifted_holds.Lifted) -> Meaning:
    return Meaning(lifted.target, lifted.sentence, adds=lifted.adds, lifts=lifted.lifts)


def _absent(order: Order, grounds: Grounds) -> Meaning:
    """Record until when the daemon will be away, so that no dead man's switch fires before."""
    if order.span is None:
        return Meaning(None, "the daemon is not away any more", absence=Absence(None))
    if order.span > sign_of_life.LONGEST:
        raise OrderError(
            "out_of_range", "guards wait for 30 days at most; write a shorter time, for example --until 30d"
        )
    until = grounds.now + order.span
    return Meaning(None, f"the daemon may be away until {until:%Y-%m-%d %H:%M} UTC", absence=Absence(until))


def _demanded(order: Order, grounds: Grounds) -> Meaning:
    sentence, demand = hand_demands.of(order, grounds.workloads, grounds.now)
    return Meaning(None, sentence, demand=demand)


_OWN: Mapping[str, Callable[[Order, Grounds], Meaning]] = {
    "resume": lambda order, grounds: _lifting(lifted_holds.by_resume(order, grounds)),
    "lift": lambda order, grounds: _lifting(lifted_holds.of_kill(order, grounds)),
    "unlock": lambda order, grounds: _lifting(lifted_holds.by_unlock(order, grounds)),
    "progress": _progressed,
    "reset": _reset,
    "retry": _retried,
    "absent": _absent,
    "demand": _demanded,
}
"""Verbs whose targets are of other kinds."""
