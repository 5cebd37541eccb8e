"""The holds of a person, and what they forbid and order: lock, drain, pause, done, kill, each until it is lifted.

A word is a rest in the ledger: its scope is the verb, its key "KIND:NAME", its code who said it.

Invariants:
1. A word never pays: it pauses, releases or forbids.
2. Lock: nothing is rented, started or bid higher; drain: nothing is rented; what runs goes on under both.
3. Pause: what runs is stopped, keeps its disk, and stays stopped. Done and kill: released and not filled again; a
   kill of a host, an owner or a market releases what is there and rents nothing there.
"""

from collections.abc import Iterator, Mapping

from agent.domain.fleet import Fleet
from agent.domain.market.host import HostKey, OwnerKey
from agent.domain.market.tenure import Tenure
from agent.domain.record import cooldown
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import Decision, Pause, Reason, Rebid, Release, Rent, Resume, raises_spend
from agent.domain.work.workload import Slot

LOCK, DRAIN, PAUSE, DONE, KILL = "lock", "drain", "pause", "done", "kill"
HELD = cooldown.HELD
"""The agent's own hold of a slot or workload that waits for a person; it pauses, and `resume` lifts it."""
STANDING = (LOCK, DRAIN, PAUSE, DONE, KILL)
"""The verbs that hold until they are lifted, and the scopes of their marks."""
PAST = {LOCK: "locked", DRAIN: "drained", PAUSE: "paused", DONE: "done", KILL: "killed", HELD: "held"}
LIFT = {LOCK: "unlock", DRAIN: "resume", PAUSE: "resume", DONE: "resume", KILL: "resume", HELD: "resume"}
OFF_THE_MARKET = (KILL, LOCK, DRAIN, PAUSE)
"""Holds under which no offer of a host, an owner or a market is rented."""


def of_slot(place: Slot) -> tuple[str, ...]:
    """Return the keys under which a slot may be held."""
    return f"workload:{place.workload}", f"slot:{place}"


def of_lease(held: Lease) -> tuple[str, ...]:
    """Return the keys under which a lease may be held."""
    return *of_slot(held.slot), f"lease:{held.lease_id}", *_of_place(held.host, held.owner)


def _of_place(host: HostKey, owner: OwnerKey) -> tuple[str, ...]:
    return f"host:{host}", f"owner:{owner}", f"market:{host.market}"


def find(cooling: Mapping[str, str], verbs: tuple[str, ...], keys: tuple[str, ...]) -> Reason | None:
    """Return the first hold of these verbs about these keys as a reason, or None."""
    for verb in verbs:
        for key in keys:
            who = cooling.get(f"{verb}:{key}")
            if who is not None:
                name = key.removeprefix("workload:").removeprefix("slot:").removeprefix("lease:")
                if verb == HELD:
                    return Reason(HELD, f"{key} is held: {who}; {_way_on(key, name)}")
                return Reason(PAST[verb], f"{key} is {PAST[verb]} by {who}; `gpubid {LIFT[verb]} {name}` ends that")
    return None


def _way_on(key: str, name: str) -> str:
    # A batch that ended in an unknown way holds its slot; repeated failures hold a workload of either kind.
    is_slot = key.startswith("slot:")
    end = f"`gpubid done {name}` if its work is done, " if is_slot else ""
    return f"look at it, then {end}`gpubid resume {name}` to go on"


def standstill(fleet: Fleet, place: Slot, cooling: Mapping[str, str]) -> Reason | None:
    """Return why nothing is done for a slot, or None: it is done or paused, or it is empty and must stay so."""
    keys = of_slot(place)
    held = fleet.leases_of(place)
    stopped = find(cooling, (DONE, KILL, HELD) if held else (DONE, KILL, HELD, LOCK, DRAIN), keys)
    if stopped is not None:
        return stopped
    for lease in held:
        keys += of_lease(lease)
    return find(cooling, (PAUSE,), keys) or (None if held else _shut(fleet, place, cooling))


def _shut(fleet: Fleet, place: Slot, cooling: Mapping[str, str]) -> Reason | None:
    """Return the hold of the last market that an empty slot may use: there is no offer to search for."""
    work = fleet.workload(place.workload)
    names = [name for name in fleet.markets if work is not None and work.may_use(name)]
    found = [find(cooling, OFF_THE_MARKET, (f"market:{name}",)) for name in names]
    return found[0] if found and None not in found else None


def orders(fleet: Fleet, cooling: Mapping[str, str]) -> Iterator[Release | Pause]:
    """Yield the endings that holds demand: leases of a done slot, and running leases of a paused one."""
    if not any(key.startswith((f"{PAUSE}:", f"{DONE}:", f"{KILL}:", f"{HELD}:")) for key in cooling):
        return
    for held in fleet.leases:
        if not held.is_open or held.state is LeaseState.RELEASING or held.is_held:
            continue
        done = find(cooling, (DONE,), of_slot(held.slot)) or find(cooling, (KILL,), of_lease(held))
        if done is not None:
            yield Release(held, done)
            continue
        paused = find(cooling, (PAUSE, HELD), of_lease(held))
        # A lease that is not listed is ended when it is back.
        if paused is not None and not is_down(held) and held.state is not LeaseState.MISSING:
            yield Pause(held, paused)


def is_down(held: Lease) -> bool:
    """Return whether a lease bills at most its disk and will not start by itself."""
    return held.state is LeaseState.PAUSED and (held.paused_by_us or held.tenure is not Tenure.INTERRUPTIBLE)


def forbidden(decision: Decision, cooling: Mapping[str, str]) -> Reason | None:
    """Return the hold that forbids a decision, or None."""
    if isinstance(decision, Rent):
        offer = decision.offer
        keys = (*of_slot(decision.slot), *_of_place(offer.host, offer.owner))
        return find(cooling, (*OFF_THE_MARKET, HELD), keys)
    if isinstance(decision, Resume | Rebid) and raises_spend(decision):
        return find(cooling, (KILL, LOCK, PAUSE, HELD), of_lease(decision.lease))
    return None
