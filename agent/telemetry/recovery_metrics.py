"""How long a slot takes to recover from an interruption, phase by phase, as the cycles show it.

Every phase is counted from the loss itself, as the ledger dates it, so each phase contains the one before. The phases
end when the loss is seen, a paying decision is made, its write is sent, the slot runs, and the slot is useful. If the
market starts a slot again by itself, there is no decision and no write: those two phases are not observed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from agent.domain.fleet import Fleet
from agent.domain.record.intent import Intent
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.work import usefulness
from agent.domain.work.decision import Decision, raises_spend, slot_of

PHASES = ("detected", "decided", "sent", "running", "useful")


@dataclass(frozen=True, slots=True)
class ReachedPhase:
    """A phase that a slot reached, seconds after its loss; `intent_id` is empty if nothing was sent."""

    phase: str
    seconds: float
    intent_id: str = ""


@dataclass(slots=True)
class _Loss:
    at: datetime
    intent_id: str = ""
    reached: set[str] = field(default_factory=set)

    def mark(self, phase: str, at: datetime) -> Iterator[ReachedPhase]:
        if phase not in self.reached:
            self.reached.add(phase)
            yield ReachedPhase(phase, max((at - self.at).total_seconds(), 0.0), self.intent_id)


class Recoveries:
    """Follows the slots that lost their lease until each is useful again; a restart forgets them."""

    def __init__(self) -> None:
        self._losses: dict[Slot, _Loss] = {}

    def see(
        self, fleet: Fleet, losses: Iterable[Lease], decisions: Iterable[Decision], done: Iterable[Intent]
    ) -> list[ReachedPhase]:
        """Return the phases reached in one cycle, from its `losses`, the leases after them, and its actions."""
        wanted = {place for work in fleet.workloads for place in work.places}
        self._losses = {slot: loss for slot, loss in self._losses.items() if slot in wanted}
        return [*self._lost(losses, fleet.now), *self._acted(decisions, done, fleet.now), *self._back(fleet)]

    def _lost(self, losses: Iterable[Lease], now: datetime) -> Iterator[ReachedPhase]:
        for lease in losses:
            loss = self._losses.setdefault(lease.slot, _Loss(lease.state_since))
            yield from loss.mark("detected", now)

    def _acted(self, decisions: Iterable[Decision], done: Iterable[Intent], now: datetime) -> Iterator[ReachedPhase]:
        sent = {intent.slot: intent for intent in done if intent.kind.is_paying and intent.sent_at is not None}
        for slot in {slot_of(decision): None for decision in decisions if raises_spend(decision)}:
            if slot in self._losses:
                loss = self._losses[slot]
                loss.intent_id = sent[slot].intent_id if slot in sent else loss.intent_id
                yield from loss.mark("decided", now)
        for slot, intent in sent.items():
            if slot in self._losses and intent.sent_at is not None:
                self._losses[slot].intent_id = intent.intent_id
                yield from self._losses[slot].mark("sent", intent.sent_at)

    def _back(self, fleet: Fleet) -> Iterator[ReachedPhase]:
        for slot, loss in list(self._losses.items()):
            for lease in fleet.leases_of(slot):
                began = _runs_since(lease, loss.at)
                if began is None:
                    continue
                yield from loss.mark("running", began)
                work = fleet.workload(slot.workload)
                if usefulness.is_useful(lease, work):
                    yield from loss.mark("useful", lease.ready_since or began)
                    self._losses.pop(slot, None)
                    break


def _runs_since(lease: Lease, lost_at: datetime) -> datetime | None:
    """Return when a lease began to run again after the loss, or None if it does not run."""
    if lease.state is not LeaseState.RUNNING or lease.run_since is None or lease.run_since < lost_at:
        return None
    return lease.run_since
