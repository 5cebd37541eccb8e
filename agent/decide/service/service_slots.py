"""A service's warm slots: a view as places of `capacity_choice`, and the meaning of its choice for each slot.

Invariants:
1. A running lease that is part of the choice is left alone.
2. No lease is given up before enough others run and, if the workload shows readiness, are ready.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from agent.decide.moves import recovery
from agent.decide.pricing import host_record, loss_rate
from agent.decide.service import availability_dial, capacity_choice
from agent.decide.strategy import Candidate, View
from agent.domain.market.host import HostKey, OwnerKey
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.record.lease import Lease
from agent.domain.work import usefulness
from agent.domain.work.decision import Option, Reason

LOOK_AT = 12
"""The most offers that are weighed besides the leases; `capacity_choice` considers the best of them."""
_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class ServiceParams:
    """The numbers of a strategy for services."""

    short_worth: float
    """What an hour with too few warm slots is worth, in hours of all slots on demand."""
    spare_slots: int
    cold_start: timedelta
    """The time from a rent until the slot is warm."""
    least_gain: float
    """The share by which a place that is not held yet counts as more expensive, since a start must save more."""
    value: UsdPerHour | None = None
    """What an hour of one slot is worth: an hour with too few costs the value of all slots instead of `short_worth`."""
    target: float = 0.0
    """The share of the time with enough warm slots. If it is above 0, its dial replaces `short_worth` and `value`."""


@dataclass(frozen=True, slots=True)
class _Spot:
    """A place of the choice: its host, its slots, and the candidates there."""

    host: HostKey
    place: capacity_choice.Place
    candidate: Candidate | None


@dataclass(slots=True)
class ServiceChoice:
    """The choice for a view, less the slots that it has."""

    needed: int
    """The number of warm slots."""
    choice: capacity_choice.Choice
    lacking: int = 0
    """The number of slots to add."""
    surplus: int = 0
    """The number of slots too many."""
    running: int = 0
    """The number of useful slots of the choice."""
    spots: list[Candidate] = field(default_factory=list)
    """The candidates for interruptible slots to rent."""
    on_demand: int = 0
    """The number of slots to rent on demand."""
    standing: frozenset[str] = frozenset()
    """The ids of the leases that are part of the choice."""
    dial: availability_dial.Dial | None = None
    """The dial of a target; None without one."""

    def includes(self, lease: Lease) -> bool:
        """Return whether a lease is part of the choice."""
        return lease.lease_id in self.standing

    def may_spare(self, lease: Lease) -> bool:
        """Return whether a lease may go: there is a surplus, it is not part of the choice, and enough others run."""
        return self.surplus > 0 and not self.includes(lease) and self.running >= self.needed


def choose(view: View, numbers: ServiceParams, bids: Sequence[Candidate], asks: Sequence[Candidate]) -> ServiceChoice:
    """Return the choice for a service; its last `spare_slots` slots have leases only while that pays."""
    needed = max(view.workload.slots - numbers.spare_slots, 1)
    leases = list(_held(view))
    spots = list(_spots(view, [each for each in leases if each.tenure is Tenure.INTERRUPTIBLE], bids, numbers))
    on_demand = [lease for lease in leases if lease.tenure is not Tenure.INTERRUPTIBLE]
    ask = asks[0].way.rate + asks[0].offer.disk_rate(view.workload.disk_gb) if asks else view.workload.prices.highest
    dial = availability_dial.of(numbers.target, view.warm) if numbers.target else None
    terms = capacity_choice.Terms(
        slots=needed,
        on_demand_price=ask.dollars,
        short_worth=needed * _worth(numbers, dial, ask.dollars),
        gap_hours=numbers.cold_start / _HOUR,
        most_extra=view.workload.slots - needed,
        on_demand_held=len(on_demand),
    )
    choice = capacity_choice.choose([spot.place for spot in spots], terms)
    above = sum(choice.spots) + choice.on_demand - len(leases)
    service_choice = ServiceChoice(needed, choice, lacking=max(above, 0), surplus=max(-above, 0), dial=dial)
    return _less_standing(service_choice, spots, leases, terms, view)


def _worth(numbers: ServiceParams, dial: availability_dial.Dial | None, on_demand: float) -> float:
    """Return the dollars that an hour with too few costs for each slot that must be warm."""
    if dial is not None:
        return dial.worth * on_demand
    return numbers.short_worth * on_demand if numbers.value is None else numbers.value.dollars


def _less_standing(
    choice: ServiceChoice, spots: Sequence[_Spot], leases: Sequence[Lease], terms: capacity_choice.Terms, view: View
) -> ServiceChoice:
    left = {spot.host: count for spot, count in zip(spots, choice.choice.spots, strict=True)}
    on_demand, standing = choice.choice.on_demand, set()
    for lease in leases:
        if lease.tenure is Tenure.INTERRUPTIBLE and left.get(lease.host, 0) > 0:
            left[lease.host] -= 1
        elif lease.tenure is not Tenure.INTERRUPTIBLE and on_demand > 0:
            on_demand -= 1
        else:
            continue
        standing.add(lease.lease_id)
        # The last view of a market that does not answer is no reason to release running leases.
        choice.running += usefulness.is_useful(lease, view.workload) and lease.lease_id not in view.unseen
    for spot in spots:
        if spot.candidate is not None:
            choice.spots.extend([spot.candidate] * left[spot.host])
    # Missing slots go on demand only if all of them together cost no more than too few slots do.
    choice.on_demand = capacity_choice.cover(on_demand, terms)
    choice.standing = frozenset(standing)
    return choice


def _held(view: View) -> Iterator[Lease]:
    """Yield the lease that counts for each slot, oldest first; for a moving slot the new one."""
    newest: dict[object, Lease] = {}
    for lease in sorted(view.leases, key=lambda each: (each.opened_at, each.lease_id)):
        if lease.is_live:
            newest[lease.slot] = lease
    yield from newest.values()


def _spots(view: View, leases: Sequence[Lease], bids: Sequence[Candidate], numbers: ServiceParams) -> Iterator[_Spot]:
    offered = {bid.offer.host: bid for bid in reversed(bids[:LOOK_AT])}
    for host in dict.fromkeys(lease.host for lease in leases):
        there = [lease for lease in leases if lease.host == host]
        more = offered.pop(host, None)
        rate = max((lease.gpu_rate + lease.disk_rate).dollars for lease in there)
        lost = (loss.at for loss in view.losses if loss.host == host and loss.cause in recovery.OF_THE_MARKET)
        # A place that has just lost a lease counts as young as one that has just begun.
        since = max((min(lease.began for lease in there), *lost))
        room = view.workload.slots if more is not None and host.is_pool else len(there)
        hazards = _hazards(view, host, there[0].owner, max((view.now - since) / _HOUR, 0.0))
        yield _Spot(host, capacity_choice.Place(rate, *hazards, len(there), room, there[0].market), more)
    for host, bid in reversed(offered.items()):
        rate = (bid.way.rate + bid.offer.disk_rate(view.workload.disk_gb)).dollars
        room = view.workload.slots if host.is_pool else 1
        dearer, hazards = rate * (1 + numbers.least_gain), _hazards(view, host, bid.offer.owner, 0.0)
        yield _Spot(host, capacity_choice.Place(dearer, *hazards, 0, room, bid.offer.market), bid)


def _hazards(view: View, host: HostKey, owner: OwnerKey, age: float) -> tuple[float, float]:
    record = host_record.of_host(view.hosts, host, owner)
    return loss_rate.expected(record, loss_rate.ordinary(view.everything), age)


def reason_for(to: Candidate, kept: ServiceChoice) -> Reason:
    """Return why a slot goes to `to`: the cost of the choice, and how often it leaves too few slots."""
    slots = sum(kept.choice.spots) + kept.choice.on_demand
    outlook = f"{kept.choice.paid:.3f} $/h for {slots} slot{'' if slots == 1 else 's'}, "
    outlook += f"{kept.choice.short:.2%} of the time with fewer than {kept.needed}"
    outlook += "" if kept.dial is None else f"; {kept.dial.sentence}"
    sentence = f"hold host {to.offer.host_id} of {to.offer.market} at {to.way.rate} {to.way.tenure.value}: {outlook}"
    options = (Option("chosen", to.reckoning.per_useful_hour, to.reckoning.terms()),)
    return Reason("fallback" if to.way.tenure is Tenure.ON_DEMAND else "best_offer", sentence, options)
