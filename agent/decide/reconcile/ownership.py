"""Ownership of an instance: a lease may be written to only after two answers have shown our label on it.

Invariants (rule 18):
1. A lease is proven by two answers with its label, one of them a look by its id: the listing and a look, or two looks
   in two cycles.
2. An id that only a reply named is given up when two answers deny it, or when another instance has the label of that
   rent. Then the lease ends as never ours, and its rent is in doubt again.
3. A proven lease whose label changed or is missing is still metered. Only a person or a hard cap ends it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from agent.decide.accounting import meter
from agent.decide.facts import Alert, Fact, IntentSettled, LeaseChanged, LeaseDisowned
from agent.decide.reconcile.pass_memory import Memory
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market.label import Label
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease

NEVER_OURS = "never_ours"
"""The end reason of a lease whose instance was named by a reply and proved to be somebody else's."""

PROOF = 2
"""This many answers with our label, one of them a look by id, prove that an instance is ours."""
Place = tuple[str, str]
"""A market and the id of an instance there."""


@dataclass(frozen=True, slots=True)
class Ownership:
    """The leases by their labels, the changes, and the instances that need a look by their id.

    `looks` counts, by lease, the cycles in which a look by id showed the label. `undecided` are leases whose label no
    look has shown on their instance, so that its row is no evidence about them.
    """

    leases: tuple[Lease, ...]
    facts: tuple[Fact, ...]
    looks: Mapping[str, int]
    to_look: frozenset[Place]
    undecided: frozenset[str]


def is_label_of(label: Label | None, lease: Lease, fleet_id: str) -> bool:
    """Return whether a label is that of `held`'s rent; an adopted lease may not know its intent."""
    if label is None or label.fleet_id != fleet_id:
        return False
    return not lease.label_id or label.intent_id == lease.label_id


def why_untouched(lease: Lease, *, is_ordered: bool = False) -> str:
    """Return why nothing is written to a lease, or an empty text.

    `is_ordered`: a person or a hard cap ordered the write.
    """
    if not lease.is_proven:
        return f"the market has not shown our label on instance {lease.instance_id} twice yet: nothing is written to it"
    if lease.is_estranged and not is_ordered:
        return (
            f"instance {lease.instance_id} carries our label no more: `{_adoption(lease)}` if it is ours, "
            f"`gpubid release {lease.lease_id}` to end it"
        )
    return ""


def _adoption(lease: Lease) -> str:
    """Return the command that keeps a lease whose label is lost. A held one needs a slot: its own may be filled."""
    return f"gpubid adopt {lease.lease_id}{' --into WORKLOAD/SLOT' if lease.is_held else ''}"


def was_proven(past: Lease | None) -> bool:
    """Return whether an instance of an ended lease was proven ours, so that it may be listed again."""
    return past is not None and past.is_proven and past.end_reason != NEVER_OURS


def proven(fleet: Fleet, view: MarketView, lease: Lease) -> Lease:
    """Return a lease with a listed label, proven if a look by its id also showed that label in this cycle."""
    is_shown = is_label_of(view.looks.get(lease.instance_id), lease, fleet.fleet_id)
    return replace(lease, proven_at=fleet.now) if is_shown else lease


def unseen(view: MarketView, settled: Iterable[Fact]) -> set[Place]:
    """Return the instances of leases that doubt has just opened and that no look by id has shown."""
    leases = (fact.lease for fact in settled if isinstance(fact, IntentSettled) and fact.lease is not None)
    return {(view.market, lease.instance_id) for lease in leases if not lease.is_proven}


def settle(fleet: Fleet, memory: Memory) -> Ownership:
    """Return the leases that are proven, estranged or never were ours, by this cycle's answers."""
    leases: list[Lease] = []
    facts: list[Fact] = []
    looks: dict[str, int] = {}
    to_look: set[Place] = set()
    undecided: set[str] = set()
    for lease in fleet.leases:
        view = fleet.markets.get(lease.market)
        if view is None or not lease.is_open or lease.vouched_at is not None:
            leases.append(lease)
            continue
        if lease.is_proven:
            still, news = _watched(fleet, view, lease)
            leases.append(still)
            facts += news
            continue
        looks[lease.lease_id] = _looks(fleet, view, memory, lease)
        after, news = _judged(fleet, view, lease, looks[lease.lease_id])
        facts += news
        leases += [after] if after is not None else []
        if after is not None and after.is_proven:
            # The proof still counts while the ledger cannot record it.
            looks[lease.lease_id] = PROOF
        elif after is not None:
            to_look.add((lease.market, lease.instance_id))
            is_undecided = not looks[lease.lease_id] and _is_listed_otherwise(fleet, view, lease)
            undecided |= {lease.lease_id} if is_undecided else set()
    return Ownership(tuple(leases), tuple(facts), looks, frozenset(to_look), frozenset(undecided))


def _watched(fleet: Fleet, view: MarketView, lease: Lease) -> tuple[Lease, list[Fact]]:
    """Return a proven lease with the time since its label is not ours, and the alert while that lasts."""
    if not view.is_fresh or view.instance(lease.instance_id) is None:
        return lease, []
    if is_label_of(view.labels.get(lease.instance_id), lease, fleet.fleet_id):
        if not lease.is_estranged:
            return lease, []
        after = replace(lease, estranged_since=None)
        return after, [LeaseChanged(lease, after, EventKind.LEASE_LABEL_SEEN)]
    sentence = (
        f"instance {lease.instance_id} of {lease.market} carries our label no more; it is counted on and not touched: "
        f"`{_adoption(lease)}` if it is ours, `gpubid release {lease.lease_id}` to end it"
    )
    alert = Alert(EventKind.ALERT_LABEL_LOST, lease.lease_id, sentence)
    if lease.is_estranged:
        return lease, [alert]
    after = replace(lease, estranged_since=fleet.now)
    return after, [LeaseChanged(lease, after, EventKind.LEASE_LABEL_LOST), alert]


def _looks(fleet: Fleet, view: MarketView, memory: Memory, lease: Lease) -> int:
    is_shown = is_label_of(view.looks.get(lease.instance_id), lease, fleet.fleet_id)
    return memory.label_looks.get(lease.lease_id, 0) + is_shown


def _judged(fleet: Fleet, view: MarketView, lease: Lease, looks: int) -> tuple[Lease | None, list[Fact]]:
    """Return an unproven lease after this cycle's answers, or None if it never was ours."""
    is_listed = _is_listed(view, lease) and is_label_of(view.labels.get(lease.instance_id), lease, fleet.fleet_id)
    if looks + is_listed >= PROOF and looks:
        after = replace(lease, proven_at=fleet.now)
        return after, [LeaseChanged(lease, after, None)]
    other = None if is_listed else _claimant(fleet, view, lease)
    if other:
        why = f"the label of rent {lease.intent_id} is on instance {other}, not on {lease.instance_id}"
        return None, disowned(lease, why)
    is_denied = lease.instance_id in view.looks and not looks
    if is_denied and _is_listed_otherwise(fleet, view, lease):
        return None, disowned(lease, f"instance {lease.instance_id} does not carry the label of rent {lease.intent_id}")
    return lease, []


def disowned(lease: Lease, why: str, charges: tuple[meter.Charge, ...] = ()) -> list[Fact]:
    """Return the fact that a lease never was ours: the reply to its rent named a foreign instance, or none.

    `charges` count all the same, metered up to its `accrued_until`.
    """
    sentence = f"{lease.market} named {lease.instance_id} as the rented instance, but {why}: nothing is written to it"
    return [LeaseDisowned(lease, sentence, charges), Alert(EventKind.ALERT_WRONG_INSTANCE, lease.lease_id, sentence)]


def _is_listed(view: MarketView, lease: Lease) -> bool:
    """Return whether a fresh listing has its instance, and not only a look by its id."""
    is_unlisted = view.instance(lease.instance_id) is None or lease.instance_id in view.unlisted_ids
    return view.is_fresh and not is_unlisted


def _is_listed_otherwise(fleet: Fleet, view: MarketView, lease: Lease) -> bool:
    if not _is_listed(view, lease):
        return False
    return not is_label_of(view.labels.get(lease.instance_id), lease, fleet.fleet_id)


def _claimant(fleet: Fleet, view: MarketView, lease: Lease) -> str:
    """Return the id of another listed instance with the label of this very rent, or an empty text."""
    if not view.is_fresh or not lease.label_id:
        return ""
    others: Iterable[tuple[str, Label]] = view.labels.items()
    return next((at for at, label in others if at != lease.instance_id and _is_of(label, fleet, lease)), "")


def _is_of(label: Label, fleet: Fleet, lease: Lease) -> bool:
    return label.fleet_id == fleet.fleet_id and label.intent_id == lease.label_id
