"""Hosts for which a slot cancels the queued start of its old lease: its rent follows in the next plan.

Invariant: of the slots of one plan that would move to a host only one cancels its start. The others would be left with
neither.
"""

from dataclasses import replace

from agent.decide.strategy import Proposal
from agent.domain.market.host import HostKey
from agent.domain.work.decision import Decision, Hold, Pause, Rent


def instead(decision: Decision, proposal: Proposal, claimed: set[HostKey], used: set[HostKey]) -> Decision:
    """Return a decision, or a hold if another slot of this plan has claimed its host.

    A host that this decision claims is added to the `claimed` hosts and to the `used` ones.
    """
    if proposal.candidate is None or not isinstance(decision, Rent | Pause):
        return decision
    host = proposal.candidate.offer.host
    if host in claimed and not host.is_pool:
        sentence = f"another slot moves to host {host.host_id} first; it would {decision.reason.sentence}"
        return Hold(proposal.slot, replace(decision.reason, code="host_claimed", sentence=sentence))
    if isinstance(decision, Pause):
        claimed.add(host)
        used.add(host)
    return decision
