"""The spread of a workload's slots over places, and how often the market takes them.

Invariants:
1. A slot that moves counts only at its new place.
2. A share always leaves room for one slot. A task of an array that is held for a person, with its lease stopped, takes
   no room: many tasks may be held while only a few may run at once.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from agent.decide.moves.recovery import OF_THE_MARKET
from agent.decide.strategy import Candidate, View
from agent.domain.market.host import HostKey
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.slot import Slot


@dataclass(frozen=True, slots=True)
class Shares:
    """The most of a workload's slots on one host, owner and market, as shares of its slots."""

    of_host: float
    of_owner: float
    of_market: float


class Spread:
    """The place of each slot of a workload, and whether one more fits within the shares."""

    def __init__(self, view: View, shares: Shares) -> None:
        """Count the newest lease of each slot that is not being released."""
        self._most_on_host = _most(shares.of_host, view.workload.most_live)
        self._most_on_owner = _most(shares.of_owner, view.workload.most_live)
        # A fallback takes what no other market has: a share there would only leave slots empty.
        self._fallbacks = frozenset(view.workload.fallback.markets)
        # With only one market, its share would leave slots empty and spread nothing.
        is_split = len({*view.markets} - self._fallbacks) > 1
        self._most_on_market = _most(shares.of_market, view.workload.most_live) if is_split else view.workload.slots
        self._places = {lease.slot: (lease.host, lease.owner) for lease in _placed(view)}
        # The number of hosts in a pool is unknown: only the shares of owner and market limit it.
        self._hosts = {lease.host for lease in view.leases}

    def fits(self, slot: Slot, candidate: Candidate) -> bool:
        """Return whether a slot may go to a candidate within the shares. Unknown owners count as different ones."""
        others = [where for place, where in self._places.items() if place != slot]
        offer = candidate.offer
        on_host = sum(where[0].is_same_place(offer.host) for where in others)
        on_owner = sum(offer.owner.is_known and where[1] == offer.owner for where in others)
        on_market = sum(where[0].market == offer.market for where in others)
        is_within = on_host < self._most_on_host and on_owner < self._most_on_owner
        return is_within and (offer.market in self._fallbacks or on_market < self._most_on_market)

    def is_free(self, candidate: Candidate) -> bool:
        """Return whether no slot of the workload is on the host or was sent there in this plan."""
        return candidate.offer.host not in self._hosts or candidate.offer.host.is_pool

    def put(self, slot: Slot, candidate: Candidate) -> None:
        """Count a slot at its new place."""
        offer = candidate.offer
        self._places[slot] = offer.host, offer.owner
        self._hosts.add(offer.host)

    def first(self, slot: Slot, ranked: Iterable[Candidate], *, may_crowd: bool) -> Candidate | None:
        """Return the best candidate on a free host within the shares; else any best one if `may_crowd`, or None."""
        free = [candidate for candidate in ranked if self.is_free(candidate)]
        within = next((candidate for candidate in free if self.fits(slot, candidate)), None)
        return within if within is not None or not may_crowd else next(iter(free), None)


def _placed(view: View) -> Iterator[Lease]:
    """Yield the leases that take a place: not those being released, nor stopped ones of an array's held slots."""
    decided = {seen.slot for seen in view.slots}
    for lease in view.leases:
        is_held = view.workload.array is not None and lease.is_down and lease.slot not in decided
        if lease.state is not LeaseState.RELEASING and not is_held:
            yield lease


def _most(share: float, slots: int) -> int:
    # A share of 0.7 of ten slots is seven, despite binary fractions.
    return max(1, int(share * slots + 1e-9))


def loss_rate(view: View, window: timedelta) -> float:
    """Return how often the market took a lease of the workload, per slot and hour of the window up to now."""
    since = view.now - window
    taken = sum(loss.at > since and loss.cause in OF_THE_MARKET for loss in view.losses)
    return taken / max(view.workload.most_live, 1) / max(window / timedelta(hours=1), 1e-9)


def lost_hosts(view: View, rest: timedelta) -> frozenset[HostKey]:
    """Return the hosts that interrupted the workload within `rest` before now."""
    return frozenset(loss.host for loss in view.losses if view.now - loss.at < rest)
