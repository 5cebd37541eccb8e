"""Bids that wait for a price give way: they are decided last, and parked where a cap leaves no room for work.

A bid that waits counts at its limit, because it may start at any auction. A start that would run at once needs that
room more.

Invariants:
1. Only a bid that never ran gives way, of a workload with at most the priority of the one that needs the room, and only
   if its room is enough. No bid is parked for another that would wait.
2. It gives way to the start of a slot that does not run, never to a move or a raise of one that runs.
3. A new bid of at least the known price to win starts soon itself, and gives no room before `FAIR_AUCTIONS` are over.
   Else two slots would park each other's bids at every poll, and none would be there when the auction comes.
4. A parked bid takes part in auctions again once there is room: its start is decided last, too.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from agent.decide.limits.committed_spend import CommittedSpend
from agent.decide.strategy import Proposal
from agent.domain.fleet import Fleet
from agent.domain.money import UsdPerHour
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.work.decision import Decision, Hold, Pause, Reason
from agent.domain.work.workload import Workload

CODE = "gives_room"
FAIR_AUCTIONS = 2
"""Auctions that a bid of the known price to win may wait for. Assumed."""


def in_turn(fleet: Fleet, parts: Iterable[tuple[Workload, Iterable[Proposal]]]) -> Iterator[tuple[Workload, Proposal]]:
    """Yield the proposals of each workload in their order, and those that only wait for a price after all others."""
    late: list[tuple[Workload, Proposal]] = []
    for work, proposals in parts:
        for proposal in proposals:
            if waits(fleet, proposal):
                late.append((work, proposal))
            else:
                yield work, proposal
    yield from late


def waits(fleet: Fleet, proposal: Proposal) -> bool:
    """Return whether an order only lets a bid wait for its price: nothing is known to start at once."""
    candidate, lease = proposal.candidate, proposal.lease
    if proposal.kind is IntentKind.RENT:
        return candidate is not None and candidate.way.is_waiting
    if proposal.kind is not IntentKind.RESUME or lease is None or lease.bid_limit is None or lease.has_run:
        return False
    price = price_to_win(fleet, lease)
    return price is None or price > lease.bid


def price_to_win(fleet: Fleet, bid: Lease) -> UsdPerHour | None:
    """Return the lowest known price to win in the pool of a bid, None if none is known."""
    view = fleet.markets.get(bid.market)
    rows = view.offers_on(bid.host_id) if view is not None else ()
    return min((row.floor for row in rows if row.gpus == bid.gpus and row.floor is not None), default=None)


@dataclass(frozen=True, slots=True)
class WaitingRoom:
    """The orders of one plan that a limit forbade, as they are found, and the bids that wait meanwhile."""

    fleet: Fleet
    forbidden: list[Proposal] = field(default_factory=list)

    def look(self, decision: Decision, proposal: Proposal) -> None:
        """Remember a start of an idle slot that a limit forbade."""
        if not isinstance(decision, Hold) or not decision.reason.limit or waits(self.fleet, proposal):
            return
        is_start = proposal.candidate is not None or proposal.kind is IntentKind.RESUME
        if is_start and not any(each.state is LeaseState.RUNNING for each in self.fleet.leases_of(proposal.slot)):
            self.forbidden.append(proposal)

    def forget(self, slots: Container[Slot]) -> None:
        """Forget the forbidden orders of slots that start otherwise."""
        self.forbidden[:] = [proposal for proposal in self.forbidden if proposal.slot not in slots]

    def given(
        self,
        decisions: Sequence[Decision],
        standing: CommittedSpend,
        is_allowed: Callable[[Proposal, CommittedSpend], bool],
    ) -> list[Decision]:
        """Return the decisions, with the pauses of the bids whose room allows a forbidden order, in place of holds."""
        held = {decision.slot for decision in decisions if isinstance(decision, Hold)}
        for proposal in self.forbidden:
            pauses: list[Pause] = []
            after = standing
            for bid in self._bids(proposal):
                if bid.slot not in held:
                    continue
                sentence = f"its bid only waits, and {proposal.slot} could run with its room"
                pauses.append(Pause(bid, Reason(CODE, sentence)))
                after = after.after(pauses[-1])
                if is_allowed(proposal, after):
                    given = {pause.lease.slot: pause for pause in pauses}
                    return [given.get(each.slot, each) if isinstance(each, Hold) else each for each in decisions]
        return list(decisions)

    def _bids(self, proposal: Proposal) -> list[Lease]:
        """Return the bids that may give way to an order, those of the lowest priority and the newest first."""
        most = self._priority(proposal.slot.workload)
        waiting = [
            lease
            for lease in self.fleet.leases
            if lease.is_queued_bid and not lease.is_held and self.fleet.is_seen(lease)
        ]
        waiting = [bid for bid in waiting if not self._starts_soon(bid)]
        able = [bid for bid in waiting if bid.slot != proposal.slot and self._priority(bid.slot.workload) <= most]
        return sorted(able, key=lambda bid: (self._priority(bid.slot.workload), -bid.opened_at.timestamp()))

    def _starts_soon(self, bid: Lease) -> bool:
        """Return whether a bid most likely wins one of the next auctions."""
        every, price = self.fleet.rules_of(bid.market).auction_every, price_to_win(self.fleet, bid)
        if every is None or price is None or price > bid.bid:
            return False
        return self.fleet.now - max(bid.bid_since or bid.opened_at, bid.state_since) <= FAIR_AUCTIONS * every

    def _priority(self, workload: str) -> int:
        work = self.fleet.workload(workload)
        return work.priority if work is not None else 0
