"""Which task goes on with the host of a finished one, instead of being rented anew: the decisions of one plan.

Invariants:
1. The next task is one that would begin now, in its array's order, on an empty slot. It passes every limit that a rent
   would pass, at the price of the lease.
2. Each host goes on with one slot, and each slot on one host.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from agent.decide import slots
from agent.decide.demand import waiting_slots
from agent.decide.kept_hosts import finished_hosts
from agent.decide.kept_hosts.finished_hosts import Saving
from agent.decide.limits.committed_spend import CommittedSpend
from agent.decide.pricing.cooldowns import InForce
from agent.decide.strategy import SlotView
from agent.domain.fleet import Fleet
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.record.lease import Lease
from agent.domain.slot import Slot
from agent.domain.work.decision import Decision, Pause, Reason, Release, Rent
from agent.domain.work.workload import Workload

CODE = "host_kept"
Permit = Callable[[Rent, Fleet, CommittedSpend], Decision]
"""Returns the decision that the limits leave of a rent, in a fleet with its committed spend."""


def chosen(
    fleet: Fleet,
    endings: Sequence[Pause | Release],
    grounds: Mapping[str, int],
    in_force: InForce,
    standing: CommittedSpend,
    permit: Permit,
) -> tuple[list[Rent], Fleet]:
    """Return the decisions to go on, each in place of the release of its lease, and the fleet as it is after them.

    `grounds` counts, by lease id, on how many grounds each lease ends.
    """
    found: list[Rent] = []
    for lease, work, saving in finished_hosts.finished(fleet, endings, grounds, in_force):
        others, left = _without(fleet, lease), standing.without(lease)
        place = next(_may_begin(others, work, in_force), None)
        if place is None:
            continue
        rent = permit(_rent(lease, place, saving, fleet), others, left)
        if isinstance(rent, Rent):
            found.append(rent)
            moved = msgspec.structs.replace(lease, slot=place)
            fleet = msgspec.structs.replace(others, leases=(*others.leases, moved))
            standing = left.after(rent)
    return found, fleet


def _without(fleet: Fleet, lease: Lease) -> Fleet:
    """Return a fleet without a lease, and without the label by which its instance would claim a slot."""
    others = tuple(each for each in fleet.leases if each.lease_id != lease.lease_id)
    view = fleet.markets[lease.market]
    labels = {key: label for key, label in view.labels.items() if key != lease.instance_id}
    markets = {**fleet.markets, lease.market: msgspec.structs.replace(view, labels=labels)}
    return msgspec.structs.replace(fleet, leases=others, markets=markets)


def _may_begin(fleet: Fleet, work: Workload, in_force: InForce) -> Iterator[Slot]:
    """Yield the empty slots of an array for which nothing but a lease is missing, in its order."""
    waiting = waiting_slots.of(fleet, work, in_force.holds)
    for place in work.array.ordered(work.places) if work.array is not None else ():
        answer = slots.view_or_proposal(fleet, place, in_force) if place not in waiting else None
        if isinstance(answer, SlotView) and answer.lease is None:
            yield place


def _rent(lease: Lease, place: Slot, saving: Saving, fleet: Fleet) -> Rent:
    sentence = f"go on with {place} on the host of {lease.slot}, which is done: {saving.sentence}"
    is_bid = lease.tenure is Tenure.INTERRUPTIBLE
    rate = lease.most_gpu_rate + lease.disk_rate
    return Rent(
        place,
        _offer(lease, fleet),
        lease.tenure,
        lease.bid if is_bid else None,
        rate,
        Reason(CODE, sentence),
        kept=lease,
        is_limit=lease.bid_limit is not None,
        expected=None if lease.bid_limit is None else lease.gpu_rate,
    )


def _offer(lease: Lease, fleet: Fleet) -> Offer:
    """Return the slice that a lease has as an offer without traffic: nothing is loaded again."""
    return Offer(
        market=lease.market,
        offer_id=lease.offer_id,
        host_id=lease.host_id,
        owner_id=lease.owner_id,
        gpu=lease.gpu,
        gpus=lease.gpus,
        vram_mb=lease.vram_mb or 0,
        dlperf=lease.dlperf,
        reliability=1.0,
        is_verified=True,
        region="",
        inet_down_mbps=0.0,
        inet_up_mbps=0.0,
        disk_gb=lease.disk_gb,
        ask=lease.ask,
        floor=lease.host_floor,
        storage_micros_per_gb_month=0,
        traffic_down_micros_per_gb=0,
        traffic_up_micros_per_gb=0,
        ends_at=lease.ends_at,
        seen_at=fleet.now,
    )
