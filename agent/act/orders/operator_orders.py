"""A person's order, read against the fleet: its meaning, what it records, and what it does at once.

Targets are NAME (a workload), NAME/SLOT, a lease or instance id, host:MARKET/ID, owner:MARKET/ID
(host:ID where one market alone has it), market:NAME, and for `unlock` anything that `gpubid fleet` shows as resting.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from agent.act import record
from agent.act.orders import operator_targets
from agent.decide.operators import kill_hold, operator_holds
from agent.decide.pricing import cooldowns
from agent.decide.reconcile import workload_end
from agent.decide.reconcile.facts import ProgressTold
from agent.domain.record.cooldown import Cooldown
from agent.domain.record.event import Event
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.deadline import Progress, is_hours
from agent.domain.work.decision import Pause, Reason, Release
from agent.domain.work.workload import Slot, Workload
from agent.ledger.memory import Recollection
from agent.ledger.transaction import Transaction

MARKS = frozenset({cooldowns.RAN, cooldowns.STARTED, *workload_end.COUNTED})
"""Scopes of marks that are only counted and hold nothing by themselves."""
FOR_GOOD = timedelta(days=3650)
ENDING = frozenset({"pause", "release", "done", "kill"})
"""The verbs that end something; they interrupt a cycle that only reads."""
VERBS = ("drain", "pause", "resume", "release", "adopt", "lock", "unlock", "done", "kill", "progress", "reset")
EVERYTHING_LEARNED = "all"
_HOLDS = ("workload", "slot")
"""Scopes of holds and cooldowns that gpubid makes itself and a person may end."""


class OrderError(Exception):
    """An order that cannot be understood or matches nothing: nothing was changed."""

    def __init__(self, code: str, sentence: str) -> None:
        """Take a code for programs and a sentence that says what to do."""
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


@dataclass(frozen=True, slots=True)
class Order:
    """An order of a person: a verb of `VERBS` and its target; `span` is its duration, `into` a slot to adopt into.

    `hours` of work are done, for `progress`.
    """

    verb: str
    target: str
    span: timedelta | None = None
    into: str = ""
    hours: float | None = None


@dataclass(frozen=True, slots=True)
class Grounds:
    """The state against which an order is read."""

    workloads: tuple[Workload, ...]
    markets: tuple[str, ...]
    known: Recollection
    now: datetime


@dataclass(frozen=True, slots=True)
class Meaning:
    """The result of an order: cooldowns to add and to lift, a lease to change, orders to send at once, and a sentence.

    What was learned of `pools` and `hosts`, by market, is forgotten.
    """

    key: str
    sentence: str
    adds: tuple[Cooldown, ...] = ()
    lifts: tuple[tuple[str, str], ...] = ()
    adopted: Lease | None = None
    decisions: tuple[Release | Pause, ...] = ()
    progress: ProgressTold | None = None
    pools: tuple[tuple[str, str], ...] = ()
    hosts: tuple[tuple[str, str], ...] = ()

    def write(self, tx: Transaction, order: Order, who: str, now: datetime) -> None:
        """Record the order, with who gave it."""
        for scope, key in self.lifts:
            tx.lift_cooldown(scope, key)
        for rest in self.adds:
            tx.lift_cooldown(rest.scope, rest.key)
            tx.add_cooldown(rest.scope, rest.key, rest.until, rest.code)
        if self.adopted is not None:
            tx.update_lease(self.adopted)
        if self.progress is not None:
            record.tell_progress(tx, self.progress)
        tx.forget_learned(self.pools, self.hosts)
        workload, _, index = self.key.partition(":")[2].partition("/")
        is_place = self.key.startswith(("workload:", "slot:"))
        tx.append_event(
            Event(
                at=now,
                kind="operator.ordered",
                workload=workload if is_place else "",
                slot=int(index) if is_place and index.isdecimal() else None,
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
    key, leases = _target(order.target, grounds)
    if order.verb == "adopt":
        return _adopted(order, leases, grounds)
    if order.verb == "release":
        if not leases:
            raise OrderError("no_lease", f"no open lease matches {order.target!r}; {_open(grounds)}")
        return Meaning(key, f"release {key}", decisions=_releases(leases, "release"))
    return _standing(order, who, key, leases, grounds)


def _reset(order: Order, grounds: Grounds) -> Meaning:
    """Return what to forget: of a pool, of a market, or all; with hosts, unless a pool is named."""
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
    sentence = f"forget what was learned of {order.target}: {len(pools)} pool(s), {len(hosts)} host(s)"
    return Meaning(order.target, sentence, pools=pools, hosts=hosts)


def _standing(order: Order, who: str, key: str, leases: tuple[Lease, ...], grounds: Grounds) -> Meaning:
    if key.startswith("lease:") and order.verb != operator_holds.PAUSE:
        key = f"slot:{leases[0].slot}"
    if order.verb == operator_holds.DONE:
        if not key.startswith(("workload:", "slot:")):
            raise OrderError("bad_target", f"{order.target!r} is no workload, slot or lease: only those can be done")
        kinds = [getattr(work, "kind", None) for work in grounds.workloads if work.name == _workload_of(key)]
        if kinds and getattr(kinds[0], "value", "batch") == "service":
            raise OrderError("service", f"{order.target} is a service and never done; use `gpubid drain` or `release`")
    until = grounds.now + (order.span or FOR_GOOD)
    decisions: tuple[Release | Pause, ...] = ()
    mine = tuple(held for held in leases if held.state is not LeaseState.RELEASING)
    if order.verb == operator_holds.PAUSE:
        reason = Reason("ordered", "ordered by `gpubid pause`")
        decisions = tuple(Pause(held, reason) for held in mine if not operator_holds.is_down(held))
    elif order.verb in {operator_holds.DONE, operator_holds.KILL}:
        decisions = _releases(mine, order.verb)
    span = f" until {until:%Y-%m-%d %H:%M} UTC" if order.span else ""
    rest = Cooldown(order.verb, key, until, who)
    # A finished workload waits for nobody.
    lifts = tuple((each.scope, each.key) for each in grounds.known.cooldowns if _is_settled_by(order, key, each))
    return Meaning(key, f"{order.verb} {key}{span}", adds=(rest,), lifts=lifts, decisions=decisions)


def _is_settled_by(order: Order, key: str, rest: Cooldown) -> bool:
    is_of_workload = key.startswith("workload:") and rest.key.startswith(f"slot:{_workload_of(key)}/")
    return (
        order.verb in {operator_holds.DONE, operator_holds.KILL}
        and rest.scope == operator_holds.HELD
        and (rest.key == key or is_of_workload)
    )


def _releases(leases: Iterable[Lease], verb: str) -> tuple[Release, ...]:
    return tuple(Release(held, Reason("ordered", f"ordered by `gpubid {verb}`")) for held in leases)


def _lifted(order: Order, grounds: Grounds, verbs: Collection[str], scopes: Collection[str]) -> Meaning:
    key, leases = _target(order.target, grounds)
    keys = {key, *(f"lease:{held.lease_id}" for held in leases if key.startswith(("workload:", "slot:")))}
    keys |= {f"slot:{held.slot}" for held in leases if key.startswith("lease:")}
    prefix = f"slot:{_workload_of(key)}/" if key.startswith("workload:") else "\0"
    lifts = tuple(
        (rest.scope, rest.key)
        for rest in grounds.known.cooldowns
        for about in (rest.key if rest.scope in verbs else f"{rest.scope}:{rest.key}",)
        if (rest.scope in verbs or rest.scope in scopes) and (about in keys or about.startswith(prefix))
    )
    if lifts:
        # The counts against the workload would hold it again in the next cycle.
        lifts += tuple((rest.scope, rest.key) for rest in grounds.known.cooldowns if _is_counted(rest, key))
    else:
        raise OrderError("nothing_holds", f"nothing holds {order.target!r}; {_resting(grounds)}")
    halted = any((rest.scope, rest.key) == kill_hold.EVERYTHING for rest in grounds.known.cooldowns)
    still = "; all spending is still stopped: `gpubid kill --lift` ends that" if halted else ""
    return Meaning(key, f"{order.verb} {key}{still}", lifts=lifts)


def _is_counted(rest: Cooldown, key: str) -> bool:
    return rest.scope in workload_end.COUNTED and rest.key.rpartition("@")[0] == _workload_of(key)


def _unlocked(order: Order, grounds: Grounds) -> Meaning:
    """Lift a lock, or a cooldown that gpubid made, by its name in `gpubid fleet`."""
    lifts = []
    target = _place(order.target, grounds) if operator_targets.is_place(order.target) else order.target
    for rest in grounds.known.cooldowns:
        if rest.scope in {
            operator_holds.PAUSE,
            operator_holds.DRAIN,
            operator_holds.DONE,
            operator_holds.KILL,
            operator_holds.HELD,
            "fleet",
        }:
            continue
        shown = f"{rest.scope}:{rest.key}"
        bare = rest.key if rest.scope == operator_holds.LOCK else shown
        if target in {shown, bare, bare.removeprefix("workload:").removeprefix("slot:")}:
            lifts.append((rest.scope, rest.key))
    if not lifts and any(held.lease_id == order.target for held in grounds.known.leases):
        return _lifted(order, grounds, (operator_holds.LOCK,), ())
    if not lifts:
        raise OrderError("nothing_locked", f"{order.target!r} is not locked; {_resting(grounds)}")
    return Meaning(target, f"unlock {target}", lifts=tuple(lifts))


def _adopted(order: Order, leases: tuple[Lease, ...], grounds: Grounds) -> Meaning:
    strayed = [lease for lease in leases if lease.is_estranged and not lease.is_held]
    if len(strayed) == 1:
        lease = replace(strayed[0], vouched_at=grounds.now, estranged_since=None)
        return Meaning(f"slot:{lease.slot}", f"adopt {lease.lease_id} whatever its label says", adopted=lease)
    held = [lease for lease in leases if lease.is_held]
    if len(held) != 1:
        ids = ", ".join(lease.lease_id for lease in grounds.known.leases if lease.is_held) or "none"
        raise OrderError("not_held", f"{order.target!r} does not name one held lease; held are: {ids}")
    slots = {str(place): place for work in grounds.workloads for place in work.places}
    into = slots.get(order.into or str(held[0].slot))
    if into is None:
        name = order.into or str(held[0].slot)
        raise OrderError("no_slot", f"there is no slot {name}; name one with --into: {', '.join(slots)}")
    _refuse_filled(into, grounds)
    vouched = grounds.now if held[0].is_estranged else held[0].vouched_at
    adopted = replace(held[0], is_held=False, slot=into, vouched_at=vouched, estranged_since=None)
    return Meaning(f"slot:{into}", f"adopt {held[0].lease_id} into {into}", adopted=adopted)


def _progressed(order: Order, grounds: Grounds) -> Meaning:
    """Record a person's report of progress; a later report of the workload itself replaces it."""
    work = next((each for each in grounds.workloads if each.name == order.target), None)
    if work is None or work.deadline is None:
        names = ", ".join(each.name for each in grounds.workloads if each.deadline is not None) or "none"
        raise OrderError("no_deadline", f"{order.target!r} is no workload with a deadline; with one are: {names}")
    if order.hours is None or not is_hours(order.hours):
        raise OrderError("bad_hours", f"{order.hours} is no number of hours done; write for example 12.5")
    before = grounds.known.progress.get(work.name)
    after = Progress(work.name, order.hours, grounds.now, before.since if before else grounds.now, "order")
    sentence = f"{order.hours:g} h of {work.deadline.hours:g} h are done"
    if before is not None and order.hours < before.hours:
        sentence += f", and {before.hours:g} h were told before"
    return Meaning(f"workload:{work.name}", sentence, progress=ProgressTold(after, before))


def _refuse_filled(place: Slot, grounds: Grounds) -> None:
    for lease in grounds.known.leases:
        if lease.slot == place and lease.is_open and not lease.is_held:
            raise OrderError(
                "slot_filled", f"slot {place} is filled by {lease.lease_id}: release that one first, or give --into"
            )
    for intent in grounds.known.intents:
        if intent.slot == place and intent.is_open and intent.kind.is_paying:
            raise OrderError("slot_busy", f"slot {place} has intent {intent.intent_id} in doubt: try again in a minute")


def _target(target: str, grounds: Grounds) -> tuple[str, tuple[Lease, ...]]:
    """Return the key of a target and its open leases; meanings are tried in this order."""
    leases = tuple(lease for lease in grounds.known.leases if lease.is_open)
    kind, _, name = target.partition(":")
    if kind == "market" and name in grounds.markets:
        return target, tuple(lease for lease in leases if lease.market == name)
    if operator_targets.is_place(target):
        key = _place(target, grounds)
        return key, operator_targets.leases_at(key, leases)
    mine = tuple(lease for lease in leases if target in {lease.slot.workload, str(lease.slot)})
    if any(work.name == target for work in grounds.workloads) or any(lease.slot.workload == target for lease in mine):
        return f"workload:{target}", mine
    if mine or any(str(place) == target for work in grounds.workloads for place in work.places):
        return f"slot:{target}", mine
    named = tuple(lease for lease in leases if target in {lease.lease_id, lease.instance_id})
    if named:
        return f"lease:{named[0].lease_id}", named
    names = ", ".join(work.name for work in grounds.workloads)
    raise OrderError("unknown_target", f"nothing is named {target!r}; workloads: {names}; {_open(grounds)}")


def _place(target: str, grounds: Grounds) -> str:
    try:
        return operator_targets.key(target, grounds.markets, grounds.known)
    except operator_targets.AmbiguousPlaceError as error:
        raise OrderError("ambiguous_place", str(error)) from error


def _workload_of(key: str) -> str:
    return key.partition(":")[2].partition("/")[0]


def _open(grounds: Grounds) -> str:
    return f"open leases: {', '.join(sorted(lease.lease_id for lease in grounds.known.leases)) or 'none'}"


def _resting(grounds: Grounds) -> str:
    shown = sorted(f"{rest.scope}:{rest.key}" for rest in grounds.known.cooldowns if rest.scope not in MARKS)
    return f"resting are: {', '.join(shown) or 'none'}"


def _resumed(order: Order, grounds: Grounds) -> Meaning:
    return _lifted(
        order,
        grounds,
        (operator_holds.PAUSE, operator_holds.DRAIN, operator_holds.DONE, operator_holds.KILL, operator_holds.HELD),
        _HOLDS,
    )


_OWN: Mapping[str, Callable[[Order, Grounds], Meaning]] = {
    "resume": _resumed,
    "unlock": _unlocked,
    "progress": _progressed,
    "reset": _reset,
}
"""Verbs whose targets are of other kinds."""
