"""Endings of our own that wait briefly: for a last checkpoint, for the requests of a service, or for both at once."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from agent.decide.moves import front_drain, last_checkpoint
from agent.domain.fleet import Fleet
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import Decision, Pause, Release


@dataclass(frozen=True, slots=True)
class WaitingEndings:
    """The endings of one plan that wait, as they are found."""

    fleet: Fleet
    asked: list[last_checkpoint.Asked] = field(default_factory=list)
    """The endings that wait for a last checkpoint."""
    drained: list[Pause | Release] = field(default_factory=list)
    """The endings whose leases are drained by their proxies."""

    @property
    def leases(self) -> tuple[Lease, ...]:
        """The leases that are drained: those of `drained`, and what was drained already in a market that is dark now.

        Whether such an ending is still due is not known. A wait that began anew after each dark pass would never end.
        """
        waiting = {each.lease.lease_id: each.lease for each in self.drained}
        for lease in self.fleet.leases:
            report = self.fleet.front_reports.get(lease.lease_id)
            is_asked = report is not None and report.asked_at is not None
            if is_asked and lease.state is LeaseState.RUNNING and not self.fleet.is_seen(lease):
                waiting.setdefault(lease.lease_id, lease)
        return tuple(waiting.values())

    def settle(self, endings: Sequence[Pause | Release], at_once: Collection[str]) -> list[Decision]:
        """Return the decisions about endings: each as it is, or a hold until its wait is over.

        `at_once` are the leases that a person or a hard cap ends. Nothing waits for these.
        """
        decisions, asked = last_checkpoint.settled(endings, self.fleet, at_once)
        self.asked.extend(asked)
        pairs = zip(decisions, endings, strict=True)
        return [
            decision if ending.lease.lease_id in at_once else self._drained(decision, ending)
            for decision, ending in pairs
        ]

    def instead(self, decision: Decision) -> Decision:
        """Return a decision about a slot as it is, or a hold until its wait is over."""
        after, asked = last_checkpoint.instead(decision, self.fleet)
        self.asked.extend([asked] if asked is not None else [])
        return self._drained(after, decision)

    def given_up(self, decisions: Iterable[Decision]) -> tuple[Lease, ...]:
        """Return the leases that were asked for a last checkpoint and whose ending is no longer due."""
        return last_checkpoint.given_up(self.fleet, [*decisions, *self.drained], self.asked)

    def _drained(self, decision: Decision, ending: Decision) -> Decision:
        after, drained = front_drain.instead(decision, ending, self.fleet)
        self.drained.extend([drained] if drained is not None else [])
        return after
