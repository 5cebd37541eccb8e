"""Bids that wait for a price give way: they are decided last, and parked where a cap leaves no room for work.

A bid that waits counts at its limit, because it may start at any auction. What would run at once needs that room more.

Invariants:
1. Only a bid that never ran gives way, of a workload with at most the priority of the one that needs the room, and only
   if its room is enough. No bid is parked for another that would wait.
2. A parked bid takes part in auctions again once there is room: its start is decided last, too.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from agent.decide.limits.committed_spend import CommittedSpend
from agent.decide.strategy import Proposal
from agent.domain.fleet import Fleet
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease
from agent.domain.work.decision import Decision, Hold, Pause, Reason
from agent.domain.work.workload import Workload

CODE = "gives_room"


def in_turn(parts: Iterable[tuple[Workload, Iterable[Proposal]]]) -> Iterator[tuple[Workload, Proposal]]:
    """Yield the proposals of each workload in their order, and those that only wait for a price after all others."""
    late: list[tuple[Workload, Proposal]] = []
    for work, proposals in parts:
        for proposal in proposals:
            if waits(proposal):
                late.append((work, proposal))
            else:
                yield work, proposal
    yield from late


def waits(proposal: Proposal) -> bool:
    """Return whether an order only lets a bid wait for its price: nothing is known to start at once."""
    candidate, lease = proposal.candidate, proposal.lease
    if proposal.kind is IntentKind.RENT:
        return candidate is not None and candidate.way.is_waiting
    return (
        proposal.kind is IntentKind.RESUME and lease is not None and lease.bid_limit is not None and not lease.has_run
    )


@dataclass(frozen=True, slots=True)
class WaitingRoom:
    """The orders of one plan that a limit forbade, as they are found, and the bids that wait meanwhile."""

    fleet: Fleet
    forbidden: list[Proposal] = field(default_factory=list)

    def look(self, decision: Decision, proposal: Proposal) -> None:
        """Remember an order that a limit forbade."""
        if isinstance(decision, Hold) and decision.reason.limit and proposal.kind is not None and not waits(proposal):
            self.forbidden.append(proposal)

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
            if lease.is_open_bid and not lease.has_run and not lease.is_held and self.fleet.is_seen(lease)
        ]
        able = [bid for bid in waiting if bid.slot != proposal.slot and self._priority(bid.slot.workload) <= most]
        return sorted(able, key=lambda bid: (self._priority(bid.slot.workload), -bid.opened_at.timestamp()))

    def _priority(self, workload: str) -> int:
        work = self.fleet.workload(workload)
        return work.priority if work is not None else 0
